{#- The payments as they are before the first build. Running it again brings them back. -#}
{% macro load_payments() %}
    {% do run_statements([
        "create schema if not exists shop_raw",

        "create table if not exists shop_raw.payments (
            payment_id bigint, order_id bigint, paid_on date, status string, amount decimal(10, 2)
        ) using delta tblproperties ('delta.enableChangeDataFeed' = 'true')",

        "insert overwrite shop_raw.payments values
            (9001, 1001, date'2026-01-06', 'settled', 34.30),
            (9002, 1002, date'2026-01-09', 'settled', 100.00),
            (9003, 1002, date'2026-01-16', 'settled', 79.80),
            (9004, 1003, date'2026-01-12', 'pending', 141.70),
            (9005, 1004, date'2026-01-13', 'settled', 69.90),
            (9006, 1005, date'2026-01-15', 'settled', 50.00),
            (9007, 1008, date'2026-01-21', 'settled', 45.85),
            (9008, 1010, date'2026-01-26', 'settled', 194.60),
            (9009, 1015, date'2026-02-05', 'settled', 150.00),
            (9010, 1017, date'2026-02-09', 'settled', 191.80),
            (9011, 1022, date'2026-02-18', 'settled', 143.75),
            (9012, 1024, date'2026-02-24', 'settled', 200.00)",
    ]) %}
{% endmacro %}

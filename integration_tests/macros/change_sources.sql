{#- A day in the shop: rows are inserted, updated and deleted, each kind at two sources.
    The customers stay as they are, so that one dynamic table has nothing to do. -#}
{% macro change_sources() %}
    {% set shop = target.schema %}
    {% do run_statements([
        "insert into " ~ shop ~ ".raw_orders values
            (1031, 12, date'2026-03-07', 'placed'),
            (1032, 4, date'2026-03-07', 'placed')",
        "insert into " ~ shop ~ ".raw_lines values
            (5071, 1031, 'kettle', 1, 39.00),
            (5072, 1031, 'cup', 4, 6.90),
            (5073, 1032, 'teapot', 2, 24.50)",

        "update " ~ shop ~ ".raw_lines set quantity = quantity + 1 where line_id in (5024, 5060)",
        "update shop_raw.payments set status = 'settled' where payment_id = 9004",

        "delete from " ~ shop ~ ".raw_lines where line_id = 5034",
        "delete from shop_raw.payments where payment_id = 9003",
    ]) %}
{% endmacro %}

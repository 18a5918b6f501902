"""Queries with the functions of everyday are kept up to date by their changes."""

from spark_shop import SparkShop

# Each of them would be another one, had sqlglot its way, or is numbered anew in each plan.
CALLS = (
    "date_trunc('month', ts)", "Date_Trunc('HOUR', ts)", "trunc(d, 'month')", "trunc(d, 'Q')",
    "datediff(d, ts)", "date_diff(ts, d)", "datediff(hour, ts, d)", "timestampdiff(MONTH, d, ts)",
    "timestampadd(day, i, ts)", "dateadd(week, 1, d)", "dateadd(d, i)", "date_add(d, 1)",
    "date_sub(d, i)", "to_date(t, 'yyyy-MM-dd')", "to_date(t)", "to_timestamp(t, 'yyyy-MM-dd')",
    "unix_timestamp(t, 'yyyy-MM-dd')", "to_unix_timestamp(ts)", "from_unixtime(i)", "unix_date(d)",
    "date_format(ts, 'E')", "date_format(ts, \"yyyy-MM-dd'T'HH\")",
    "from_utc_timestamp(ts, 'Europe/Berlin')", "to_utc_timestamp(ts, 'Europe/Berlin')",
    "substr(s, 2)", "substr(s, 1, 2)", "substr(s from 2 for 1)",
    "ucase(s)", "lcase(s)", "len(s)", "char_length(s)",
    "character_length(s)", "char(i + 65)", "instr(s, 'a')", "space(i)", "sha1(s)",
    "collate(s, 'UTF8_BINARY')", "regexp_substr(s, 'a')", "nullif(trim(s), '')",
    "i / nullif(i - 3, 0)", "i + 1 between 2 and 3", "mod(i, 2)", "pow(f, 2)", "ceiling(f)",
    "signum(f)", "log(f + 1)", "log(2, f + 1)", "log2(f + 1)", "log10(f + 1)", "i << 1 + 2",
    "i >> 1", "shiftleft(i, 1)", "shiftright(i, 1)", "i & 1 << 2", "bit_get(i, 1)", "getbit(i, 1)",
    # An ARRAY(…) before >> would be too much for Spark's own parser.
    "array_size(split(s, 'n'))", "reduce(split(s, 'n'), '', (x, y) -> x || y)",
    "named_struct('y', i)",
)  # fmt: skip
ROWS = (
    "(1, 2.5, 'anna', '2024-02-29', DATE'2024-03-31', TIMESTAMP'2024-03-31 23:30:00')",
    "(2, 0.0, '  ', '2024-12-31', DATE'2024-12-31', TIMESTAMP'2024-01-01 00:00:00')",
    "(3, 7.0, NULL, NULL, NULL, NULL)",
)


def test_rows_of_them(shop: SparkShop) -> None:
    shop.table("t", "i int, f double, s string, t string, d date, ts timestamp", *ROWS)
    named = (f"{call} as c{i}" for i, call in enumerate(CALLS))
    shop.model("m", f"select {', '.join(named)} from t")
    shop.check("m", "FULL")
    shop.run(f"INSERT INTO t VALUES {ROWS[0]}", "UPDATE t SET i = i + 1 WHERE i = 2")
    shop.check("m")


def test_groups_of_them(shop: SparkShop) -> None:
    shop.table("t", "i int, f double, s string, t string, d date, ts timestamp", *ROWS)
    shop.model(
        "m",
        "select date_trunc('month', ts) as month, substr(s, 1, 1) as initial, "
        "mod(sum(i), 7) as rest, pow(count(*), 2) as squared, "
        "format_number(sum(i), 1) as formatted, pmod(count(*), 3) as residue, "
        "datediff(max(d), min(d)) as days, sum(mod(i, 2)) / nullif(count(i), 0) as odd\n"
        "from t where to_date(t, 'yyyy-MM-dd') > '2024-01-01' or t is null\n"
        "group by date_trunc('month', ts), 2",
    )
    shop.check("m", "FULL")
    shop.run(f"INSERT INTO t VALUES {ROWS[0]}", "DELETE FROM t WHERE i = 3")
    shop.check("m")

"""Groups: adjusted by what changed in them, recomputed only where they have to be."""

import pytest
from spark_shop import SparkShop

from spark_dynamic.errors import WarehouseError


@pytest.fixture
def sales(shop: SparkShop) -> SparkShop:
    shop.table(
        "sales",
        "region string, product int, amount decimal(10,2), weight double, day date",
        "('n', 1, 10, 1.5, date'2026-01-01')", "('n', 2, 5, 2.5, date'2026-01-02')",
        "('s', 1, 7, NULL, NULL)", "(NULL, 1, NULL, 0.5, date'2026-01-03')",
    )  # fmt: skip
    return shop


def test_sums_counts_and_averages_are_adjusted(sales: SparkShop) -> None:
    sales.model(
        "totals",
        "select region, sum(amount) as amount, count(*) as n, count(day) as days, "
        "avg(amount) as mean, avg(product) as product, sum(product) + 1 as products "
        "from sales group by region",
    )
    sales.check("totals", "FULL")
    sales.run("INSERT INTO sales VALUES ('n', 3, 2.5, 1, NULL), ('w', 1, 0, 0, NULL)")
    outcome = sales.check("totals")
    assert (outcome.rows_inserted, outcome.rows_deleted) == (2, 1)
    sales.run(
        "DELETE FROM sales WHERE region = 's'",
        "UPDATE sales SET amount = -12.5 WHERE product = 2",
        "UPDATE sales SET region = 'w' WHERE region IS NULL",
    )
    sales.check("totals")
    sales.check("totals", "NO_DATA")


@pytest.mark.nightly
def test_a_group_whose_sum_is_0_stays(sales: SparkShop) -> None:
    sales.model("sums", "select region, sum(amount) as amount from sales group by region")
    sales.check("sums", "FULL")
    sales.run("INSERT INTO sales VALUES ('s', 9, -7, 0, NULL)")
    sales.check("sums")
    assert sales.session.sql("SELECT amount FROM sums WHERE region = 's'").first()[0] == 0


def test_extremes_are_recomputed_when_they_leave(sales: SparkShop) -> None:
    sales.model(
        "extremes",
        "select region, min(amount) as low, max(amount) as high, max(day) as day from sales "
        "group by region",
    )
    sales.check("extremes", "FULL")
    sales.run("INSERT INTO sales VALUES ('n', 1, 99, 1, NULL), ('e', 1, 1, 1, NULL)")
    sales.check("extremes")
    assert not any("__dyn_stale" in statement for statement in sales.statements)
    sales.run(
        "DELETE FROM sales WHERE amount = 99", "INSERT INTO sales VALUES ('e', 2, 5, 1, NULL)"
    )
    sales.check("extremes")
    assert any("__dyn_again" in statement for statement in sales.statements)
    sales.run(
        "INSERT INTO sales VALUES ('n', 5, 1000, 1, NULL)", "DELETE FROM sales WHERE product = 5"
    )
    sales.check("extremes", "NO_DATA")
    # Every extreme is taken away and comes back, another value leaves for a better one.
    sales.run(
        "UPDATE sales SET weight = 7, product = 9",
        "UPDATE sales SET amount = 11 WHERE region = 'n' AND amount = 10",
    )
    sales.check("extremes")
    assert any("__dyn_stale" in statement for statement in sales.statements)
    assert not any("__dyn_again" in statement for statement in sales.statements)


@pytest.mark.nightly
def test_floating_point_sums_are_recomputed(sales: SparkShop) -> None:
    sales.model(
        "weights", "select region, sum(weight) as total, count(*) as n from sales group by region"
    )
    sales.check("weights", "FULL")
    sales.run("INSERT INTO sales VALUES ('n', 3, 2.5, 1e16, NULL), ('n', 3, 2.5, -1e16, NULL)")
    sales.check("weights")


@pytest.mark.nightly
def test_one_row_without_group_by(sales: SparkShop) -> None:
    sales.model("all", "select count(*) as n, sum(amount) as total, max(day) as day from sales")
    sales.check("all", "FULL")
    sales.run("INSERT INTO sales VALUES ('n', 3, 2.5, 1, date'2027-01-01')")
    sales.check("all")
    sales.run("DELETE FROM sales WHERE true")
    sales.check("all")
    sales.run("INSERT INTO sales VALUES ('n', 3, 2.5, 1, date'2027-01-01')")
    sales.check("all")


@pytest.mark.nightly
def test_having_hides_groups_and_shows_them_again(sales: SparkShop) -> None:
    sales.model(
        "busy",
        "select region, count(*) + 0 as n from sales group by region having sum(amount) > 10",
    )
    outcome = sales.check("busy", "FULL")
    assert outcome.rows_inserted == 1
    sales.run("INSERT INTO sales VALUES ('s', 3, 4, 1, NULL)")
    outcome = sales.check("busy")
    assert (outcome.rows_inserted, outcome.rows_deleted) == (1, 0)
    sales.run("DELETE FROM sales WHERE region = 'n' AND product = 2")
    outcome = sales.check("busy")
    assert (outcome.rows_inserted, outcome.rows_deleted) == (0, 1)


def test_what_is_not_shown_is_not_computed(sales: SparkShop) -> None:
    """Division by zero is an error, from which conditions protect."""
    sales.run("INSERT INTO sales VALUES ('zero', 1, -1, NULL, NULL), ('zero', 1, 1, NULL, NULL)")
    sales.model(
        "shares",
        "select region, 100 / amount as share, 100 / n as each from (select region, "
        "sum(amount) as amount, count(*) as n from sales group by region having sum(amount) <> 0) "
        "where 100 / amount > 0",
    )
    sales.check("shares", "FULL")
    sales.run(
        "DELETE FROM sales WHERE region = 's'",
        "INSERT INTO sales VALUES ('n', 1, -15, 0, NULL), ('zero', 1, 3, 0, NULL)",
        "INSERT INTO sales VALUES ('brief', 1, 0, 0, NULL), ('o', 1, 1, 0, NULL)",
        "DELETE FROM sales WHERE region = 'brief'",
    )
    sales.check("shares")
    sales.model("counts", "select region, 100 / count(*) as share from sales group by region")
    sales.check("counts", "FULL")
    sales.run(
        "INSERT INTO sales VALUES ('brief', 1, 0, 0, NULL)",
        "DELETE FROM sales WHERE region IN ('zero', 'brief')",
    )
    sales.check("counts")


def test_a_join_below_groups(sales: SparkShop) -> None:
    sales.table("products", "id int, kind string", "(1, 'x')", "(2, 'y')")
    sales.model(
        "kinds",
        "with p as (select id, upper(kind) as kind from products) "
        "select p.kind, sum(s.amount) as amount, count(*) as n, min(s.day) as first_day "
        "from sales s join p on s.product = p.id group by all",
    )
    sales.check("kinds", "FULL")
    sales.run(
        "UPDATE products SET kind = 'z' WHERE id = 2",
        "INSERT INTO products VALUES (1, 'second')",
        "INSERT INTO sales VALUES ('q', 2, 3, 1, date'2020-01-01')",
        "DELETE FROM sales WHERE region = 's'",
    )
    sales.check("kinds")


@pytest.mark.nightly
def test_groups_of_groups(sales: SparkShop) -> None:
    sales.model(
        "sizes",
        "select n, count(*) as regions from (select region, count(*) as n from sales "
        "group by region) group by n",
    )
    sales.check("sizes", "FULL")
    sales.run("INSERT INTO sales VALUES ('s', 3, 4, 1, NULL), ('t', 1, 1, 1, NULL)")
    sales.check("sizes")


@pytest.mark.nightly
def test_one_row_stays_as_it_is_when_no_change_reaches_it(sales: SparkShop) -> None:
    sales.model("few", "select count(*) as n, count(day) as d from sales where amount > 6")
    sales.check("few", "FULL")
    sales.run("INSERT INTO sales VALUES ('n', 3, 1, 1, date'2027-01-01')")
    sales.refresh("few")
    assert sales.difference("few") == []
    sales.run("INSERT INTO sales VALUES ('n', 3, 100, 1, date'2027-01-01')")
    sales.check("few")


@pytest.mark.nightly
def test_an_edit_that_swaps_keys_and_sums_keeps_them_apart(sales: SparkShop) -> None:
    sales.model(
        "swapped",
        "select upper(region) as r, sum(amount) + 2 * sum(product) as s, count(*) as n from sales "
        "group by region, product having sum(amount) > sum(product)",
    )
    sales.check("swapped", "FULL")
    sales.model(
        "swapped",
        "select upper(region) as r, 2 * sum(product) + sum(amount) as s, count(*) as n from sales "
        "group by product, region having sum(product) < sum(amount)",
    )
    sales.check("swapped", "NO_DATA")
    sales.run("INSERT INTO sales VALUES ('n', 1, 3, 1, NULL), ('s', 1, -6, 1, NULL)")
    sales.check("swapped")


def test_decimals_keep_all_digits(shop: SparkShop) -> None:
    """Rounded in two steps, 1 / 20001 would be 0.0001 instead of 0.0000."""
    types = [(38, 18), (28, 10), (28, 6), (27, 10), (24, 12), (24, 0), (23, 1), (20, 0), (10, 2)]
    names = [f"d_{precision}_{scale}" for precision, scale in types]
    columns = ", ".join(f"{n} decimal({p},{s})" for n, (p, s) in zip(names, types, strict=True))
    shop.table("wide", columns)
    zeros = ", ".join("0" for _ in names)
    shop.run(f"INSERT INTO wide SELECT {zeros} FROM range(20000)")
    measures = ", ".join(f"avg({name}) as mean_{name}, sum({name}) as {name}" for name in names)
    shop.model("digits", f"select {measures} from wide")
    shop.check("digits", "FULL")
    smallest = ", ".join(f"1e-{scale}" for _, scale in types)
    shop.run(f"INSERT INTO wide SELECT {smallest}")
    shop.check("digits")


@pytest.mark.nightly
def test_wide_sums_are_added_and_fail_rather_than_overflow(sales: SparkShop) -> None:
    most = "9" * 35 + ".99"
    sales.table("wide", "k int, d decimal(38,2)", f"(1, {most})", "(2, NULL)")
    sales.model("sums", "select k, sum(d) as total from wide group by k")
    sales.check("sums", "FULL")
    sales.run("INSERT INTO wide VALUES (1, 1.51), (3, 0.01)", "DELETE FROM wide WHERE k = 2")
    sales.check("sums")
    assert not any("__dyn_again" in sql for sql in sales.statements)
    sales.run(f"INSERT INTO wide VALUES (1, 9{most})")
    with pytest.raises(WarehouseError):
        sales.refresh("sums")


def test_groups_that_are_hidden_stay_so_for_readers_of_a_table_that_was_emptied(
    sales: SparkShop,
) -> None:
    """A reader takes the rows from before the empty run, through the view from after it."""
    sales.table("names", "region string, name string", "('n', 'North')", "('s', 'South')")
    sales.model(
        "large", "select region, count(*) as n from sales group by region having count(*) > 1"
    )
    sales.model("named", "select l.region, l.n, m.name from large l join names m using (region)")
    for name in ("large", "named"):
        sales.check(name, "FULL")
    sales.refresh("large", leaves_no_state=True)
    sales.run("INSERT INTO names VALUES ('s', 'Süden')")
    assert sales.action("named") == "WAITING"
    # What was there before the empty run is shown again.
    sales.check("large", "NO_DATA")
    sales.check("named")
    assert [row.region for row in sales.session.sql("TABLE named").collect()] == ["n"]

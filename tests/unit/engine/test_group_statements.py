"""The statements for groups: what is computed for which of them, and in which order."""

import pytest

from spark_dynamic.apply.groups import VISIBLE, Groups
from spark_dynamic.apply.shape import group_shape
from spark_dynamic.frontier.record import StoredColumn
from spark_dynamic.names import TableName
from spark_dynamic.plan.types import MeasureType
from spark_dynamic.sql.bind import bind
from spark_dynamic.sql.pin import Query as Text
from spark_dynamic.sql.references import find_references
from spark_dynamic.warehouse import Column

STORAGE = TableName("shop", "m__dyn")


def groups(sql: str, measured: str = "int", result: str = "bigint") -> Groups:
    def columns_of(table: TableName) -> tuple[Column, ...]:
        return (Column("a", "int"), Column("b", measured))

    query = bind(Text(sql, find_references(sql, "shop"), {}), "shop", columns_of)
    shape = group_shape(query)
    assert shape is not None
    types = {id: MeasureType(measured, result) for id in shape.aggregate.columns}
    columns = tuple(StoredColumn(name, name, "int") for name in query.names)
    return Groups(shape, types, columns)


def test_nothing_is_computed_for_groups_that_are_not_shown() -> None:
    query = "select a, 1 / sum(b) as r, sum(b) as s from t group by a"
    target = groups(f"{query} having sum(b) <> 0")
    for sql in (target.build("rows"), target.merge(STORAGE, "changes", "", {})):
        before = sql.split("(1 / ")[:-1]
        assert before
        assert all(part.endswith(" <> 0, false), ") for part in before)
    assert "coalesce" not in groups(query).build("rows")


def test_conditions_are_asked_from_the_inside_out() -> None:
    target = groups(
        "select a from (select a, sum(b) as s from t group by a having sum(b) > 1) "
        "where s > 2 and s > 3"
    )
    visible = target.build("rows").partition(f" AS `{VISIBLE}`")[0]
    conditions = visible.split(" AND coalesce(")
    assert [c[-len("> 1, false)") :] for c in conditions] == [f"> {n}, false)" for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("type", "result", "is_recomputed"),
    [
        ("decimal(27,10)", "decimal(37,10)", False),
        # Two such sums have 39 digits together, of which Spark would drop a decimal.
        ("decimal(28,10)", "decimal(38,10)", True),
        ("decimal(28,6)", "decimal(38,6)", False),
        ("decimal(38,7)", "decimal(38,7)", True),
    ],
)
def test_sums_that_would_be_rounded_are_computed_again(
    type: str, result: str, is_recomputed: bool
) -> None:
    target = groups("select a, sum(b) as s from t group by a", type, result)
    assert target.always_recomputed is is_recomputed


def test_files_of_the_storage_are_skipped_by_the_bounds_of_changed_keys() -> None:
    target = groups("select a, b, max(a) as m from t group by a, b")
    bounds = {target.keys[id]: ("1", "9") for id in target.keys}
    between = [f"`{name}` BETWEEN 1 AND 9" for name in bounds]
    assert len(between) == 2
    condition = target.merge(STORAGE, "changes", "", bounds).split("\nON ")[1].split("\n")[0]
    assert condition.endswith(" AND ".join(f"t.{each}" for each in between))
    # The same rows are looked at for extremes that left.
    assert f"WHERE true AND {' AND '.join(between)})" in target.stale(STORAGE, 7, "c", bounds)

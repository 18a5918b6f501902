"""Windows of net changes and of first-time inserts, with values that are odd to compare."""

from datetime import datetime, timedelta

import pytest
from spark_shop import SETTINGS, SparkShop
from spark_warehouse import SparkWarehouse

from spark_dynamic.changes.asked import AT_LEAST, ChangeRead, Mode
from spark_dynamic.changes.window import Window
from spark_dynamic.config import DynamicTableConfig
from spark_dynamic.frontier.state import KnownState
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.verify import verify
from spark_dynamic.refresh.windows import Windows

HOUR = timedelta(hours=1)
INSTANT = timedelta(milliseconds=1)
ODD = "select n as `odd, name`, m, s from t where id is not null"


class Kept:
    """The windows of one model on a real Spark."""

    def __init__(self, shop: SparkShop, *reads: ChangeRead) -> None:
        self.shop = shop
        view = TableName.of(shop.schema, "recent")
        windows = tuple(Window(read, HOUR, AT_LEAST) for read in reads)
        names = [window.name_for(view).sql for window in windows]
        sql = "\nUNION ALL\n".join(f"SELECT change_action FROM {name}" for name in names)
        config = DynamicTableConfig()
        request = Request("model.shop.recent", view, sql, shop.schema, config, SETTINGS, "0.test")
        self.windows = Windows(request, windows)

    def refresh(self, moment: datetime | None = None) -> list[str]:
        """Refresh all windows, and compare them with what a change query shows."""
        warehouse = SparkWarehouse(self.shop.session)
        cycle = Cycle("invocation", moment or warehouse.now(), KnownState())
        outcomes = list(self.windows.refresh(cycle, warehouse))
        for request in self.windows.requests():
            found = verify(request, cycle, warehouse)
            assert found.is_equal, (request.view, found)
        return [outcome.plan.decision.action for outcome in outcomes]

    def shown(self) -> list[list[tuple[object, ...]]]:
        """Return the actions of all changes, and whether they are halves of updates."""
        found = []
        for request in self.windows.requests():
            query = f"SELECT change_action, change_is_update FROM {request.view.sql}"
            found.append(sorted(map(tuple, self.shop.session.sql(query).collect())))
        return found


def committed_at(shop: SparkShop) -> datetime:
    name = TableName.of(shop.schema, "t")
    return SparkWarehouse(shop.session).history(name, 1)[0].timestamp


@pytest.mark.nightly
def test_they_move_at_both_ends(shop: SparkShop) -> None:
    shop.table("t", "id int, n double, m map<string,int>, s struct<a:int,b:float>")

    def read(sql: str, mode: Mode, **named: object) -> ChangeRead:
        return ChangeRead(sql, shop.schema, SETTINGS, mode, **named)  # type: ignore[arg-type]

    t = TableName.of(shop.schema, "t")
    kept = Kept(
        shop,
        read(f"select id, * except (id) from ({ODD.replace('select', 'select id,')})",
             Mode.MIN_DELTA, unique_key=("id",)),
        # The key is not among the columns, and rows have copies.
        read(ODD, Mode.MIN_DELTA, row_keys={t: ("id",)}),
        read(ODD, Mode.MIN_DELTA),
        read(ODD, Mode.APPEND_ONLY),
    )  # fmt: skip
    assert kept.refresh() == ["FULL"] * 4
    value = "map('a', 1, 'b', null), named_struct('a', 1, 'b', -0.0F)"
    rows = f"(1, 0.0D, {value}), (2, double('NaN'), {value}), (3, null, null, null)"
    shop.run(f"INSERT INTO t VALUES {rows}")
    first = committed_at(shop)
    assert kept.refresh() == ["INCREMENTAL"] * 4
    added = [("INSERT", False)] * 3
    assert kept.shown() == [added] * 4
    # 0.0 and -0.0 are equal, and not the same.
    shop.run("UPDATE t SET n = -0.0D WHERE id = 1")
    shop.run(f"INSERT INTO t VALUES (4, double('NaN'), {value})")
    shop.run("DELETE FROM t WHERE id = 3")
    shop.run("INSERT INTO t VALUES (3, null, null, null)")
    assert kept.refresh() == ["INCREMENTAL"] * 4
    added = [("INSERT", False)] * 4
    # The updated row has been new; what came back has not.
    assert kept.shown() == [added] * 4
    assert kept.refresh() == ["NO_DATA"] * 4
    # The first commit is too old, what came after it is not: it was there when it was updated.
    assert kept.refresh(first + HOUR + INSTANT) == ["INCREMENTAL"] * 4
    pair = [("DELETE", True), ("INSERT", False), ("INSERT", True)]
    alone = [("DELETE", False), ("INSERT", False), ("INSERT", False)]
    assert kept.shown() == [pair, pair, alone, [("INSERT", False)]]
    assert kept.refresh(committed_at(shop) + HOUR + INSTANT) == ["INCREMENTAL"] * 4
    assert kept.shown() == [[]] * 4

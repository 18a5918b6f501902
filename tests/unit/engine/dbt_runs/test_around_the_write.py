"""What comes after the rows comes, and their statements are kept, whatever goes wrong."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_shop import Shop, small_shop
from real_dbt import SHOWN, dbt, said

from dbt.adapters.spark_dynamic import dynamic_tables, impl
from dbt.adapters.spark_dynamic.dynamic_tables import DynamicTables
from dbt.adapters.spark_dynamic.planned_refresh import PlannedRefresh
from dbt.adapters.spark_dynamic.responses import refresh_response
from spark_dynamic.errors import WarehouseError
from spark_dynamic.refresh.decide import Decision
from spark_dynamic.refresh.plan import Plan, plan_refresh
from spark_dynamic.refresh.run import Outcome
from spark_dynamic.settings import restore, row_settings
from spark_dynamic.support import reason

DYNAMIC = "{{ config(materialized='dynamic_table', post_hook='{{ tell() }}') }}\n"
MODELS = {"best": DYNAMIC + "select max(amount) as amount from shop.orders limit 1"}
HOOKS = "{% macro tell() %}{% if execute %}{% do log('after the rows') %}{% endif %}{% endmacro %}"

OWN = """{% materialization own_kind, adapter='spark_dynamic' %}
  {%- do store_result('main', response='done') -%}
  {{ return({'relations': [this]}) }}
{% endmaterialization %}"""


def hooks_run() -> int:
    return len([text for text in SHOWN if text == "after the rows"])


def test_a_warning_that_is_an_error_comes_after_the_post_hooks(shop: Shop, folder: Path) -> None:
    dbt(folder, "run")
    shop.spark.write("shop.orders").append((4, 20, 100))
    before = hooks_run()
    found = said(dbt(folder, "--warn-error", "run"))["best"]
    assert found.startswith("error") and shop.spark.read("select * from shop.best") == [(100,)]
    assert hooks_run() == before + 1
    assert "INSERT OVERWRITE" in (folder / "target/run/shop/models/best.sql").read_text()


def test_the_statements_of_a_failed_refresh_are_kept(
    shop: Shop, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dbt(folder, "run")
    shop.spark.write("shop.orders").append((4, 20, 100))

    def fail() -> None:
        raise WarehouseError("DIVIDE_BY_ZERO", "[DIVIDE_BY_ZERO] Division by zero.")

    shop.spark.meanwhile.append(("^INSERT OVERWRITE", fail))
    assert said(dbt(folder, "run"))["best"].startswith("error")
    assert "INSERT OVERWRITE" in (folder / "target/run/shop/models/best.sql").read_text()


def test_settings_that_a_hook_has_changed_are_set_again(shop: Shop) -> None:
    session = shop.session
    wanted = {"spark.sql.session.timeZone": "UTC", "spark.sql.caseSensitive": "false"}
    for key, value in wanted.items():
        session.execute(f"SET `{key}`=`{value}`")
    before = row_settings(session)
    assert before == wanted
    session.execute("SET spark.sql.session.timeZone=Asia/Tokyo")
    session.execute("SET spark.sql.legacy.timeParserPolicy=LEGACY")
    session.execute("SET spark.sql.shuffle.partitions=7")
    begin = len(shop.spark.log)
    restore(session, before)
    # How a query is computed is the hook's to choose, what it gives is not.
    assert session.settings == {**wanted, "spark.sql.shuffle.partitions": "7"}
    assert shop.spark.log[begin + 1 :] == [
        "RESET `spark.sql.legacy.timeParserPolicy`",
        "SET `spark.sql.session.timeZone`=`UTC`",
    ]


def test_settings_are_looked_at_after_pre_hooks_alone(
    shop: Shop, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restored: list[object] = []
    before = {"spark.sql.session.timeZone": "UTC"}
    monkeypatch.setattr(impl, "row_settings", lambda _: before)
    monkeypatch.setattr(impl, "restore", lambda _, settings: restored.append(settings))
    dbt(folder, "run")
    assert restored == []
    model = folder / "models" / "hooked.sql"
    model.write_text(MODELS["best"].replace("post_hook", "pre_hook"))
    dbt(folder, "run", "--select", "hooked")
    model.unlink()
    assert restored == [before]


def test_what_was_computed_for_a_hook_that_fails_is_dropped(
    shop: Shop, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[str] = []

    def computed(plan: Plan, *_: object) -> tuple[Plan, object]:
        return plan, SimpleNamespace(drop=lambda: dropped.append(str(plan.request.view)))

    monkeypatch.setattr(dynamic_tables, "foresee", computed)
    model = folder / "models" / "hooked.sql"
    failing = "{% if execute %}{{ exceptions.raise_compiler_error(42) }}{% endif %}"
    model.write_text(MODELS["best"].replace("post_hook='{{ tell() }}'", f"pre_hook='{failing}'"))
    assert said(dbt(folder, "run", "--select", "hooked"))["hooked"].startswith("error")
    model.unlink()
    assert dropped == ["shop.hooked"]


def test_what_a_materialization_of_the_users_own_writes_is_read_in_the_same_run(
    shop: Shop, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[str] = []
    monkeypatch.setattr(DynamicTables, "note_written", lambda _, table: noted.append(str(table)))
    files = {
        "macros/own_kind.sql": OWN,
        "models/made.sql": "{{ config(materialized='own_kind') }}",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    dbt(folder, "run")
    for name in files:
        (folder / name).unlink()
    assert noted == ["shop.made"]


@pytest.mark.parametrize(
    ("action", "code", "is_warned_of"),
    [
        ("INCREMENTAL", "CHANGES_CHEAPER", False),
        ("FULL", "CHEAPER", False),
        ("FULL", "LIMIT", True),
        ("REINITIALIZE", "HISTORY_LOST", True),
    ],
)
def test_only_a_rebuild_that_nobody_asked_for_is_warned_of(
    action: str, code: str, is_warned_of: bool
) -> None:
    shop = small_shop(copy="select id from shop.orders")
    cycle = shop.open_cycle()
    plan = plan_refresh(shop.request("copy"), cycle, shop.session)
    planned = PlannedRefresh(plan, cycle, cycle.data_timestamp, 0)
    decided = replace(plan, decision=Decision(action, reason(code, "numbers")))
    planned.outcome = Outcome(decided, rows_inserted=1, rows_deleted=0)
    assert bool(planned.warnings) is is_warned_of
    response = refresh_response(planned.outcome)
    assert (response.reason_code, response.reason) == (code, str(reason(code, "numbers")))
    shown = "" if action == "INCREMENTAL" else f" ({code})"
    assert response._message == f"{action} +1 -0{shown}"

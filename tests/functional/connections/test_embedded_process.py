"""The embedded Spark of a dbt process: defaults, choices, screen, Ctrl-C, a second one."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.functional.connections.processes import NOISE, DbtProject

LEFT_BEHIND = ("derby.log", "metastore_db", "spark-warehouse", "artifacts")


def table(sql: str, **config: str) -> str:
    options = ", ".join(f"{key}={value!r}" for key, value in config.items())
    return f"{{{{ config(materialized='table', {options}) }}}}\n{sql}"


def dynamic_table(sql: str, **config: str) -> str:
    return table(sql, **config).replace("'table'", "'dynamic_table'", 1)


ORDERS = "id,region,amount\n" + "".join(f"{n},{'nesw'[n % 4]},{n % 17}.25\n" for n in range(200))
BY_REGION = "select region, sum(amount) as total, count(*) as n from {} group by region"
LARGE = "select o.region, l.id, n from {} o join {} l on l.region = o.region where l.amount > 9"
CHANGES = """
{% macro change_orders() %}
  {% do run_query("insert into trial.orders values (900, 'n', 12.5), (901, 'new', 30.0)") %}
  {% do run_query("update trial.orders set amount = amount + 9 where id % 50 = 3") %}
  {% do run_query("delete from trial.orders where id % 40 = 1") %}
{% endmacro %}
"""


def actions(results: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The action of each dynamic table."""
    responses = {name: result["adapter_response"] for name, result in results.items()}
    return {n: r["refresh_action"] for n, r in responses.items() if "refresh_action" in r}


def differences(query: str, name: str) -> str:
    """A query that counts the rows in which a table and a query differ."""
    both = ((query, f"table {name}"), (f"table {name}", query))
    return " + ".join(f"(select count(*) from (({a}) except all ({b})))" for a, b in both).join(
        ("select ", " as n")
    )


def test_a_profile_of_two_lines_and_models_that_fail(shop: DbtProject) -> None:
    shop.write("seeds/orders.csv", ORDERS)
    shop.write("macros/change_orders.sql", CHANGES)
    shop.write(
        "models/by_region.sql",
        dynamic_table(BY_REGION.format("{{ ref('orders') }}"), refresh_mode="incremental"),
    )
    shop.write(
        "models/large.sql",
        dynamic_table(LARGE.format("{{ ref('by_region') }}", "{{ ref('orders') }}")),
    )
    shop.write("models/good.sql", table("select 1 as a"))
    shop.write("models/unknown_column.sql", table("select nothing as a"))
    shop.write("models/not_a_number.sql", table("select cast('x' as int) as a"))
    shop.write(
        "models/failing_task.sql",
        table("select if(id = 7, raise_error('row ' || id), id) as a from range(10)"),
    )
    shop.write(
        "models/failing_hook.sql",
        table("select 1 as a", post_hook="select raise_error('from the hook')"),
    )
    run = shop.dbt("build", answers={"zone": "select current_timezone()"})
    assert run.told["zone"] == "UTC"
    assert actions(shop.results()) == dict.fromkeys(["by_region", "large"], "FULL")
    failed = {name for name, result in shop.results().items() if result["status"] != "success"}
    assert failed == {"unknown_column", "not_a_number", "failing_task", "failing_hook"}

    said = {name: result["message"] for name, result in shop.results().items()}
    assert "[UNRESOLVED_COLUMN.WITHOUT_SUGGESTION]" in said["unknown_column"]
    # A malformed number is an error: ANSI is on unless the profile says otherwise.
    assert "[CAST_INVALID_INPUT]" in said["not_a_number"]
    assert "[USER_RAISED_EXCEPTION] row 7" in said["failing_task"]
    assert "[USER_RAISED_EXCEPTION] from the hook" in said["failing_hook"]
    for name in failed:
        assert f"Spark log: {shop.log}\n" in said[name]
        assert said[name].startswith(f"Database Error in model {name}")
        # The sentence alone: neither the plan nor the JVM's stack.
        assert "Project [" not in said[name] and "DeltaCatalog@" not in said[name], said[name]
    assert not NOISE.search(run.screen), run.screen
    assert run.errors == ""
    assert shop.log.is_file()
    assert [name for name in LEFT_BEHIND if (shop.folder / name).exists()] == []
    _a_second_process_goes_on(shop)


def _a_second_process_goes_on(shop: DbtProject) -> None:
    """Nothing to do at first, then changes; the person sees that Spark is being started."""
    by_region = BY_REGION.format("trial.orders")
    large = LARGE.format(f"({by_region})", "trial.orders")
    answers = {
        "by_region": differences(by_region, "trial.by_region"),
        "large": differences(large, "trial.large"),
    }
    run = ["run", "--select", "by_region", "large"]
    shop.environment["TERM"] = "xterm"
    second = shop.dbt_in_one_process(
        [*run, "--target-path", "unchanged"],
        ["run-operation", "change_orders"],
        [*run, "--target-path", "changed", "--vars", json.dumps({"answers": answers})],
        terminal=True,
    )
    assert second.code == 0, second.screen + second.errors
    assert actions(shop.results("unchanged")) == dict.fromkeys(["by_region", "large"], "NO_DATA")
    changed = actions(shop.results("changed"))
    assert changed["by_region"] == "INCREMENTAL" and changed["large"] != "NO_DATA"
    assert second.told == {"by_region": "0", "large": "0"}
    assert "Starting Spark" in second.errors
    assert not NOISE.search(second.errors.replace("Starting Spark", "")), second.errors


def test_everything_can_be_chosen_in_the_profile(shop: DbtProject, tmp_path: Path) -> None:
    home, warehouse = tmp_path / "home", tmp_path / "warehouse"
    shop.use_profile(
        home=str(home),
        server_side_parameters={
            "spark.sql.warehouse.dir": str(warehouse),
            "spark.sql.catalogImplementation": "in-memory",
            "spark.master": "local[3]",
            "spark.driver.memory": "1g",
            # Makes the JVM say in its log how much memory it has.
            "spark.driver.extraJavaOptions": "-XX:+PrintFlagsFinal",
            "spark.sql.ansi.enabled": False,
            "spark.sql.session.timeZone": "Asia/Tokyo",
            "shop.own": "kept",
        },
    )
    shop.write("models/lenient.sql", table("select cast('x' as int) as a"))
    run = shop.dbt(
        "run",
        answers={
            "zone": "select current_timezone()",
            "lenient": "select coalesce(a, -1) from trial.lenient",
            "master": "select '${spark.master}'",
            "own": "select '${shop.own}'",
        },
    )
    assert run.code == 0, run.screen + run.errors
    assert run.told == {
        "zone": "Asia/Tokyo",
        "lenient": "-1",
        "master": "local[3]",
        "own": "kept",
    }
    assert list(warehouse.glob("trial.db/lenient/_delta_log/*.json"))
    log = (home / "logs" / "spark.log").read_text()
    assert re.search(r"MaxHeapSize\s+= 1073741824\b", log)
    assert not (shop.folder / ".spark_dynamic").exists()
    assert not NOISE.search(run.screen), run.screen
    assert run.errors == ""


def test_a_second_process_is_refused_and_ctrl_c_stops_the_first(shop: DbtProject) -> None:
    shop.write(
        "models/endless.sql",
        table(
            "select count_if(a.id % 7 = b.id % 5) as n from range(1000000000) a, range(100000) b"
        ),
    )
    first = shop.start("run")
    try:
        assert _wait_for(first, "START sql table model trial.endless")

        second = shop.dbt("run", "--target-path", "elsewhere")
        assert second.code != 0
        assert f"METASTORE_IN_USE: Another process (pid {first.pid})" in second.screen
        assert second.screen.count("METASTORE_IN_USE") == 1
        assert not NOISE.search(second.screen + second.errors), second.screen + second.errors
        assert second.seconds < 40

        assert first.poll() is None, "the long query ended before it could be cancelled"
        pressed = time.monotonic()
        os.killpg(first.pid, signal.SIGINT)
        screen, errors = first.communicate(timeout=60)
        assert time.monotonic() - pressed < 40
        assert "CANCEL query model.shop.endless" in screen, screen
        assert "Exited because of keyboard interrupt" in screen
        assert errors == ""
        assert _group_is_gone(first.pid)
    finally:
        if not _group_is_gone(first.pid, patience=0):
            os.killpg(first.pid, signal.SIGKILL)


def _wait_for(process: "subprocess.Popen[str]", text: str) -> bool:
    assert process.stdout is not None
    return any(text in line for line in process.stdout)


def _group_is_gone(group: int, patience: float = 10) -> bool:
    """Tell whether dbt and the JVM it started, which share a process group, have ended."""
    end = time.monotonic() + patience
    while True:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        if time.monotonic() > end:
            return False
        time.sleep(0.2)

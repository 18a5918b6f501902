"""The embedded Spark of a dbt process: defaults, choices, screen, Ctrl-C, a second one."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from tests.functional.connections.processes import NOISE, DbtProject

LEFT_BEHIND = ("derby.log", "metastore_db", "spark-warehouse", "artifacts")


def table(sql: str, **config: str) -> str:
    options = ", ".join(f"{key}={value!r}" for key, value in config.items())
    return f"{{{{ config(materialized='table', {options}) }}}}\n{sql}"


def test_a_profile_of_two_lines_and_models_that_fail(shop: DbtProject) -> None:
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
    run = shop.dbt("run", answers={"zone": "select current_timezone()"})
    assert run.told["zone"] == "UTC"
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

"""The examples of docs/scheduling.md for cron, systemd and others, run as far as they can be."""

import configparser
import os
import re
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

DOCUMENT = (Path(__file__).parents[2] / "docs" / "scheduling.md").read_text()
BLOCKS = re.findall(r"^```\w*\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)
# A dbt that says when it begins, and does not end before it is allowed to.
SLOW_DBT = """#!/bin/sh
echo "dbt $*"
while [ ! -e done ]; do sleep 0.01; done
"""


def block_with(text: str) -> str:
    [found] = [block for block in BLOCKS if text in block]
    return found


def installed(folder: Path, command: str) -> str:
    """Return a command that finds everything in a folder; its dbt is a slow one."""
    dbt = folder / "srv/shop/.venv/bin/dbt"
    dbt.parent.mkdir(parents=True)
    dbt.write_text(SLOW_DBT)
    dbt.chmod(0o755)
    for place in ("tmp", "var/log"):
        (folder / place).mkdir(parents=True)
    return re.sub(r"(?<![\w/])/(srv|tmp|var)/", rf"{folder}/\1/", command)


def test_cron_leaves_a_run_out_while_the_one_before_is_going(tmp_path: Path) -> None:
    fields = block_with("flock").split(maxsplit=5)
    assert fields[:5] == ["*"] * 5
    command, log = installed(tmp_path, fields[5]), tmp_path / "var/log/shop.log"
    shell = ["/bin/sh", "-c", command]
    # As short as that of cron, with what flock and sleep need.
    path = {"PATH": "/usr/bin:/bin"}
    with subprocess.Popen(shell, env=path) as first:
        try:
            until = time.monotonic() + 30
            while first.poll() is None and "dbt run" not in (
                log.read_text() if log.exists() else ""
            ):
                assert time.monotonic() < until
                time.sleep(0.01)
            assert subprocess.run(shell, env=path, check=False).returncode == 1
        finally:
            (tmp_path / "srv/shop/done").touch()
    assert first.returncode == 0
    assert subprocess.run(shell, env=path, check=False).returncode == 0
    assert log.read_text() == "dbt run\ndbt run\n"


def test_systemd_starts_the_service_of_the_same_name_every_minute(tmp_path: Path) -> None:
    text = block_with("OnCalendar")
    units = dict(re.findall(r"^# (\S+)\n(.*?)(?=^# |\Z)", text, re.DOTALL | re.MULTILINE))
    # A timer starts the service of its own name.
    assert units.keys() == {"shop.service", "shop.timer"}
    read = {}
    for name, unit in units.items():
        read[name] = configparser.ConfigParser()
        read[name].optionxform = str  # type: ignore[assignment,method-assign]
        read[name].read_string(unit)
    service, timer = read["shop.service"]["Service"], read["shop.timer"]
    # The service is "active" until its command ends, and is not started as long as it is.
    assert service["Type"] == "oneshot"
    assert timer["Timer"]["OnCalendar"] == "minutely"
    assert timer["Install"]["WantedBy"] == "timers.target"
    command = installed(tmp_path, service["ExecStart"]).split()
    (tmp_path / "srv/shop/done").touch()
    folder = f"{tmp_path}{service['WorkingDirectory']}"
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert found.stdout == "dbt run\n"


def test_airflow_starts_one_run_at_a_time_and_makes_up_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[str, dict[str, Any]] = {}

    class Dag:
        """Airflow itself is no part of the environment; this takes what it would take."""

        def __init__(self, **given: Any) -> None:
            made["dag"] = given

        def __enter__(self) -> None:
            pass

        def __exit__(self, *error: object) -> None:
            pass

    def operator(**given: Any) -> None:
        made["task"] = given

    modules = {"airflow.sdk": ("DAG", Dag)}
    modules["airflow.providers.standard.operators.bash"] = ("BashOperator", operator)
    for path, (name, value) in modules.items():
        parts = path.split(".")
        for end in range(1, len(parts) + 1):
            parent = ".".join(parts[:end])
            monkeypatch.setitem(sys.modules, parent, sys.modules.get(parent) or ModuleType(parent))
        monkeypatch.setattr(sys.modules[path], name, value, raising=False)
    exec(block_with("BashOperator"), {})
    dag, task = made["dag"], made["task"]
    assert dag["schedule"] == timedelta(minutes=1)
    assert (dag["max_active_runs"], dag["catchup"], task["retries"]) == (1, False, 0)
    command = installed(tmp_path, task["bash_command"])
    (tmp_path / "srv/shop/done").touch()
    found = subprocess.run(
        ["bash", "-c", command], env=dict(os.environ), capture_output=True, text=True, check=True
    )
    assert found.stdout == "dbt run\n"


def test_kubernetes_starts_one_run_at_a_time_and_repeats_none(tmp_path: Path) -> None:
    job = yaml.safe_load(block_with("CronJob"))
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "CronJob")
    assert job["spec"]["schedule"].split() == ["*"] * 5
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    once = job["spec"]["jobTemplate"]["spec"]
    pod = once["template"]["spec"]
    assert (once["backoffLimit"], pod["restartPolicy"]) == (0, "Never")
    [container] = pod["containers"]
    command = installed(tmp_path, " ".join(container["command"])).split()
    (tmp_path / "srv/shop/done").touch()
    folder = f"{tmp_path}{container['workingDir']}"
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert found.stdout == "dbt run\n"

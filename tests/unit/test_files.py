"""The cache folder, and locks that hold between processes."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dbt.adapters.spark_dynamic.files import cache_directory, claim, exclusive

HOLD = """
import sys
import threading
from pathlib import Path
from dbt.adapters.spark_dynamic.files import claim
held = claim(Path(sys.argv[1]))
print("held" if held else "refused", flush=True)
sys.stdin.read()
"""


def test_a_claim_is_refused_while_another_process_holds_it_and_names_that_process(
    tmp_path: Path,
) -> None:
    path = tmp_path / "in_use_by.pid"
    path.write_text("99999999")
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        assert claim(path) is None
        assert path.read_text() == str(holder.pid)
        holder.communicate(timeout=30)
    # It ends with the process, also one that left its number behind.
    held = claim(path)
    assert held is not None
    assert path.read_text() == str(os.getpid())
    held.close()


def test_an_exclusive_block_waits_for_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "jars.lock"
    entered = threading.Event()

    def second() -> None:
        with exclusive(path):
            entered.set()

    waiting = threading.Thread(target=second)
    with exclusive(path):
        waiting.start()
        assert not entered.wait(timeout=0.5)
    assert entered.wait(timeout=10)
    waiting.join()


def test_an_exclusive_block_is_free_after_an_error(tmp_path: Path) -> None:
    path = tmp_path / "jars.lock"
    with pytest.raises(ValueError), exclusive(path):
        raise ValueError
    held = claim(path)
    assert held is not None
    held.close()


def test_the_cache_is_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SPARK_DYNAMIC_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_directory() == tmp_path / "home/.cache/dbt-spark-dynamic"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "xdg/dbt-spark-dynamic"
    monkeypatch.setenv("SPARK_DYNAMIC_CACHE", "~/chosen")
    assert cache_directory() == tmp_path / "home/chosen"
    assert cache_directory().is_dir()

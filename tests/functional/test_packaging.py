"""The wheel holds everything that the adapter needs at run time."""

import subprocess
import sys
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def test_the_wheel_has_adapter_engine_plugin_and_macros(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path)]
    subprocess.run([*command, str(REPOSITORY)], check=True, capture_output=True)
    [wheel] = tmp_path.glob("dbt_spark_dynamic-*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    macros = {path.relative_to(REPOSITORY) for path in (REPOSITORY / "macros").rglob("*.sql")}
    assert macros
    for macro in macros:
        assert f"dbt/include/spark_dynamic/{macro.as_posix()}" in packed
    assert {
        "dbt/adapters/spark_dynamic/impl.py",
        "spark_dynamic/refresh/plan.py",
        "dbt_spark_dynamic/__init__.py",
        "dbt/include/spark_dynamic/dbt_project.yml",
    } <= packed
    assert not [name for name in packed if name.startswith("tests") or "/demo/tests" in name]
    # dbt's own packages are shared by all adapters: a file of ours there would hide theirs.
    assert "dbt/__init__.py" not in packed and "dbt/adapters/__init__.py" not in packed

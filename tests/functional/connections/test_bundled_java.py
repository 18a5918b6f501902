"""`dbt-spark-dynamic[java]`: the first build of the shop without a Java of the machine."""

import os
import shutil
from pathlib import Path

from tests.functional.connections.processes import NOISE, ROOT, DbtProject

BUILT = shutil.ignore_patterns(".spark_dynamic", "target", "logs", "dbt_packages", "package-lock*")


def commands_without_java(folder: Path) -> str:
    """A PATH with every command of this machine but `java`: Spark's launcher needs some."""
    folder.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for command in Path(directory).glob("*"):
            if command.name != "java" and not (folder / command.name).is_symlink():
                (folder / command.name).symlink_to(command)
    return str(folder)


def test_the_first_build_works_with_the_java_that_pip_brought(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "integration_tests", tmp_path / "shop", ignore=BUILT)
    shop = DbtProject(tmp_path / "shop")
    shop.write("packages.yml", f"packages: [{{local: {ROOT}}}]")
    shop.environment["PATH"] = commands_without_java(tmp_path / "bin")
    shop.environment.pop("JAVA_HOME", None)
    run = shop.dbt_in_one_process(["deps"], ["run-operation", "load_payments"], ["build"])
    assert run.code == 0, run.screen + run.errors
    built = shop.results()
    dynamic = [result for name, result in built.items() if name.startswith("dt_")]
    assert len(dynamic) >= 3
    assert {r["adapter_response"]["refresh_action"] for r in dynamic} == {"FULL"}
    assert {r["status"] for r in built.values()} <= {"success", "pass"}
    # A run that succeeds shows nothing of Spark.
    assert not NOISE.search(run.screen), run.screen
    assert run.errors == ""

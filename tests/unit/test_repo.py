"""Rules about the repository itself: layers, versions, the lock file, file lengths."""

import ast
import re
import runpy
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "adapter" / "spark_dynamic"
FILE_LENGTHS = runpy.run_path(str(ROOT / ".ci" / "file_lengths.py"))

HOST = re.compile(r"https?:|\b[\w-]+(\.[\w-]+)*\.(org|com|net|io|dev)\b")
PINNED = {
    "dbt-core": "1.11.",
    "dbt-spark": "1.11.",
    "delta-spark": "4.4.0",
    "pyspark": "4.2.0",
    "sqlglot": "30.30.",
}


def imported_packages(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").split(".")[0]


def locked_versions() -> dict[str, list[str]]:
    versions: dict[str, list[str]] = {}
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if pin := re.match(r"([a-z0-9-]+)(\[[a-z0-9,-]+\])?==(\S+)", line):
            versions.setdefault(pin[1], []).append(pin[3])
    return versions


def test_no_source_file_is_too_long() -> None:
    assert FILE_LENGTHS["too_long"](ROOT) == []


def test_the_length_check_sees_long_files_and_skips_built_ones(tmp_path: Path) -> None:
    for name, lines in {"ok.py": 400, "long.sql": 401, "target/built.sql": 900}.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x\n" * lines)
    assert FILE_LENGTHS["too_long"](tmp_path) == ["long.sql: 401 lines, at most 400 allowed"]


def test_every_insert_names_its_columns() -> None:
    """By position, a column that somebody moved or added would get the values of another."""
    insert = re.compile(r"INSERT (?:INTO|OVERWRITE TABLE) \{[^}]+\}(.{10})", re.DOTALL)
    rest = [found for path in ENGINE.rglob("*.py") for found in insert.findall(path.read_text())]
    assert len(rest) >= 4
    assert [found for found in rest if not found.startswith((" BY NAME", " ({"))] == []


def test_the_engine_imports_neither_dbt_nor_pyspark() -> None:
    files = list(ENGINE.rglob("*.py"))
    assert files
    forbidden = {
        f"{path.relative_to(ROOT)} imports {package}"
        for path in files
        for package in imported_packages(ast.parse(path.read_text()))
        if package in {"dbt", "dbt_common", "dbt_spark_dynamic", "pyspark", "delta", "py4j"}
    }
    assert forbidden == set()


@pytest.mark.parametrize(
    "source", ["import dbt.adapters", "from pyspark.sql import functions", "def f():\n import dbt"]
)
def test_the_import_walk_sees_every_form(source: str) -> None:
    assert set(imported_packages(ast.parse(source))) & {"dbt", "pyspark"}


@pytest.mark.parametrize(("package", "version"), PINNED.items())
def test_the_lock_has_the_versions_that_fit_each_other(package: str, version: str) -> None:
    assert [v for v in locked_versions()[package] if not v.startswith(version)] == []


def test_the_lock_has_no_compiled_sqlglot_and_not_the_project_itself() -> None:
    assert not {"sqlglotc", "sqlglotrs", "dbt-spark-dynamic"} & locked_versions().keys()


def test_the_lock_pins_every_line_with_a_hash_and_names_no_host() -> None:
    text = (ROOT / "requirements.lock").read_text()
    entries = [line for line in text.splitlines() if line and line[0] not in " #"]
    assert [line for line in entries if "==" not in line] == []
    assert len(re.findall(r"^\S+==.*\\\n +--hash=sha256:", text, re.MULTILINE)) == len(entries)
    assert [line for line in text.splitlines() if HOST.search(line)] == []


def test_the_lock_covers_every_direct_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    wanted = {
        re.split(r"[\[<>=! ]", requirement)[0]
        for group in (project["dependencies"], *extras)
        for requirement in group
    }
    assert wanted - {project["name"]} <= locked_versions().keys()


def test_the_version_is_the_same_everywhere() -> None:
    source = (ROOT / "adapter/dbt/adapters/spark_dynamic/__version__.py").read_text()
    written = re.search(r'^version = "(.+)"$', source, re.MULTILINE)
    assert written
    for project in ("dbt_project.yml", "adapter/dbt/include/spark_dynamic/dbt_project.yml"):
        assert yaml.safe_load((ROOT / project).read_text())["version"] == written[1], project


def test_the_licence_is_there_in_full() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text and "END OF TERMS AND CONDITIONS" in text


def test_the_pre_commit_hooks_name_no_outside_repository() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert {repo["repo"] for repo in config["repos"]} == {"local"}

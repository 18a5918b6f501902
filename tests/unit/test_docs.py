"""The documents tell the truth: examples parse, commands exist, lists are complete."""

import ast
import doctest
import importlib
import pkgutil
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlglot
import yaml
from dbt.adapters.contracts.connection import Credentials
from dbt.cli.main import cli, dbtRunner
from dbt.config.profile import Profile
from dbt.config.renderer import ProfileRenderer
from dbt.contracts.graph.manifest import Manifest

import spark_dynamic
from spark_dynamic import support
from spark_dynamic.changes.stream_config import STREAM_CONFIGS
from spark_dynamic.config import OWN_CONFIGS
from spark_dynamic.frontier.state import create_state_table
from spark_dynamic.names import TableName
from spark_dynamic.refresh import cost
from spark_dynamic.schedule.known import COMPARED
from spark_dynamic.sql.dialect import SparkDynamic

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "adapter" / "spark_dynamic"
ADAPTER = ROOT / "adapter" / "dbt" / "adapters" / "spark_dynamic"
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"^```\w*\n(.*?)^```$|`([^`\n]+)`", re.DOTALL | re.MULTILINE)
REF = re.compile(r"ref\('(\w+)'\)")


@dataclass(frozen=True)
class Example:
    """A code block; its first line may be a comment with the path of the file that it is."""

    document: str
    language: str
    text: str

    @property
    def path(self) -> str:
        found = re.match(r"(?:#|--) (\S+\.(?:yml|sql))\n", self.text)
        return found[1] if found else ""


EXAMPLES = [
    Example(document.name, *block)
    for document in DOCUMENTS
    for block in BLOCK.findall(document.read_text())
]
PROFILES = [example for example in EXAMPLES if example.path == "profiles.yml"]


def examples(language: str) -> list[Example]:
    return [example for example in EXAMPLES if example.language == language]


def is_model(example: Example) -> bool:
    return "{{" in example.text


def section(document: str, heading: str) -> str:
    text = (ROOT / "docs" / document).read_text()
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found, f"{document} has no section {heading}"
    return found[1]


def commands() -> Iterator[str]:
    """All code of all documents, line by line."""
    for document in DOCUMENTS:
        for block, inline in CODE.findall(document.read_text()):
            yield from (block or inline).splitlines()


# Examples


def write_project(folder: Path) -> None:
    """Put all examples into one project; what they refer to is made up."""
    project: dict[str, Any] = {"flags": {"send_anonymous_usage_stats": False}}
    for example in examples("yaml"):
        if example.path == "dbt_project.yml":
            for key, value in yaml.safe_load(example.text).items():
                project[key] = {**project.get(key, {}), **value} if key == "models" else value
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(project))
    (folder / "profiles.yml").write_text(PROFILES[0].text)
    (folder / "dbt_packages").mkdir()
    (folder / "dbt_packages" / "spark_dynamic").symlink_to(ROOT)
    models = folder / "models" / "marts"
    models.mkdir(parents=True)
    named = {
        Path(example.path).stem or f"example_{number}": example.text
        for number, example in enumerate(filter(is_model, examples("sql")), 1)
    }
    for name, text in named.items():
        (models / f"{name}.sql").write_text(text)
    for name in {name for text in named.values() for name in REF.findall(text)} - named.keys():
        (folder / "models" / f"{name}.sql").write_text("select 1 as a")


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    folder = tmp_path_factory.mktemp("documents")
    write_project(folder)
    # A config that reaches no model would mean that an example is not checked.
    strict = '{"error": ["UnusedResourceConfigPath"]}'
    options = ["--log-level=none", f"--log-path={folder}", f"--warn-error-options={strict}"]
    parsed = dbtRunner().invoke(
        [*options, "parse", f"--project-dir={folder}", f"--profiles-dir={folder}"]
    )
    assert parsed.success, str(parsed.exception)
    assert isinstance(parsed.result, Manifest)
    return parsed.result


def test_every_model_example_is_parsed(manifest: Manifest) -> None:
    written = [
        node.raw_code
        for node in manifest.nodes.values()
        if node.package_name != "spark_dynamic" and "{{" in node.raw_code
    ]
    shown = [example.text.strip() for example in examples("sql") if is_model(example)]
    assert len(shown) >= 4
    assert sorted(written) == sorted(shown)


def test_the_example_that_enables_the_package_model_does_so(manifest: Manifest) -> None:
    model = manifest.nodes["model.spark_dynamic.dynamic_table_refresh_history"]
    assert model.config.enabled and model.config.materialized == "view"


def test_every_macro_in_an_example_exists(manifest: Manifest) -> None:
    called = {name for e in examples("sql") for name in re.findall(r"\{\{ (\w+)\(", e.text)}
    own = called - {"config", "ref", "source"}
    assert "dynamic_table_storage" in own
    assert own <= {macro.name for macro in manifest.macros.values()}


@pytest.mark.parametrize("example", PROFILES, ids=lambda example: example.document)
def test_every_profile_example_is_a_valid_profile(example: Example) -> None:
    [(name, raw)] = yaml.safe_load(example.text).items()
    profile = Profile.from_raw_profile_info(raw, name, ProfileRenderer({}))
    assert isinstance(profile.credentials, Credentials)
    assert profile.credentials.type == "spark_dynamic"
    given = raw["outputs"][raw["target"]]
    known = profile.credentials.to_dict(omit_none=True)
    assert given.keys() - {"type", "threads"} <= known.keys()


def test_every_yaml_example_names_its_file() -> None:
    paths = {example.path for example in examples("yaml")}
    assert paths == {"profiles.yml", "dbt_project.yml", "packages.yml", "models/schema.yml"}


@pytest.mark.parametrize(
    "example",
    [example for example in examples("sql") if not is_model(example)],
    ids=lambda example: example.text.split("\n")[0],
)
def test_every_plain_sql_example_is_readable(example: Example) -> None:
    statements = sqlglot.parse(example.text, dialect=SparkDynamic)
    kinds = {type(statement).__name__ for statement in statements if statement}
    assert kinds and "Command" not in kinds


def test_every_example_in_python_is_python() -> None:
    shown = examples("python")
    assert shown
    for example in shown:
        ast.parse(example.text)


def test_every_language_of_a_block_is_one_that_is_checked_or_plain() -> None:
    assert {e.language for e in EXAMPLES} <= {"sql", "yaml", "python", "csv", "shell", "text", ""}


# Commands and links


def test_every_make_target_in_the_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {m[1] for line in commands() if (m := re.match(r"make ([a-z-]+)", line))}
    assert {"demo", "test", "test-fast", "wheel"} <= named
    assert named <= targets


def test_every_dbt_command_in_the_documents_exists() -> None:
    named = {m[1] for line in commands() if (m := re.match(r"dbt ([a-z-]+)", line))}
    assert {"run", "seed", "deps"} <= named
    assert named <= cli.commands.keys()


def test_every_extra_in_the_documents_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {extra for line in commands() for extra in re.findall(r"'\.\[(\w+)\]'", line)}
    assert {"java", "thrift"} <= named
    assert named <= project["optional-dependencies"].keys()


def anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", document.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    text = BLOCK.sub("", document.read_text())
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, anchor = target.partition("#")
        found = (document.parent / path).resolve() if path else document
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def test_every_file_in_the_architecture_exists() -> None:
    text = section("architecture.md", "The parts")
    named = re.findall(r"`([\w/]+\.py)`", text)
    assert len(named) > 20
    assert [n for n in named if not (ENGINE / n).exists() and not (ADAPTER / n).exists()] == []


# Lists


def first_cells(text: str) -> set[str]:
    """The code words in the first column of the tables of a text."""
    rows = re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE)
    return {word for row in rows for word in re.findall(r"`([^`]+)`", row)}


def test_the_reasons_are_those_of_the_engine() -> None:
    assert first_cells(section("reasons.md", "Reasons")) == set(support.codes())


def reasons() -> dict[str, list[str]]:
    """The rows of the table of reasons by their codes, without links and marks of code."""
    text = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", section("reasons.md", "Reasons"))
    rows = re.findall(r"^\| (`\w+` \|.*) \|$", text, re.MULTILINE)
    cells = [row.replace("`", "").split(" | ") for row in rows]
    return {code: rest for code, *rest in cells}


def test_the_remedies_are_those_of_the_engine() -> None:
    listed = {code: remedy for code, (_, remedy) in reasons().items()}
    assert listed == {code: support.reason(code).remedy for code in support.codes()}


def test_the_numbers_of_the_cost_rule_are_those_of_the_engine() -> None:
    why, _ = reasons()["CHEAPER"]
    assert f"fewer than {cost.SMALL:,} rows" in why and f"{cost.MARGIN} times as long" in why
    in_words = "more than a quarter", "last two incremental", "last two full", "after ten full"
    assert all(words in why for words in in_words)
    assert (cost.LARGE, COMPARED, cost.PATIENCE) == (0.25, 2, 10)


RAISED = ("EngineError", "EmbeddedSparkError", "RefreshError", "StreamError", "DbtRuntimeError",
          "DbtConfigError")  # fmt: skip


def error_codes() -> set[str]:
    """The codes of all errors that are raised with a fixed code."""
    codes = set()
    for path in (ROOT / "adapter").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                first = node.args[0]
                if isinstance(first, ast.JoinedStr):
                    first = first.values[0]
                if node.func.id in RAISED and isinstance(first, ast.Constant):
                    found = re.findall(r"^[A-Z_]{3,}", str(first.value))
                    assert found, f"{path.name}: no code in {first.value!r}"
                    codes |= set(found)
    macros = "".join(path.read_text() for path in (ROOT / "macros" / "operations").glob("*.sql"))
    return codes | {
        "CONFIG_INVALID",
        *re.findall(r'raise_compiler_error\(\s*"([A-Z_]+): ', macros),
    }


def test_the_errors_are_all_listed() -> None:
    codes = error_codes() - set(support.codes())
    assert {"READS_ITSELF", "JAVA_MISSING", "METASTORE_IN_USE"} <= codes
    assert first_cells(section("reasons.md", "Errors")) == codes


def test_the_operations_are_all_listed() -> None:
    texts = [path.read_text() for path in (ROOT / "macros" / "operations").glob("*.sql")]
    defined = {name for text in texts for name in re.findall(r"{% macro (\w+)", text)}
    listed = first_cells(section("operations.md", "All operations"))
    assert listed == defined - {"dynamic_table_shown"}


def test_the_generic_tests_are_all_shown() -> None:
    texts = [path.read_text() for path in (ROOT / "macros" / "generic_tests").glob("*.sql")]
    defined = {name for text in texts for name in re.findall(r"{% test (\w+)", text)}
    shown = yaml.safe_load_all("\n---\n".join(e.text for e in examples("yaml")))
    models = [m for example in shown for m in (example or {}).get("models", []) if "name" in m]
    assert {test for model in models for test in model["data_tests"]} == defined


def test_the_columns_of_the_state_table_are_all_listed() -> None:
    statement = sqlglot.parse_one(create_state_table(TableName("s", "t")), dialect=SparkDynamic)
    columns = {column.name for column in statement.this.expressions}
    assert "relation" in columns
    assert first_cells(section("operations.md", "The state table")) == columns


@pytest.mark.parametrize(
    ("document", "heading"),
    [("configuration.md", "All configs"), ("../README.md", "Configuration")],
)
def test_the_configs_of_dynamic_tables_are_all_listed(document: str, heading: str) -> None:
    assert first_cells(section(document, heading)) == set(OWN_CONFIGS)


def test_the_configs_of_streams_are_all_listed() -> None:
    assert first_cells(section("streams.md", "Configs of a stream")) == set(STREAM_CONFIGS)


# Docstrings


def test_examples_in_docstrings_are_true() -> None:
    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(spark_dynamic.__path__, "spark_dynamic.")
    ]
    results = {module.__name__: doctest.testmod(module) for module in modules}
    assert sum(result.attempted for result in results.values()) > 10
    assert [name for name, result in results.items() if result.failed] == []

"""The dbt project: each query as a table, as dynamic tables, and as people write it by hand."""

import json
import shutil
from pathlib import Path

HERE = Path(__file__).parent
QUERIES = (
    "shipped_lines",
    "order_lines",
    "pricing_summary",
    "revenue_by_nation",
    "revenue_by_customer",
    "order_values",
)
TABLE, AUTO, INCREMENTAL, FULL, HANDWRITTEN = "table", "auto", "incremental", "full", "handwritten"
VARIANTS = (AUTO, INCREMENTAL, FULL, TABLE, HANDWRITTEN)

_CONFIGS = {
    TABLE: "materialized='table'",
    AUTO: "materialized='dynamic_table', refresh_mode='auto'",
    INCREMENTAL: "materialized='dynamic_table', refresh_mode='incremental'",
    FULL: "materialized='dynamic_table', refresh_mode='full'",
    HANDWRITTEN: "materialized='incremental', incremental_strategy='merge', file_format='delta'",
}
_SOURCES = """version: 2
sources:
  - name: tpch
    tables: [{name: nation}, {name: customer}, {name: orders}, {name: lineitem}]
"""


def model_name(query: str, variant: str) -> str:
    """Return the name of the model of a query."""
    return f"{query}__{variant}"


def write_project(folder: Path, queries: list[str], home: Path, memory: str) -> None:
    """Write the project anew."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "models").mkdir(parents=True)
    for query in queries:
        for variant, config in _CONFIGS.items():
            texts = "handwritten" if variant == HANDWRITTEN else "queries"
            text = (HERE / texts / f"{query}.sql").read_text()
            head = f"{{{{ config({config}, tags=['{variant}']) }}}}\n"
            (folder / "models" / f"{model_name(query, variant)}.sql").write_text(head + text)
    (folder / "models" / "sources.yml").write_text(_SOURCES)
    (folder / "macros").mkdir()
    shutil.copy(HERE / "handwritten" / "macros.sql", folder / "macros")
    project = {
        "name": "benchmark",
        "version": "1.0",
        "profile": "benchmark",
        "vars": {"since": {"lineitem": 0, "orders": 0}, "deletes": False},
    }
    profile = {
        "type": "spark_dynamic",
        "schema": "benchmark",
        "threads": 1,
        "home": str(home),
        "server_side_parameters": {
            "spark.driver.memory": memory,
            # Spark does not count the bytes of vectored reads.
            "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
        },
    }
    # YAML reads JSON.
    (folder / "dbt_project.yml").write_text(json.dumps(project))
    profiles = {"benchmark": {"target": "dev", "outputs": {"dev": profile}}}
    (folder / "profiles.yml").write_text(json.dumps(profiles))
    (folder / "packages.yml").write_text(json.dumps({"packages": [{"local": str(HERE.parent)}]}))

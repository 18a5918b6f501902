"""A dbt project on the fake Spark: real manifests and the adapter's own code, no dbt run."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.contracts.graph.manifest import Manifest, ManifestMetadata
from dbt.contracts.graph.nodes import ModelNode
from dbt.selected_resources import set_selected_resources
from fake_delta import DeltaTable, Snapshot
from fake_shop import Shop, small_shop
from fake_warehouse import FakeSpark, FakeWarehouse
from tests.unit.model_nodes import model_node

from dbt.adapters.spark_dynamic import dynamic_tables, state_store
from dbt.adapters.spark_dynamic.dynamic_tables import DynamicTables
from dbt.adapters.spark_dynamic.errors import RefreshError
from dbt.adapters.spark_dynamic.requests import request_for
from dbt.adapters.spark_dynamic.responses import RefreshResponse
from spark_dynamic.clock import micros
from spark_dynamic.frontier.state import StateRow
from spark_dynamic.names import TableName
from spark_dynamic.refresh.request import Request


class StateWarehouse(FakeWarehouse):
    """A session that can also write to the state table, whose rows are kept elsewhere."""

    def jobs(self) -> int:
        """Every statement takes one."""
        return self.count

    def remove_directory(self, path: str) -> bool:
        if not self.spark.removes:
            return False
        kept = {p: at for p, at in self.spark.files.items() if not p.startswith(f"{path}/")}
        self.spark.files = kept
        return True

    def _answer(self, sql: str) -> list[dict[str, Any]]:
        if sql.startswith("CREATE SCHEMA IF NOT EXISTS"):
            return []
        if sql.startswith("CREATE TABLE IF NOT EXISTS"):
            name = TableName("shop", "dynamic_table_refreshes")
            table = DeltaTable(name, "/state")
            table.commit(self.spark.tick(0.001), "CREATE TABLE", Snapshot((), ()), {})
            self.spark.entries[name] = table
            return []
        if sql.startswith("INSERT INTO `shop`.`dynamic_table_refreshes`"):
            table = self.spark.table("shop.dynamic_table_refreshes")
            table.commit(self.spark.tick(0.001), "WRITE", table.newest, self.settings)
            return []
        if sql.startswith("DESCRIBE SCHEMA"):
            return [{"info_name": "Location", "info_value": "file:/warehouse"}]
        if "__dyn" in sql and (listed := re.search(r"binaryFile.`(.*)/{(.*?)}/(.*)`", sql)):
            names = [f"{listed[1]}/{name}" for name in listed[2].split(",")]
            found = self.spark.files.items()
            return [
                {"path": path, "modified": micros(modified)}
                for path, modified in found
                if path.startswith(tuple(f"{name}/" for name in names))
                and ("_delta_log" in path) == ("_delta_log" in listed[3])
            ]
        if "FROM `shop`.`dynamic_table_refreshes`" in sql:
            return [_shown(row) for row in self.spark.state_rows]
        return super()._answer(sql)


def _shown(row: StateRow) -> dict[str, Any]:
    moments = {"started": row.started_at, "ended": row.ended_at, "moment": row.data_timestamp}
    return {
        "relation": row.relation,
        "action": row.refresh_action,
        "state": row.state,
        **{k: m and round(m.timestamp() * 1_000_000) for k, m in moments.items()},
    }


class Cache:
    """dbt's list of what exists, as old as the run; empty if dbt was told not to fill it."""

    def __init__(self, spark: FakeSpark, is_filled: bool = True) -> None:
        self._is_filled = is_filled
        session = FakeWarehouse(spark)
        rows = session._show_extended("shop", "*")
        self._texts = {row["tableName"]: row["information"] for row in rows}

    def __contains__(self, schema: tuple[None, str]) -> bool:
        return self._is_filled

    def get_relations(self, database: None, schema: str) -> list[Any]:
        found = self._texts.items() if schema == "shop" and self._is_filled else ()
        return [SimpleNamespace(identifier=name, information=text) for name, text in found]


@dataclass
class DbtShop:
    """A shop whose models are run as dbt does it; `{ref}` stands for a model in a text."""

    shop: Shop
    configs: dict[str, dict[str, Any]] = field(default_factory=dict)
    rows: list[StateRow] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    flags: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, Any] = field(default_factory=dict)
    # What a variable of the project makes of the texts.
    suffix: str = ""
    statements: dict[str, list[str]] = field(default_factory=dict)
    # The tables that were held and whose grants were to be applied all the same.
    granted: list[str] = field(default_factory=list)
    # The dynamic tables of the newest run.
    running: list[DynamicTables] = field(default_factory=list)

    @property
    def spark(self) -> FakeSpark:
        return self.shop.spark

    def model(self, name: str, sql: str, **config: Any) -> None:
        self.shop.models[name] = sql
        self.configs[name] = {"materialized": "dynamic_table", **config}

    def manifest(self) -> Manifest:
        nodes = [self._node(name) for name in self.shop.models]
        return Manifest(
            nodes={node.unique_id: node for node in nodes},
            metadata=ManifestMetadata(adapter_type="spark_dynamic"),
        )

    def _node(self, name: str) -> ModelNode:
        sql = self.shop.models[name]
        read = [m for m in self.shop.models if m != name and f"shop.{m}" in sql]
        return model_node(
            name,
            self.configs[name],
            raw_code=sql,
            depends_on={"macros": [], "nodes": [f"model.shop.{m}" for m in read]},
        )

    def adapter(self, manifest: Manifest | None = None) -> Any:
        credentials = SimpleNamespace(
            schema="shop", state_schema=None, server_side_parameters=self.shop.settings
        )
        return SimpleNamespace(
            config=SimpleNamespace(
                credentials=credentials,
                args=SimpleNamespace(**self.flags),
                cli_vars=self.variables,
                vars=None,
            ),
            spark=self.spark,
            session_settings=dict,
            cache=Cache(self.spark, self.flags.get("POPULATE_CACHE", True)),
            warn=self.warnings.append,
            tell=self.told.append,
            _macro_resolver=manifest or self.manifest(),
        )

    def request(self, adapter: Any, name: str) -> Request:
        node = adapter._macro_resolver.nodes[f"model.shop.{name}"]
        sql = node.raw_code + self.suffix
        full = bool(self.flags.get("FULL_REFRESH"))
        relation = SimpleNamespace(schema="shop", identifier=name)
        return request_for(adapter, node.to_dict(), relation, sql, full)

    def run(self, *names: str, after: float = 60) -> dict[str, str]:
        """Run models, or all; return each one's line, or the error's first line."""
        return {name: str(found) for name, found in self.responses(*names, after=after).items()}

    def responses(self, *names: str, after: float = 60) -> dict[str, RefreshResponse | str]:
        self.spark.tick(after)
        chosen = [name for name in self.shop.models if not names or name in names]
        set_selected_resources({f"model.shop.{name}" for name in chosen})
        adapter = self.adapter()
        tables = DynamicTables(adapter)
        self.running[:] = [tables]
        found: dict[str, RefreshResponse | str] = {}
        for name in chosen:
            if self.configs[name]["materialized"] == "view":
                self.spark.create_view(f"shop.{name}", self.shop.models[name])
                continue
            if self.configs[name]["materialized"] == "table":
                self._write_table(name)
                tables.note_written(TableName("shop", name))
                continue
            begin = len(self.spark.log)
            try:
                request = self.request(adapter, name)
                response = tables.held(request)
                if response and tables.describe(request):
                    self.granted.append(name)
                if response is None:
                    planned = tables.plan(request)
                    response = tables.run(planned)
                    self.warnings += planned.warnings
                found[name] = response
            except RefreshError as error:
                found[name] = str(error.msg).splitlines()[0]
            self.statements[name] = self.spark.log[begin:]
        tables.flush()
        return found

    def _write_table(self, name: str) -> None:
        """Do what dbt does with a model that is a table: overwrite it, or make it."""
        found = FakeWarehouse(self.spark)._result(self.shop.models[name])
        if self.spark.exists(f"shop.{name}"):
            self.spark.write(f"shop.{name}").overwrite(*found.rows)
        else:
            columns = {column.name: column.type for column in found.columns}
            self.spark.create(f"shop.{name}", columns, *found.rows)


@contextmanager
def dbt_shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[DbtShop]:
    """Yield a shop; the adapter's sessions are fake ones."""
    made = DbtShop(small_shop())
    made.spark.state_rows = made.rows
    # Every period up to 48 · 2¹⁰ seconds has a point here.
    made.spark.clock += timedelta(seconds=-made.spark.clock.timestamp() % (48 * 2**10))
    monkeypatch.setattr(
        dynamic_tables, "DbtWarehouse", lambda adapter: StateWarehouse(adapter.spark)
    )
    append = state_store.append_rows

    def append_and_keep(table: TableName, rows: list[StateRow]) -> str:
        made.rows += rows
        return append(table, rows)

    monkeypatch.setattr(state_store, "append_rows", append_and_keep)
    monkeypatch.delenv("SPARK_DYNAMIC_REFRESH", raising=False)
    yield made
    set_selected_resources(set())

"""`changes()`, `upserts()` and `integrate()` in models, tests, analyses and `dbt show`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.spark_dynamic.asked import is_partial
from dbt.adapters.spark_dynamic.config import MATERIALIZATION, read_config
from dbt.adapters.spark_dynamic.dynamic_tables import DynamicTables
from dbt.adapters.spark_dynamic.errors import ChangesError
from dbt.adapters.spark_dynamic.requests import result_settings
from dbt.adapters.spark_dynamic.stream_positions import StreamPositions
from dbt.adapters.spark_dynamic.unit_test_inputs import with_inputs
from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse
from spark_dynamic.catalog import describe_query
from spark_dynamic.changes.asked import AT_LEAST
from spark_dynamic.changes.columns import ACTION, DIFF
from spark_dynamic.changes.integrate import latest, own_columns, summed
from spark_dynamic.changes.points import Asking, position_of
from spark_dynamic.changes.read import ChangeRead, Mode, change_select, position_now
from spark_dynamic.changes.stream_config import OtherPosition
from spark_dynamic.changes.upserts import upsert_select
from spark_dynamic.changes.window import window_of
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.names import TableName
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.support import NotIncremental

if TYPE_CHECKING:
    from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter

_EMPTY = "SELECT * FROM (\n{}\n) WHERE false"


class ChangeQueries:
    """What the macros ask; every answer is a relation in parentheses."""

    def __init__(self, adapter: "SparkDynamicAdapter", tables: DynamicTables) -> None:
        self._adapter = adapter
        self._tables = tables

    def changes(
        self,
        relation_or_sql: Any,
        since: Any,
        *,
        until: Any = None,
        mode: str = "min_delta",
        bound: str = "strict",
        initial_rows: bool = False,
        unique_key: Any = None,
        row_keys: Any = None,
        model: Any = None,
        as_upserts: bool = False,
    ) -> str:
        """Return what changed between two points."""
        if _kind(model) == "unit_test":
            # The rows that the test gives stand for the changes.
            return (
                str(relation_or_sql) if _is_relation(relation_or_sql) else f"({relation_or_sql})"
            )
        with _reported():
            read = ChangeRead(
                sql=_query(relation_or_sql),
                schema=self._adapter.config.credentials.schema,
                settings=result_settings(self._adapter),
                mode=_mode(mode),
                unique_key=tuple(_names(unique_key)),
                row_keys=self._row_keys(row_keys),
            )
            if _is_dynamic_table(model):
                longest = read_config(model).max_changes_window
                window = window_of(
                    read,
                    since,
                    longest,
                    until=until,
                    bound=bound,
                    initial_rows=bool(initial_rows),
                    as_upserts=as_upserts,
                )
                if not is_partial(self._adapter):
                    relation = TableName.of(model["schema"], model["alias"])
                    return self._tables.windows.define(model["unique_id"], relation, window).sql
                # Nothing is left of such a run, so nothing is kept for it either.
                bound = AT_LEAST
            cycle, warehouse = self._tables.cycle(), DbtWarehouse(self._adapter)
            end = position_now(read, cycle, warehouse)
            if until is not None:
                point = self._point(until, cycle, warehouse)
                end = position_of(Asking("until", point, bound), read, cycle, warehouse)
            point = self._point(since, cycle, warehouse)
            start = position_of(Asking("since", point, bound), read, cycle, warehouse)
            if as_upserts:
                sql = upsert_select(read, start, end, cycle, warehouse)
            else:
                sql = change_select(read, start, end, cycle, warehouse, bool(initial_rows))
        if getattr(relation_or_sql, "limit", None) == 0:
            sql = _EMPTY.format(sql)
        return f"(\n{sql}\n)"

    def integrated(
        self,
        changelog: Any,
        *,
        columns: Any = None,
        unique_key: Any = None,
        order_by: Any = None,
        deletes: str | None = None,
        model: Any = None,
    ) -> str:
        """Return the table that a changelog adds up to."""
        with _reported():
            rows = str(changelog)
            if self._tables.windows.is_one(rows):
                raise EngineError(
                    "CHANGES_NOT_MAINTAINED",
                    "integrate() cannot take changes() inside of a dynamic_table, whose columns "
                    "are not known before they are kept. Keep the changes in one model, and let "
                    "another one integrate them.",
                )
            if getattr(changelog, "is_cte", False) and _kind(model) != "unit_test":
                raise _ephemeral(changelog)
            every = with_inputs(self._adapter, model, rows)
            found = describe_query(DbtWarehouse(self._adapter), every)
            known = {column.name.lower() for column in found}
            wanted, key, order = _names(columns), _names(unique_key), _names(order_by)
            given = {"columns": wanted, "unique_key": key, "order_by": order}
            for argument, names in given.items():
                unknown = sorted({name.lower() for name in names} - known)
                if unknown:
                    raise EngineError(
                        "COLUMN_UNKNOWN",
                        f"{argument} names {', '.join(unknown)}. Expected columns of the "
                        f"changelog: {', '.join(column.name for column in found)}.",
                    )
            chosen = {name.lower() for name in wanted}
            shown = [c for c in own_columns(found) if not wanted or c.name.lower() in chosen]
            if unique_key:
                sql = latest(rows, shown, key, order, deletes or "", found)
            elif {DIFF, ACTION} & known:
                sql = summed(rows, shown, DIFF in known)
            else:
                raise EngineError(
                    "CHANGELOG_NOT_KNOWN",
                    f"integrate() adds up {DIFF} or {ACTION}, and the changelog has neither. Name "
                    "a unique_key to take the last row of each key instead.",
                )
        return f"(\n{sql}\n)"

    def _point(self, given: Any, cycle: Cycle, warehouse: DbtWarehouse) -> Any:
        """Return a point; that of a stream or of its consumer as a position."""
        if not isinstance(given, Mapping) or "stream" not in given:
            return given
        other = OtherPosition(str(given["stream"]), str(given.get("consumer") or ""))
        return StreamPositions(self._adapter, self._tables).of(other, cycle, warehouse)

    def _row_keys(self, given: Any) -> dict[TableName, tuple[str, ...]]:
        keys: dict[TableName, tuple[str, ...]] = {}
        for table, columns in dict(given or {}).items():
            if _is_relation(table):
                name = TableName.of(table.schema, table.identifier)
            else:
                name = TableName.parse(str(table))
                if "." not in str(table):
                    name = TableName.of(self._adapter.config.credentials.schema, str(table))
            keys[name] = tuple(_names(columns))
        return keys


class _reported:
    """Lets dbt show the engine's errors."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, EngineError | NotIncremental):
            raise ChangesError(str(error)) from error
        if isinstance(error, WarehouseError):
            raise DbtDatabaseError(str(error)) from error


def _kind(model: Any) -> str:
    return str(model.get("resource_type", "")) if isinstance(model, Mapping) else ""


def _is_dynamic_table(model: Any) -> bool:
    config = model.get("config") if isinstance(model, Mapping) else None
    return config is not None and config.get("materialized") == MATERIALIZATION


def _is_relation(value: Any) -> bool:
    return hasattr(value, "identifier") and hasattr(value, "schema")


def _query(relation_or_sql: Any) -> str:
    """Return the query that is meant: a text, or all of a relation."""
    if _is_relation(relation_or_sql):
        if relation_or_sql.is_cte:
            raise _ephemeral(relation_or_sql)
        name = TableName.of(relation_or_sql.schema, relation_or_sql.identifier)
        return f"SELECT * FROM {name.sql}"
    text = str(relation_or_sql).strip().removesuffix(";")
    return text if any(letter.isspace() for letter in text) else f"SELECT * FROM {text}"


def _ephemeral(relation: Any) -> EngineError:
    return EngineError(
        "CHANGES_OF_EPHEMERAL",
        f"{relation.identifier} is an ephemeral model, which is nowhere but in the query that "
        "reads it. Make it a view, or give its query in parentheses instead.",
    )


def _mode(mode: Any) -> Mode:
    try:
        return Mode(str(mode).lower())
    except ValueError as error:
        expected = ", ".join(f"'{known.value}'" for known in Mode)
        raise EngineError(
            "CHANGE_MODE_NOT_KNOWN", f"Invalid mode '{mode}'. Expected one of {expected}."
        ) from error


def _names(value: Any) -> Sequence[str]:
    if not value:
        return []
    return [value] if isinstance(value, str) else [str(name) for name in value]

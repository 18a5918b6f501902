"""`changes()`, `upserts()` and `integrate()` in models, tests, analyses and `dbt show`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.spark_dynamic.asked import is_partial
from dbt.adapters.spark_dynamic.config import MATERIALIZATION, read_config
from dbt.adapters.spark_dynamic.dynamic_tables import DynamicTables
from dbt.adapters.spark_dynamic.errors import ChangesError
from dbt.adapters.spark_dynamic.given import is_relation, names_of, row_keys_of
from dbt.adapters.spark_dynamic.requests import as_read, result_settings
from dbt.adapters.spark_dynamic.stream_positions import StreamPositions
from dbt.adapters.spark_dynamic.unit_test_inputs import with_inputs
from dbt.adapters.spark_dynamic.warehouse import DbtWarehouse
from spark_dynamic.catalog import describe_query
from spark_dynamic.changes.asked import AT_LEAST
from spark_dynamic.changes.columns import ACTION, DIFF, with_changes
from spark_dynamic.changes.integrate import latest, own_columns, summed
from spark_dynamic.changes.point import BEFORE_THE_FIRST_CHANGE
from spark_dynamic.changes.points import Asking, position_of, start_of
from spark_dynamic.changes.question import ask
from spark_dynamic.changes.read import ChangeRead, Mode, change_select, position_now
from spark_dynamic.changes.stream import Stream
from spark_dynamic.changes.upstream_keys import with_upstream_keys
from spark_dynamic.changes.window import Window, window_of
from spark_dynamic.errors import EngineError, WarehouseError
from spark_dynamic.names import TableName
from spark_dynamic.support import NotIncremental
from spark_dynamic.warehouse import Column

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
        mode: str | None = None,
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
            return str(relation_or_sql) if is_relation(relation_or_sql) else f"({relation_or_sql})"
        with _reported():
            stream = self._stream(relation_or_sql)
            read = self._read(stream, relation_or_sql, mode, unique_key, row_keys)
            read = replace(read, upserts=read.upserts or as_upserts)
            if _is_dynamic_table(model):
                longest = read_config(model).max_changes_window
                window = window_of(
                    read,
                    since,
                    longest,
                    until=until,
                    bound=bound,
                    initial_rows=bool(initial_rows),
                )
                if not is_partial(self._adapter):
                    relation = TableName.of(model["schema"], model["alias"])
                    return self._tables.windows.define(model["unique_id"], relation, window).sql
                # Nothing is left of such a run, so nothing is kept for it either.
                bound = AT_LEAST
            cycle, warehouse = self._tables.cycle(), DbtWarehouse(self._adapter)
            if stream is None:
                # A stream has those that it was built with, and a window finds them itself.
                read = with_upstream_keys(read, cycle, warehouse)
            places = StreamPositions(self._adapter, self._tables).places(warehouse)
            end = position_now(read, cycle, warehouse)
            if until is not None:
                asking = Asking("until", _named_point(until), bound)
                end = position_of(asking, read, cycle, warehouse, places=places)
            asking = Asking("since", _named_point(since), bound)
            start = start_of(asking, read, cycle, warehouse, places=places)
            # A table may have been made with rows.
            initial_rows = initial_rows or asking.point == BEFORE_THE_FIRST_CHANGE
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
            if getattr(changelog, "is_cte", False) and _kind(model) != "unit_test":
                raise _ephemeral(changelog)
            window = self._tables.windows.named(rows)
            if window is not None and not unique_key:
                raise EngineError(
                    "CHANGES_NOT_MAINTAINED",
                    "integrate() without a unique_key adds up all changes from the first one on, "
                    "and a dynamic_table keeps those of the last hours or days. Name a "
                    "unique_key: the last row of each key that has changed in that time.",
                )
            found = self._columns(rows, window, model)
            known = {column.name.lower() for column in found}
            wanted, key, order = names_of(columns), names_of(unique_key), names_of(order_by)
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

    def _columns(self, changelog: str, window: Window | None, model: Any) -> tuple[Column, ...]:
        """Return the columns of a changelog; a window need not be there yet."""
        warehouse = DbtWarehouse(self._adapter)
        if window is not None:
            columns = ask(window.read, self._tables.cycle(), warehouse).layout.columns
            return with_changes(columns, window.read.mode is Mode.REDO_LOG)
        return describe_query(warehouse, with_inputs(self._adapter, model, changelog))

    def _read(
        self,
        stream: Stream | None,
        relation_or_sql: Any,
        mode: Any,
        unique_key: Any,
        row_keys: Any,
    ) -> ChangeRead:
        """Return what is asked; of a stream, what it shows unless something else is given."""
        keys = row_keys_of(self._adapter, row_keys)
        if stream is not None:
            return replace(
                stream.read,
                mode=_mode(mode) if mode else stream.read.mode,
                unique_key=tuple(names_of(unique_key)) or stream.read.unique_key,
                row_keys=keys or stream.read.row_keys,
            )
        return ChangeRead(
            sql=as_read(self._adapter, _query(relation_or_sql))[0],
            schema=self._adapter.config.credentials.schema,
            settings=result_settings(self._adapter),
            mode=_mode(mode or Mode.MIN_DELTA.value),
            unique_key=tuple(names_of(unique_key)),
            row_keys=keys,
        )

    def _stream(self, relation_or_sql: Any) -> Stream | None:
        """Return the stream that a relation is, if it is one of the project's."""
        if not is_relation(relation_or_sql):
            return None
        positions = StreamPositions(self._adapter, self._tables)
        name = TableName.of(relation_or_sql.schema, relation_or_sql.identifier)
        node = positions.stream_at(name)
        return positions.stream(node, DbtWarehouse(self._adapter)) if node is not None else None


class _reported:
    """Lets dbt show the engine's errors."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, EngineError | NotIncremental):
            raise ChangesError(str(error)) from error
        if isinstance(error, WarehouseError):
            raise DbtDatabaseError(error.report) from error


def _kind(model: Any) -> str:
    return str(model.get("resource_type", "")) if isinstance(model, Mapping) else ""


def _is_dynamic_table(model: Any) -> bool:
    config = model.get("config") if isinstance(model, Mapping) else None
    return config is not None and config.get("materialized") == MATERIALIZATION


def _named_point(given: Any) -> Any:
    """Return a point in which models are named by texts; a relation alone is a dynamic table."""
    if is_relation(given):
        return {"dynamic_table": _name_in(given)}
    if isinstance(given, Mapping):
        return {key: _name_in(value) for key, value in given.items()}
    return given


def _name_in(value: Any) -> Any:
    return str(TableName.of(value.schema, value.identifier)) if is_relation(value) else value


def _query(relation_or_sql: Any) -> str:
    """Return the query that is meant: a text, or all of a relation."""
    if is_relation(relation_or_sql):
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

"""Which dynamic tables this invocation refreshes, decided once, when its cycle opens."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from dbt.adapters.spark_dynamic.errors import RefreshError
from dbt.adapters.spark_dynamic.project import Project, short_hash
from dbt.adapters.spark_dynamic.responses import RefreshResponse, held_response
from spark_dynamic.apply.storage import views_with_storage
from spark_dynamic.catalog import Catalog
from spark_dynamic.frontier.settled import Settled
from spark_dynamic.frontier.state import KnownState
from spark_dynamic.names import TableName
from spark_dynamic.refresh.request import Request
from spark_dynamic.schedule.causes import Why
from spark_dynamic.schedule.due import what_is_due
from spark_dynamic.schedule.known import Known
from spark_dynamic.schedule.lateness import expected_lateness, lateness_of
from spark_dynamic.schedule.remembered import Marks
from spark_dynamic.schedule.situation import Asked, Situation
from spark_dynamic.schedule.status import not_due_line, status_of
from spark_dynamic.support import NONE, reason
from spark_dynamic.warehouse import Warehouse

if TYPE_CHECKING:
    from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter

# The names of all relations in a schema; a schema is missing if nobody has listed them.
Listed = dict[str, Collection[str]]


class RunSchedule:
    """The verdicts on all dynamic tables of a project."""

    def __init__(
        self, project: Project, known: KnownState, now: datetime, asked: Asked, listed: Listed
    ) -> None:
        self.project = project
        self.remembered = known.tables
        self.situation = Situation(
            graph=project.graph,
            known=_known_now(project, known, listed),
            now=now,
            asked=asked,
            lateness=expected_lateness(known.lateness.values()),
        )
        self.verdicts = what_is_due(self.situation)

    @property
    def lateness(self) -> dict[datetime, timedelta]:
        """How long after a grid point this run came, if it found a table due by its period."""
        late = lateness_of(self.situation, self.verdicts)
        return {} if late is None else {self.situation.now: late}

    def data_timestamp(self, request: Request) -> datetime | None:
        """Return the data timestamp that was chosen for a table; None leaves it to its cut."""
        verdict = self.verdicts.get(str(request.view))
        return verdict.data_timestamp if verdict else None

    def settled(self) -> list[Settled]:
        """Return what is written down of the due tables that were found right."""
        due = (self.remembered.get(name) for name, v in self.verdicts.items() if v.is_due)
        return [found.settled for found in due if found and found.settled]

    def marks_of(self, request: Request) -> Marks:
        """Return the marks of a model whose text was compiled."""
        table = self.project.tables.get(str(request.view))
        marks = table.marks if table else Marks()
        return Marks(marks.definition, short_hash(request.sql), marks.config)

    def held(self, request: Request) -> RefreshResponse | None:
        """Return what to report of a table that is not refreshed now; None if it is."""
        name = str(request.view)
        verdict = self.verdicts.get(name)
        if verdict is None or verdict.is_due:
            return None
        known = self.situation.known_of(name)
        line, why = "", NONE
        match verdict.why:
            case Why.NOT_DUE:
                if self._is_compiled_otherwise(request):
                    return None
                line = not_due_line(status_of(self.situation, name), self.situation.now)
            case Why.WAITING:
                line = f"WAITING for {', '.join(verdict.waits_for)}"
            case Why.SUSPENDED_BY_A_PERSON:
                why = reason(verdict.why, name)
                line = f"SUSPENDED ({why.code})"
            case _:
                raise RefreshError(
                    f"SUSPENDED: {failures(known.errors_in_a_row, name)}, so "
                    "it is not tried any more. When the cause is mended, resume it with "
                    f"dbt run-operation dynamic_table_resume --args "
                    f"'{{models: {request.model.rpartition('.')[2]}}}'."
                )
        return held_response(line, request, why, known.data_timestamp)

    def is_first_met(self, name: str) -> bool:
        """Tell whether a table that is built by schedule has to be written down now."""
        known, verdict = self.situation.known_of(name), self.verdicts.get(name)
        is_held = verdict is not None and verdict.why is Why.NOT_DUE
        return is_held and not known.timestamps and known.seen_at is None

    def _is_compiled_otherwise(self, request: Request) -> bool:
        """Tell whether a text is another than at the last refresh, by a variable for instance."""
        found = self.remembered.get(str(request.view))
        then = found.marks.text if found else ""
        return bool(then) and then != self.marks_of(request).text


def failures(count: int, name: str) -> str:
    """Say how often a table has failed.

    >>> failures(1, "shop.totals")
    'The last refresh of shop.totals failed'
    """
    last = "The last refresh" if count == 1 else f"The last {count} refreshes"
    return f"{last} of {name} failed"


def _known_now(project: Project, known: KnownState, listed: Listed) -> dict[str, Known]:
    # What is whole: a view, and a storage behind it.
    whole = {schema: views_with_storage(n).intersection(n) for schema, n in listed.items()}
    found = {}
    for name, table in project.tables.items():
        remembered = known.tables.get(name)
        if remembered is None:
            continue
        now = remembered.now(table.marks)
        there = whole.get(table.name.schema)
        if there is not None and table.name.name not in there:
            # Somebody dropped it, as far as anyone has looked.
            now = replace(now, timestamps=(), durations=())
        found[name] = now
    return found


def listed_relations(
    adapter: "SparkDynamicAdapter", project: Project, catalog: Catalog, warehouse: Warehouse
) -> Listed:
    """Return what exists in the project's schemas, by dbt's cache where it was filled.

    Under --no-populate-cache it was not, and the catalog is asked instead.
    """
    return {
        schema: {r.identifier.lower() for r in adapter.cache.get_relations(None, schema)}
        if (None, schema) in adapter.cache
        else catalog.tables(warehouse, name)
        for schema, name in project.schemas.items()
    }


def listed_texts(adapter: "SparkDynamicAdapter", project: Project) -> dict[TableName, str]:
    """Return what the catalog said of the project's relations when dbt listed them.

    Other nodes may have changed some since, but no dynamic table: they are written in the cycle.
    """
    return {
        TableName.of(schema, relation.identifier): relation.information
        for schema in project.schemas
        for relation in adapter.cache.get_relations(None, schema)
        if relation.information
    }

"""Operations on the schedule: suspend, resume, refresh now, and how each table stands."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any, Final

import agate
from dbt_common.exceptions import DbtBaseException, DbtRuntimeError

from dbt.adapters.spark_dynamic.asked import REFRESH_VARIABLE
from dbt.adapters.spark_dynamic.config import lenient_config
from dbt.adapters.spark_dynamic.errors import RefreshError, reported
from dbt.adapters.spark_dynamic.operations import Operations, as_list, text_table
from dbt.adapters.spark_dynamic.planned_refresh import PlannedRefresh, QuietRefresh
from dbt.adapters.spark_dynamic.responses import RefreshResponse
from dbt.adapters.spark_dynamic.run_schedule import RunSchedule, failures
from dbt.adapters.spark_dynamic.state_rows import event_row
from spark_dynamic.config import DOWNSTREAM
from spark_dynamic.duration import format_duration
from spark_dynamic.frontier.refreshes import read_refreshes, refreshes_since
from spark_dynamic.schedule.known import Refresh
from spark_dynamic.schedule.lag_numbers import lag_numbers
from spark_dynamic.schedule.remembered import RESUMED, SUSPENDED
from spark_dynamic.schedule.situation import Asked
from spark_dynamic.schedule.status import status_of

# Peaks, troughs and shares are those of so much time.
_LOOKED_AT: Final = timedelta(days=7)
_STATUS: Final = [
    "table", "state", "target lag", "lag", "next due", "peak", "trough", "within target", "errors",
]  # fmt: skip
_TARGETS: Final = ["relation", "target_lag_seconds", "period_seconds", "suspend_after"]


class ScheduleOperations(Operations):
    """What `dbt run-operation` can do to the schedule."""

    def suspend(self, models: Any) -> agate.Table:
        """Keep tables from being refreshed until they are resumed."""
        return self._switch(models, SUSPENDED)

    def resume(self, models: Any) -> agate.Table:
        """Let tables be refreshed again; errors count anew."""
        return self._switch(models, RESUMED)

    def refresh(self, models: Any) -> agate.Table:
        """Refresh tables now, together with the dynamic tables that they are made of."""
        wanted = {self._relation(node) for node in self._nodes(models)}
        tables, rows, failed = self._tables, [], []
        with reported():
            schedule = tables.begin(lambda project: _all_of(project.with_upstreams(wanted)))
            for name in schedule.project.graph.order:
                if name not in schedule.verdicts:
                    continue
                node = schedule.project.tables[name].node
                request = replace(self._request(node), is_forced=True)
                try:
                    response = tables.held(request) or self._refresh(node, tables.plan(request))
                    rows.append([name, response._message])
                except DbtBaseException as error:
                    failed.append(name)
                    rows.append([name, f"ERROR {str(error).strip().splitlines()[-1].strip()}"])
            tables.flush()
        if failed:
            shown = "\n".join(f"{name}: {line}" for name, line in rows)
            raise DbtRuntimeError(f"NOT_REFRESHED: Not all tables could be refreshed.\n{shown}")
        return text_table(["table", "status"], rows)

    def _refresh(self, node: Any, planned: PlannedRefresh | QuietRefresh) -> RefreshResponse:
        """Run a plan as far as it can be run outside of a model; say what was left out."""
        config, how = node.config, f"{REFRESH_VARIABLE}=all dbt run --select {node.name}"
        if planned.makes_storage and (config.grants or config.contract.enforced):
            raise RefreshError(
                f"NEEDS_DBT_RUN: A new table is made for {node.name}, and its grants and the "
                "columns of its contract are looked after by dbt run alone. Nothing was changed; "
                f"use {how}."
            )
        is_owed = planned.hooks_to_run and config.post_hook
        if is_owed or (planned.writes and config.pre_hook):
            self._adapter.warn(f"The hooks of {node.name} are not run. To run them: {how}.")
        response = self._tables.run(planned)
        for text in planned.warnings:
            self._adapter.warn(text)
        return response

    def status(self, models: Any = None) -> agate.Table:
        """Return how each dynamic table stands: its lag, its target, when it is due next."""
        cycle, warehouse = self._tables.look()
        schedule = self._tables.schedule(cycle, Asked())
        names = list(schedule.project.graph.order)
        if models:
            chosen = {self._relation(node) for node in self._nodes(models)}
            names = [name for name in names if name in chosen]
        now, found = cycle.data_timestamp, dict[str, list[Refresh]]()
        if cycle.known.exists:
            with reported():
                query = refreshes_since(self._tables.state.table, now - _LOOKED_AT)
                found = read_refreshes(warehouse.rows(query))
        rows = [_status_row(schedule, name, found.get(name, [])) for name in names]
        return text_table(_STATUS, rows)

    def lag_problems(self, model: str) -> agate.Table:
        """Return what keeps a table from being within its target lag; no row if nothing does."""
        schedule, name = self._look_at(model)
        status = status_of(schedule.situation, name)
        problems = []
        if status.target_lag is not None:
            target = format_duration(status.target_lag)
            if status.lag is None:
                problems = [f"{name} is not built yet; its target lag is {target}."]
            elif status.lag > status.target_lag:
                lag = format_duration(status.lag)
                problems = [f"{name} has a lag of {lag}; its target lag is {target}."]
        return text_table(["problem"], [[problem] for problem in problems])

    def error_problems(self, model: str) -> agate.Table:
        """Return one row if the last refresh of a table failed."""
        schedule, name = self._look_at(model)
        errors = schedule.situation.known_of(name).errors_in_a_row
        text = f"{failures(errors, name)}."
        return text_table(["problem"], [[text]] if errors else [])

    def targets(self) -> agate.Table:
        """Return what was set for each dynamic table: its lag and period in seconds, if any."""
        cycle, _ = self._tables.look()
        schedule = self._tables.schedule(cycle, Asked())
        rows = []
        for name in schedule.project.graph.order:
            found = status_of(schedule.situation, name)
            after = schedule.project.graph.models[name].suspend_after
            rows.append([name, _seconds(found.target_lag), _seconds(found.period), after])
        return text_table(_TARGETS, rows)

    def _look_at(self, model: str) -> tuple[RunSchedule, str]:
        name = self._relation(self._node(model))
        cycle, _ = self._tables.look()
        return self._tables.schedule(cycle, Asked()), name

    def _switch(self, models: Any, action: str) -> agate.Table:
        nodes = self._nodes(models)
        cycle, warehouse = self._tables.look()
        for node in nodes:
            mode = lenient_config(node.config.to_dict(omit_none=True)).refresh_mode.value
            row = (self._relation(node), node.unique_id, mode, action, cycle, warehouse.now())
            cycle.events.append(event_row(*row))
        with reported():
            self._tables.state.write(warehouse, cycle, {})
        return text_table(["table", "state"], [[self._relation(n), action] for n in nodes])

    def _nodes(self, models: Any) -> list[Any]:
        names = as_list(models)
        if not names:
            raise DbtRuntimeError(
                "ARGUMENT_INVALID: Invalid value for `models`: none. Expected a model or a list."
            )
        return [self._node(name) for name in names]


def aligned(table: agate.Table) -> str:
    """Return a table as text, all of it."""
    text = StringIO()
    everything = {"max_rows": len(table.rows), "max_columns": len(table.columns)}
    table.print_table(output=text, max_column_width=200, **everything)
    return text.getvalue().rstrip()


def _all_of(names: set[str]) -> Asked:
    return Asked(selected=names, force=True)


def _status_row(schedule: RunSchedule, name: str, refreshes: Iterable[Refresh]) -> list[Any]:
    situation, verdict = schedule.situation, schedule.verdicts[name]
    status, known = status_of(situation, name), situation.known_of(name)
    now = situation.now
    numbers = lag_numbers(refreshes, status.target_lag, now - _LOOKED_AT, now)
    share = numbers.share_within_target if numbers else None
    due = status.next_due
    # What waits, or is needed by nobody, has a grid point behind it and is not due all the same.
    when = f"{due:%Y-%m-%d %H:%M:%S} UTC" if due and due > now else None
    return [
        name,
        "DUE" if verdict.is_due else str(verdict.why),
        _target(schedule, name),
        None if status.lag is None else format_duration(status.lag),
        "now" if verdict.is_due else when,
        format_duration(numbers.peak) if numbers else None,
        format_duration(numbers.trough) if numbers else None,
        None if share is None else f"{share:.1%}",
        known.errors_in_a_row,
    ]


def _seconds(duration: timedelta | None) -> int | None:
    return None if duration is None else int(duration.total_seconds())


def _target(schedule: RunSchedule, name: str) -> str:
    own = schedule.project.graph.models[name].target_lag
    found = status_of(schedule.situation, name).target_lag
    text = "every run" if own is None else format_duration(found) if found else "on demand"
    return f"{DOWNSTREAM}: {text}" if own == DOWNSTREAM else text

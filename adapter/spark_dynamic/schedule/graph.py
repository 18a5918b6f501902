"""The dynamic tables of a project, and who reads whom."""

from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter

from spark_dynamic.config import DynamicTableConfig
from spark_dynamic.schedule.lags import TargetLag, effective_lags


@dataclass(frozen=True)
class Model:
    """What the schedule has to know of one dynamic table.

    `upstreams` are the dynamic tables that it reads: directly, or through views and ephemeral
    models. A table in between is a base table, which has versions of its own.
    """

    target_lag: TargetLag = None
    upstreams: tuple[str, ...] = ()
    suspend_after: int = DynamicTableConfig.suspend_after
    # The first build waits for a grid point: `initialize: on_schedule`.
    is_built_by_schedule: bool = False


class Graph:
    """All dynamic tables of a project, in an order in which upstreams come first."""

    def __init__(self, models: Mapping[str, Model]) -> None:
        self.models = dict(models)
        # What is read but not part of the project is never refreshed by it.
        self.upstreams = {
            name: tuple(dict.fromkeys(u for u in model.upstreams if u in self.models))
            for name, model in self.models.items()
        }
        self.order = tuple(TopologicalSorter(self.upstreams).static_order())
        self.consumers: dict[str, list[str]] = {name: [] for name in self.order}
        for name in self.order:
            for upstream in self.upstreams[name]:
                self.consumers[upstream].append(name)
        targets = {name: model.target_lag for name, model in self.models.items()}
        self.lags = effective_lags(targets, self.order, self.consumers)

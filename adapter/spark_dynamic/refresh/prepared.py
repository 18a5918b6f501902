"""The changes of an incremental refresh, computed before its pre-hooks and written after them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from spark_dynamic.refresh.incremental import (
    CachedViews,
    IncrementalRefresh,
    Work,
    Write,
    settings_for,
)
from spark_dynamic.settings import holding
from spark_dynamic.warehouse import Warehouse


@dataclass(frozen=True)
class Prepared:
    """What the write of a refresh needs. All of it is read at versions that no hook can change."""

    work: Work
    # None if the changes cancel out.
    write: Write | None
    _settings: Mapping[str, str]
    _views: CachedViews

    @contextmanager
    def statement(self, warehouse: Warehouse) -> Iterator[Write | None]:
        """Let the statement be run; what was computed for it goes with the block."""
        with holding(warehouse, self._settings):
            try:
                yield self.write
            finally:
                self.drop()

    def drop(self) -> None:
        """Let go of what was computed, if it is still there."""
        self._views.drop()


def prepare(work: Work, warehouse: Warehouse) -> Prepared:
    """Compute the changes and keep them; the settings for it do not reach the hooks."""
    views, settings = CachedViews(warehouse), settings_for(work, warehouse)
    try:
        with holding(warehouse, settings):
            write = IncrementalRefresh(work, views, warehouse).statement()
    except BaseException:
        views.drop()
        raise
    return Prepared(work, write, settings, views)

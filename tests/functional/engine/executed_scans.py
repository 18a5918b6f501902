"""What Spark has read: the scans of the queries that it ran, with the numbers it kept of them."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

_FILES, _ROWS = "number of files read", "number of output rows"
# A scan says where it reads; this much of it is kept.
_LENGTH = "spark.sql.maxMetadataStringLength"


@dataclass(frozen=True)
class Scan:
    """One scan of one query."""

    text: str
    files: int
    rows: int


class Scans:
    """The scans of all queries that were run since this was made."""

    def __init__(self, session: SparkSession) -> None:
        self._session: Any = session
        session.conf.set(_LENGTH, "2000")
        self._seen = {execution.executionId() for execution in self._executions()}

    def of(self, table: str) -> list[Scan]:
        """Return the scans of a table's files that were run, not only planned."""
        found = (scan for scan in self._new() if f"/{table}]" in scan.text)
        return [scan for scan in found if scan.files]

    def of_feeds(self) -> list[Scan]:
        """Return the scans of change feeds that gave any row; what was cached gives none."""
        return [scan for scan in self._new() if "DeltaCDFRelation" in scan.text and scan.rows]

    def _executions(self) -> list[Any]:
        self._session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        return _items(self._store().executionsList())

    def _store(self) -> Any:
        return self._session._jsparkSession.sharedState().statusStore()

    def _new(self) -> list[Scan]:
        found = []
        for id in (execution.executionId() for execution in self._executions()):
            if id in self._seen:
                continue
            values = self._store().executionMetrics(id)
            for node in _items(self._store().planGraph(id).allNodes()):
                if node.name().startswith("Scan "):
                    metrics = {
                        m.name(): values.get(m.accumulatorId()) for m in _items(node.metrics())
                    }
                    counts = (_count(metrics.get(name)) for name in (_FILES, _ROWS))
                    found.append(Scan(f"{node.name()} {node.desc()}", *counts))
        return found


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(i) for i in range(sequence.size())]


def _count(value: Any) -> int:
    return int(value.get().replace(",", "")) if value is not None and value.isDefined() else 0

"""Whether and how a query can be maintained: asked at most once per refresh, when it matters."""

from spark_dynamic.apply.storage import narrowing_columns, partition_columns
from spark_dynamic.config import RefreshMode
from spark_dynamic.errors import WarehouseError
from spark_dynamic.frontier.cut import Cut
from spark_dynamic.frontier.record import Record, Verdict
from spark_dynamic.names import TableName
from spark_dynamic.plan.nodes import fields_of
from spark_dynamic.refresh.analyse import Analysis, always_full
from spark_dynamic.refresh.cycle import Cycle
from spark_dynamic.refresh.failures import failure, watched
from spark_dynamic.refresh.maintenance import Maintenance, maintain
from spark_dynamic.refresh.request import Request
from spark_dynamic.refresh.sources import is_comparable, seen
from spark_dynamic.support import NotIncremental, Reason, reason
from spark_dynamic.warehouse import Warehouse


class Upkeep:
    """The maintenance of one query, if there is any."""

    def __init__(
        self,
        request: Request,
        analysis: Analysis,
        verdict: Verdict,
        distrusted: str,
        cycle: Cycle,
        warehouse: Warehouse,
    ) -> None:
        self._request = request
        self._analysis = analysis
        self._verdict = verdict
        self._distrusted = distrusted
        self._cycle = cycle
        self._warehouse = watched(warehouse)
        self._refusal: Reason | None = None
        self.found: Maintenance | None = None

    def why_not(self, record: Record | None, cut: Cut) -> Reason | None:
        """Return why changes cannot be applied to what a record describes; None if they can.

        Without a record the question is whether a rebuild can prepare for it.
        """
        refusal = self._look(cut.versions())
        if refusal is not None or record is None:
            return refusal
        assert self.found is not None
        for upstream in self._analysis.upstreams:
            then = seen(record, upstream, self._cycle, self._warehouse)
            used = fields_of(self.found.query.plan, upstream.storage).keys()
            now = cut.upstreams[upstream.storage]
            if then is None or not is_comparable(then, now, used):
                return reason("UPSTREAM_REBUILT", str(upstream.view))
        form = (self.found.state, self.found.target.columns)
        if form != (record.state, record.columns) or not self._means_the_same(record):
            return reason("STORAGE_FORM")
        return None

    def _means_the_same(self, record: Record) -> bool:
        """Tell whether the query means what a record was made from.

        A text over the same columns of the same tables does, whatever fingerprint an older engine
        gave it.
        """
        assert self.found is not None
        return self.found.fingerprint == record.fingerprint or (
            record.text_hash == self._analysis.text_hash
            and record.verdict.columns == self._verdict.columns
            and all(record.pin_of(table) for table in self._analysis.bases)
        )

    def is_cosmetic(self, record: Record) -> bool:
        """Tell whether a changed text still means what the record was made from."""
        if self._request.config.immutable_functions:
            # The text that changed may be that of a function, which no plan shows.
            return False
        if not record.fingerprint or self.refusal() is not None or self.found is None:
            return False
        return self.found.fingerprint == record.fingerprint

    def refusal(self) -> Reason | None:
        """Return why the query cannot be maintained at all; None if it can."""
        full = always_full(self._analysis, self._verdict)
        if full is not None:
            return full
        newest = {
            table: self._cycle.catalog.history(self._warehouse, table)[0].version
            for table in self._analysis.tables()
        }
        return self._look(newest)

    def _look(self, versions: dict[TableName, int]) -> Reason | None:
        if self.found is not None or self._refusal is not None:
            return self._refusal
        if self._request.config.refresh_mode is RefreshMode.FULL:
            self._refusal = reason("CONFIGURED_FULL")
            return self._refusal
        try:
            self.found = maintain(
                self._analysis,
                self._verdict,
                self._request.schema,
                versions,
                self._warehouse,
                narrowing_columns(self._request.config),
                partition_columns(self._request.config),
            )
        except NotIncremental as refusal:
            self._refusal = refusal.reason
        except WarehouseError as error:
            # Spark refuses a query that we derived from one that it accepts.
            self._refusal = reason("OPERATORS_DIFFER", str(error).splitlines()[0])
        except Exception as error:
            self._refusal = reason("PLANNING_FAILED", failure(error, self._warehouse))
        if self.found is not None and self.found.fingerprint == self._distrusted:
            self.found, self._refusal = None, reason("SELF_CHECK_FAILED", "see the state table")
        return self._refusal

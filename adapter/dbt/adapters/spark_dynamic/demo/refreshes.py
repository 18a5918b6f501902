"""What dbt's results say about each model: the adapter response, made ready for a table."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

DYNAMIC_TABLE = "dynamic_table"


@dataclass(frozen=True)
class Refresh:
    """One line of the report: what happened to one model, seed or table."""

    name: str
    relation: str
    query: str
    materialized: str
    action: str
    rows: str
    seconds: float
    data_timestamp: str
    reason_code: str
    reason: str
    ok: bool

    @property
    def is_dynamic(self) -> bool:
        """Whether the model is a dynamic table."""
        return self.materialized == DYNAMIC_TABLE


def refreshes(results: Iterable[Any]) -> list[Refresh]:
    """Return a line for every seed and model among dbt's results, tests left out."""
    return [_refresh(result) for result in results if result.node.resource_type in _BUILT]


def passed_tests(results: Iterable[Any]) -> int:
    """Count the tests that passed."""
    return sum(str(result.status) == "pass" for result in results)


_BUILT = ("model", "seed")


def _refresh(result: Any) -> Refresh:
    node, response = result.node, result.adapter_response or {}
    ok = str(result.status) == "success"
    # Only dynamic tables have a refresh action; the others are what dbt calls them.
    action = response.get("refresh_action") or node.config.materialized
    return Refresh(
        name=node.name,
        relation=node.relation_name or node.name,
        query=getattr(node, "compiled_code", None) or "",
        materialized=node.config.materialized,
        action=action if ok else str(result.status).upper(),
        rows=_rows(response),
        seconds=result.execution_time,
        data_timestamp=_without_fraction(response.get("data_timestamp") or ""),
        reason_code=response.get("reason_code") or "",
        reason=response.get("reason") or "",
        ok=ok,
    )


def _rows(response: dict[str, Any]) -> str:
    inserted, deleted = response.get("rows_inserted"), response.get("rows_deleted")
    if inserted is None and deleted is None:
        return ""
    return f"+{inserted or 0} -{deleted or 0}"


def _without_fraction(timestamp: str) -> str:
    """Shorten a UTC timestamp to the second.

    >>> _without_fraction("2026-03-07T10:15:30.123456Z")
    '2026-03-07 10:15:30'
    """
    return timestamp.removesuffix("Z").split(".")[0].replace("T", " ")

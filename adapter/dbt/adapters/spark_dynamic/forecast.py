"""What a run of a selection would do with each dynamic table, given what a plan says of it now.

A plan sees the warehouse as it is. When a run comes to a table, what lies above it has been
written: other dynamic tables, staging tables, seeds. So a plan has the last word only where none
of these is read, directly or through views.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from dbt.adapters.spark_dynamic.config import MATERIALIZATION
from dbt.adapters.spark_dynamic.named_models import relation_of
from dbt.adapters.spark_dynamic.stream_models import STREAM

_WRITES: Final = ("FULL", "REINITIALIZE", "INCREMENTAL", "DEPENDS")
_NOT_THERE: Final = ("SOURCE_MISSING: ", "STREAM_NOT_BUILT: ", "TABLE_OR_VIEW_NOT_FOUND: ")


class Kind(Enum):
    """What a run does with a node, and what is seen of it."""

    DYNAMIC_TABLE = "is written if its plan says so"
    TABLE = "is written whenever it is selected"
    VIEW = "is made again, and shows what it reads"
    INLINED = "is part of the texts that read it"


@dataclass(frozen=True)
class Node:
    """A node of the project."""

    name: str
    relation: str
    kind: Kind
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Foreseen:
    """What will happen to a dynamic table, as far as anybody can tell."""

    action: str
    why: str = ""
    # Whether it was decided when the run began, so that nothing on the way changes it.
    is_certain: bool = False
    # Whether the error may be gone when what is read has been written.
    may_pass: bool = False
    # The dynamic tables that a table waits for.
    waits_for: frozenset[str] = frozenset()
    # Whether readers find a newer cut there, although no row is written.
    moves_record: bool = False


class Forecast:
    """Goes through the dynamic tables of a selection in the order of a run."""

    def __init__(
        self, nodes: Mapping[str, Node], selected: Iterable[str], exists: Callable[[str], bool]
    ) -> None:
        self._nodes = nodes
        self._selected = frozenset(selected)
        self._exists = exists
        self._writing: set[str] = set()
        self._failing: set[str] = set()

    def next(self, unique_id: str, planned: Foreseen, is_edited: bool = False) -> Foreseen:
        """Return what happens to the next table; `is_edited` if it or a view has another text."""
        found = self._next(unique_id, planned, is_edited)
        if found.action in _WRITES or found.moves_record:
            self._writing.add(unique_id)
        elif found.action == "ERROR":
            self._failing.add(unique_id)
        return found

    def _next(self, unique_id: str, planned: Foreseen, is_edited: bool) -> Foreseen:
        failing = self._above(unique_id) & self._failing
        if failing:
            return Foreseen("SKIPPED", f"by dbt, because of {self._names(failing)}")
        if planned.is_certain:
            return planned
        read = set(self._read(unique_id))
        brought = {one for one in read if self._brings(one)}
        redefined = {one for one in read if is_edited and self._is_made_again(one)}
        if not self._is_open(planned, read, brought, redefined):
            return planned
        return Foreseen("DEPENDS", f"on what {self._names(brought | redefined)} will bring")

    def _is_open(
        self, planned: Foreseen, read: set[str], brought: set[str], redefined: set[str]
    ) -> bool:
        """Tell whether what the run brings may make another action of the planned one."""
        match planned.action:
            case "NO_DATA":
                return bool(brought or redefined)
            case "INCREMENTAL":
                # More changes are more of the same; another text of a view is not.
                return bool(redefined)
            case "WAITING":
                return planned.waits_for <= {self._nodes[one].relation for one in brought}
            case "ERROR" if planned.may_pass and brought:
                missing = {one for one in read if not self._exists(one)}
                is_missing = planned.why.startswith(_NOT_THERE)
                return missing <= brought and (bool(missing) or not is_missing)
        return False

    def _brings(self, unique_id: str) -> bool:
        """Tell whether the run puts something there that is not seen yet."""
        match self._nodes[unique_id].kind:
            case Kind.DYNAMIC_TABLE:
                return unique_id in self._writing
            case Kind.TABLE:
                return unique_id in self._selected
        # With the same text, a view shows what it shows now.
        return unique_id in self._selected and not self._exists(unique_id)

    def _is_made_again(self, unique_id: str) -> bool:
        return self._nodes[unique_id].kind is Kind.VIEW and unique_id in self._selected

    def _read(self, unique_id: str) -> Iterator[str]:
        """Yield the relations that a table reads, and those that are seen through them."""
        seen: set[str] = set()
        waiting = list(self._nodes[unique_id].reads)
        while waiting:
            one = waiting.pop()
            if one in seen or one not in self._nodes:
                continue
            seen.add(one)
            node = self._nodes[one]
            if node.kind is not Kind.INLINED:
                yield one
            if node.kind in (Kind.VIEW, Kind.INLINED):
                waiting += node.reads

    def _above(self, unique_id: str) -> set[str]:
        """Return all that dbt wants to succeed first, whatever lies in between."""
        found: set[str] = set()
        waiting = [unique_id]
        while waiting:
            node = self._nodes.get(waiting.pop())
            new = set(node.reads) - found if node else set()
            found |= new
            waiting += new
        return found

    def _names(self, ids: Iterable[str]) -> str:
        return ", ".join(sorted(self._nodes[one].name for one in ids))


def nodes_of(manifest: Any) -> dict[str, Node]:
    """Return the nodes of dbt's manifest by their unique ids."""
    return {
        unique_id: Node(
            node.name, str(relation_of(node)), _kind(node), tuple(node.depends_on_nodes)
        )
        for unique_id, node in manifest.nodes.items()
    }


def _kind(node: Any) -> Kind:
    kinds = {
        MATERIALIZATION: Kind.DYNAMIC_TABLE,
        "view": Kind.VIEW,
        # What it shows are the changes of what it reads.
        STREAM: Kind.VIEW,
        "ephemeral": Kind.INLINED,
    }
    return kinds.get(node.config.materialized, Kind.TABLE)

"""The changes of one source between two versions, as rows with weights 1 and -1."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from spark_dynamic.apply.identity import HASH, row_hash
from spark_dynamic.frontier.compare import FEED_WEIGHT, change_feed
from spark_dynamic.frontier.history import Effect, effect, replaces_all, replaces_part
from spark_dynamic.names import TableName, quote
from spark_dynamic.sql.write import WEIGHT
from spark_dynamic.warehouse import Column, Commit


class Kind(Enum):
    """What the commits of an interval did."""

    INSERTS = "inserts only"
    CHANGES = "changes"
    REWRITE = "a rewrite"


@dataclass(frozen=True)
class Interval:
    """A source from one version (exclusive) to another."""

    table: TableName
    old: int
    new: int
    kind: Kind
    # Where the old version is, if the table was built anew meanwhile: its last generation.
    old_table: TableName | None = None
    # The table's path. A statement that reads several feeds of a table, or a feed beside the table
    # itself, has to name it: Spark keeps what it finds under a name for the whole statement, so
    # all of them would be the first one.
    location: str = ""
    # Whether the changes are so few that every task of a join may have them all.
    is_small: bool = False
    # Whether rows were only deleted.
    only_removes: bool = False
    # Without a change feed, any change has to be found by comparing both versions.
    has_feed: bool = True
    # Whether only parts were rewritten: the feed then has all that may differ.
    in_parts: bool = False

    @property
    def what(self) -> str:
        """What happened, in a few words."""
        kind = "a rewritten part" if self.in_parts else self.kind.value
        return kind if self.has_feed else "no change feed"

    @property
    def reads_feed(self) -> bool:
        """Tell whether the changes are read from the feed, rather than from both versions."""
        return self.kind is not Kind.REWRITE or self.in_parts

    @property
    def before(self) -> str:
        """The old version, as it stands in a query."""
        return f"{(self.old_table or self.table).sql} VERSION AS OF {self.old}"

    @property
    def after(self) -> str:
        """The new version, as it stands in a query."""
        return f"{self.table.sql} VERSION AS OF {self.new}"

    @property
    def feed(self) -> str:
        """The change feed, as it stands in a query."""
        table = TableName("delta", self.location) if self.location else self.table
        return change_feed(table, self.old, self.new)

    def between_versions(self) -> "Interval":
        """Return the same interval, to be read by comparing both versions."""
        return replace(self, kind=Kind.REWRITE, in_parts=False)

    def net_by(self, columns: Iterable[Column]) -> frozenset[str] | None:
        """Return the columns over which changes can be read as net; None if they cannot."""
        is_net = self.kind is Kind.REWRITE
        return frozenset(column.name for column in columns) if is_net else None

    def rows(self, columns: Sequence[Column], is_net: bool = False) -> str:
        """Return the changes of some columns; with `is_net` copies are one row, see `net_by`."""
        if self.kind is Kind.REWRITE:
            return self._difference(columns, is_net)
        names = ", ".join(quote(column.name) for column in columns)
        weight = "1" if self.kind is Kind.INSERTS else "-1" if self.only_removes else FEED_WEIGHT
        # Spark knows no size of a feed, and would take it for a large one.
        hint = "/*+ BROADCAST(feed) */ " if self.is_small else ""
        return f"SELECT {hint}{names}, {weight} AS {WEIGHT} FROM {self.feed} AS feed"

    def _difference(self, columns: Sequence[Column], is_net: bool) -> str:
        """Compare both versions, or the parts that were rewritten; what is in both cancels out."""
        names = [quote(column.name) for column in columns]
        hashes = row_hash((quote(column.name), column.type) for column in columns)
        keys = [f"{sql} AS {name}" for sql, name in zip(hashes, HASH, strict=True)]
        places = [(self.after, "1"), (self.before, "-1")]
        if self.in_parts:
            places = [(self.feed, FEED_WEIGHT)]
        both = "\n  UNION ALL\n".join(
            f"  SELECT {', '.join([*names, *keys])}, {weight} AS {WEIGHT} FROM {place}"
            for place, weight in places
        )
        values = ", ".join(f"any_value({name}) AS {name}" for name in names)
        weight = WEIGHT if is_net else "__dyn_net"
        net = (
            f"SELECT {values}, sum({WEIGHT}) AS {weight} FROM (\n{both}\n)\n"
            f"GROUP BY {', '.join(HASH)} HAVING sum({WEIGHT}) <> 0"
        )
        if is_net:
            return net
        return (
            f"SELECT {', '.join(names)}, CAST(sign(__dyn_net) AS int) AS {WEIGHT} "
            f"FROM (\n{net}\n)\n"
            "LATERAL VIEW explode(sequence(1L, abs(__dyn_net))) __dyn_copies AS __dyn_copy"
        )


def kind_of(commits: Sequence[Commit], has_feed: bool) -> Kind:
    """Classify the commits of an interval from history alone."""
    effects = {effect(commit) for commit in commits} - {Effect.NOTHING, Effect.COLUMNS}
    if not has_feed or any(replaces_all(c) or replaces_part(c) or turns_feed(c) for c in commits):
        return Kind.REWRITE
    return Kind.INSERTS if effects <= {Effect.ADDED} else Kind.CHANGES


def in_parts(commits: Sequence[Commit], has_feed: bool) -> bool:
    """Tell whether commits that rewrote rows left all of them in the change feed."""
    is_whole = any(replaces_all(c) or turns_feed(c) for c in commits)
    return has_feed and not is_whole and any(replaces_part(c) for c in commits)


def only_removes(commits: Iterable[Commit]) -> bool:
    """Tell whether rows were only deleted."""
    return {effect(c) for c in commits} - {Effect.NOTHING, Effect.COLUMNS} == {Effect.REMOVED}


def turns_feed(commit: Commit) -> bool:
    """Tell whether a commit may have turned the change feed on or off.

    It does not reach further back then.
    """
    if "PROPERTIES" not in commit.operation:
        return False
    properties = commit.parameters.get("properties")
    return properties is None or "enableChangeDataFeed" in properties

"""Names of tables, and how they are written in SQL."""

import re
from dataclasses import dataclass, replace

_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")
# No name in the session's catalog has these: it is the path of files, and what stands before it is
# their format.
_OF_PATHS = re.compile(r"[/\\:.]")
_DELTA = "delta"


def quote(identifier: str) -> str:
    """Write one identifier.

    >>> quote("a`b")
    '`a``b`'
    """
    return f"`{identifier.replace('`', '``')}`"


def parts_of(text: str) -> list[str]:
    """Take a dotted name apart.

    >>> parts_of("shop.`my.``table`")
    ['shop', 'my.`table']
    """
    return [a.replace("``", "`") if a else b for a, b in _PART.findall(text)]


@dataclass(frozen=True)
class TableName:
    """A schema and a table (or view) in it; `catalog` is "" for the session's own catalog.

    Spark's session catalog knows one case only, so names are compared in lower case; the path
    of files such as ``delta.`/data/t` `` keeps its case.
    """

    schema: str
    name: str
    catalog: str = ""

    @classmethod
    def of(cls, *parts: str) -> "TableName":
        """Build a name from its parts, catalog first.

        >>> TableName.of("spark_catalog", "Shop", "Orders")
        TableName(schema='shop', name='orders', catalog='')
        >>> TableName.of("delta", "/data/T").sql
        '`delta`.`/data/T`'
        """
        *outer, name = parts
        schema = outer[-1].lower() if outer else "default"
        catalog = outer[-2].lower() if len(outer) > 1 else ""
        found = cls(schema, name, "" if catalog == "spark_catalog" else catalog)
        return found if found.is_path else replace(found, name=name.lower())

    @classmethod
    def parse(cls, text: str) -> "TableName":
        """Read a dotted name.

        >>> TableName.parse("shop.`my table`")
        TableName(schema='shop', name='my table', catalog='')
        """
        return cls.of(*parts_of(text))

    @property
    def sql(self) -> str:
        """The name as it stands in generated SQL, every part quoted."""
        outer = (self.catalog,) if self.catalog else ()
        return ".".join(quote(part) for part in (*outer, self.schema, self.name))

    @property
    def is_path(self) -> bool:
        """Tell whether the name is a path of files, and not an entry of a catalog."""
        has_path = not self.catalog and _OF_PATHS.search(self.name) is not None
        return has_path or self.schema == _DELTA

    @property
    def is_other_path(self) -> bool:
        """Tell whether the name is a path of files that are no Delta table."""
        return self.is_path and self.schema != _DELTA

    def sibling(self, name: str) -> "TableName":
        """Return another name in the same schema."""
        return TableName(self.schema, name, self.catalog)

    def __str__(self) -> str:
        outer = (self.catalog,) if self.catalog else ()
        parts = (*outer, self.schema, self.name)
        # What would not be one part when it is read again is quoted.
        return ".".join(quote(part) if set(".`") & set(part) else part for part in parts)

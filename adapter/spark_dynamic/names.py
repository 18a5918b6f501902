"""Names of tables, and how they are written in SQL."""

import re
from dataclasses import dataclass

_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


def quote(identifier: str) -> str:
    """Write one identifier.

    >>> quote("a`b")
    '`a``b`'
    """
    return f"`{identifier.replace('`', '``')}`"


@dataclass(frozen=True)
class TableName:
    """A schema and a table (or view) in it; `catalog` is "" for the session's own catalog.

    Spark's session catalog knows one case only, so names are compared in lower case; the path
    of a table such as ``delta.`/data/t` `` keeps its case.
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
        if schema != "delta":
            name = name.lower()
        return cls(schema, name, "" if catalog == "spark_catalog" else catalog)

    @classmethod
    def parse(cls, text: str) -> "TableName":
        """Read a dotted name.

        >>> TableName.parse("shop.`my table`")
        TableName(schema='shop', name='my table', catalog='')
        """
        parts = [a.replace("``", "`") if a else b for a, b in _PART.findall(text)]
        return cls.of(*parts)

    @property
    def sql(self) -> str:
        """The name as it stands in generated SQL, every part quoted."""
        outer = (self.catalog,) if self.catalog else ()
        return ".".join(quote(part) for part in (*outer, self.schema, self.name))

    @property
    def is_path(self) -> bool:
        """Tell whether the name is a path and not an entry of a catalog."""
        return self.schema == "delta"

    def sibling(self, name: str) -> "TableName":
        """Return another name in the same schema."""
        return TableName(self.schema, name, self.catalog)

    def __str__(self) -> str:
        outer = (self.catalog,) if self.catalog else ()
        return ".".join((*outer, self.schema, self.name))

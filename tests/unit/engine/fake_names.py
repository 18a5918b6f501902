"""Where the fake Spark puts a table, and what it calls it in SQLite."""

import re

from spark_dynamic.names import TableName


def location(name: str) -> str:
    return f"file:/warehouse/{name.replace('`', '')}"


def plain(name: TableName) -> str:
    return "r_" + re.sub(r"\W", "_", str(name))


def names_in(pattern: str, text: str) -> tuple[str, ...]:
    found = re.search(pattern, text)
    return tuple(name.strip(" `") for name in found[1].split(",")) if found else ()

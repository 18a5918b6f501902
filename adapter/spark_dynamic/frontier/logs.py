"""The newest commits of many Delta tables, by one look at the files of their logs.

`DESCRIBE HISTORY` of one table is a Spark job of its own. Where it is known which commit of a log
was the newest, one listing of file names tells for all tables at once whether it still is.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from spark_dynamic.clock import from_micros
from spark_dynamic.errors import WarehouseError
from spark_dynamic.warehouse import Warehouse

# Versions and the times of their files; all that were found of those that were looked for.
Versions = dict[int, datetime]

# Other characters would have to be escaped, once for the pattern and once for the address.
PLAIN: Final = re.compile(r"[A-Za-z0-9_./:=@+-]+")
# `file:/`, `s3://bucket/`: a pattern begins after that.
_ROOT: Final = re.compile(r"([a-z0-9+.-]+:/(?:/[^/]+/)?)?(.*)", re.IGNORECASE)
_FILE: Final = re.compile(r"(.*)/_delta_log/(?:\w+/)?(\d{20})\.[^/]*json")
# Where commits wait that a catalog has accepted and nobody has copied into the log yet.
_WAITING: Final = ("_staged_commits", "_commits")
AT_ONCE: Final = 300


def look_at_logs(warehouse: Warehouse, versions: Mapping[str, int]) -> dict[str, Versions]:
    """Look for a version of each log, and for the next one; logs are known by their location.

    What cannot be looked at is not in the answer; it has to be asked for by itself.
    """
    roots: dict[str, list[str]] = {}
    for place, version in sorted(versions.items()):
        match = _ROOT.fullmatch(_place(place))
        if match and PLAIN.fullmatch(place):
            roots.setdefault(match[1] or "/", []).append(_files(match[2].lstrip("/"), version))
    found: dict[str, Versions] = {}
    for root, files in roots.items():
        for begin in range(0, len(files), AT_ONCE):
            pattern = f"{root}{{{','.join(files[begin : begin + AT_ONCE])}}}"
            for path, moment in listed_files(warehouse, pattern):
                match = _FILE.fullmatch(path)
                if match:
                    found.setdefault(_place(match[1]), {})[int(match[2])] = moment
    return {place: found[_place(place)] for place in versions if _place(place) in found}


def listed_files(warehouse: Warehouse, pattern: str) -> list[tuple[str, datetime]]:
    """Return the files that a pattern matches, and when they were written; nothing is read."""
    select = f"SELECT path, unix_micros(modificationTime) AS modified FROM binaryFile.`{pattern}`"
    try:
        rows = warehouse.rows(select)
    except WarehouseError:
        # None of them is there any more, or this Spark lets nobody read files.
        return []
    return [(row["path"], from_micros(int(row["modified"]))) for row in rows]


def _files(place: str, version: int) -> str:
    newest, following = f"{version:020}", f"{version + 1:020}"
    waiting = ",".join(f"{folder}/{following}.*json" for folder in _WAITING)
    return f"{place}/_delta_log/{{{newest}.json,{following}.json,{waiting}}}"


def _place(location: str) -> str:
    """Return a location as it is compared: `file:///a` and `file:/a` are one."""
    return re.sub(r"^file:/+", "file:/", location).rstrip("/")

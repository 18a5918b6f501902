"""Delta with a change feed, unless the user says otherwise, for every table that dbt builds.

dbt-spark's own materializations then do the right thing unchanged: they replace a Delta table
in place, keep its log, and offer merge and snapshots. So a dbt-built table stays usable as the
source of a dynamic table.
"""

from typing import Any

BUILT_BY_DBT = {"table", "incremental", "seed", "snapshot", "clone"}
_CHANGE_FEED = "delta.enableChangeDataFeed"
_COLUMN_MAPPING = "delta.columnMapping.mode"


def prefer_delta(node: Any) -> None:
    """Fill in `file_format` and the change feed on a node's config, where they are unset."""
    config = getattr(node, "config", None)
    if config is None or config.get("materialized") not in BUILT_BY_DBT:
        return
    if config.get("file_format") is None:
        config["file_format"] = "delta"
    if config.get("file_format") != "delta":
        return
    properties = dict(config.get("tblproperties") or {})
    # Delta refuses CREATE OR REPLACE ... AS SELECT for a table that has both.
    if properties.get(_COLUMN_MAPPING, "none") == "none":
        properties.setdefault(_CHANGE_FEED, "true")
    config["tblproperties"] = properties

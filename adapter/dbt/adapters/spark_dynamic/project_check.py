"""The check of a whole project, once per manifest: by the plugin, or else before anything runs."""

import weakref
from typing import TYPE_CHECKING, Any

from dbt.adapters.spark_dynamic.config import check_project
from dbt.adapters.spark_dynamic.project import warn_of_lags

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest

_checked: "weakref.ref[Any] | None" = None


def check_once(manifest: "Manifest") -> None:
    """Report all configuration errors at once, and warn of lags, unless that was done already.

    dbt calls plugins only when it has parsed the project and writes it as JSON: not with
    `--no-write-json`, and not for a program that hands it a manifest.
    """
    global _checked
    if _checked is not None and _checked() is manifest:
        return
    check_project(manifest)
    warn_of_lags(manifest)
    _checked = weakref.ref(manifest)

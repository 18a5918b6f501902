"""What the person or program that runs dbt asked for."""

import os
from typing import TYPE_CHECKING, Any, Final

from dbt_common.exceptions import DbtRuntimeError

from spark_dynamic.schedule.situation import Asked

if TYPE_CHECKING:
    from dbt.adapters.spark_dynamic.impl import SparkDynamicAdapter
    from dbt.adapters.spark_dynamic.project import Project

# Read here and not in Jinja: another value does not make dbt parse the project again.
REFRESH_VARIABLE: Final = "SPARK_DYNAMIC_REFRESH"
_VARIABLE: Final = "refresh"


def asked_for(adapter: "SparkDynamicAdapter", project: "Project") -> Asked:
    """Return what this run was asked for."""
    from dbt.selected_resources import SELECTED_RESOURCES

    return Asked(
        selected=project.named(SELECTED_RESOURCES) if SELECTED_RESOURCES else None,
        full_refresh=bool(_flag(adapter, "FULL_REFRESH")),
        # What --empty and --sample leave behind is no refresh, so it is never too early for one.
        force=is_forced(adapter) or is_partial(adapter),
    )


def is_forced(adapter: "SparkDynamicAdapter") -> bool:
    """Tell whether everything that is selected is to be refreshed, due or not."""
    chosen = os.environ.get(REFRESH_VARIABLE, "")
    if chosen.strip():
        return _is_all(chosen, f"the environment variable {REFRESH_VARIABLE}")
    return _is_all(_variable(adapter), f"the variable `{_VARIABLE}`")


def _is_all(given: Any, place: str) -> bool:
    chosen = "" if given is None else str(given).strip().lower()
    if chosen not in ("", "due", "all"):
        raise DbtRuntimeError(
            f"REFRESH_INVALID: Invalid value for {place}: '{chosen}'. "
            "Expected 'all' to refresh everything that is selected, or 'due'."
        )
    return chosen == "all"


def _variable(adapter: "SparkDynamicAdapter") -> Any:
    """Return dbt's variable, as a model of the root project sees it.

    The command line comes first, then what `vars` says under the project's name, then the rest.
    """
    config: Any = adapter.config
    project = config.vars.to_dict() if getattr(config, "vars", None) else {}
    scoped = project.get(getattr(config, "project_name", None))
    given = {
        **project,
        **(scoped if isinstance(scoped, dict) else {}),
        **(getattr(config, "cli_vars", None) or {}),
    }
    return given.get(_VARIABLE)


def is_partial(adapter: "SparkDynamicAdapter") -> bool:
    """Tell whether the run is --empty or --sample."""
    return bool(_flag(adapter, "EMPTY") or _flag(adapter, "SAMPLE"))


def _flag(adapter: "SparkDynamicAdapter", name: str) -> Any:
    return getattr(getattr(adapter.config, "args", None), name, None)

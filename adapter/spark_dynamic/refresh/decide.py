"""Which action a refresh takes, and why: a pure function of what was found."""

from dataclasses import dataclass

from spark_dynamic.config import DynamicTableConfig, OnConfigurationChange, RefreshMode
from spark_dynamic.errors import EngineError
from spark_dynamic.support import NONE, Reason, reason


@dataclass(frozen=True)
class Findings:
    """What is known before anything is written."""

    is_stored: bool = False
    leaves_no_state: bool = False
    full_refresh: bool = False
    full_refresh_forbidden: bool = False
    invalid: Reason | None = None
    config_changes: tuple[str, ...] = ()
    changes_in_place: tuple[str, ...] = ()
    always_full: Reason | None = None
    waiting_for: tuple[str, ...] = ()
    is_covered: bool = False
    changed_sources: tuple[str, ...] = ()
    # Why changes cannot be applied; None if they can.
    not_incremental: Reason | None = None
    # Why a full refresh is the better choice, if it is; else why the changes are.
    cheaper_full: Reason | None = None
    cheaper_changes: Reason = NONE


@dataclass(frozen=True)
class Decision:
    """An action of the contract, and its reason."""

    action: str
    reason: Reason = NONE
    detail: str = ""
    warning: str = ""

    @property
    def writes(self) -> bool:
        """Tell whether rows are written."""
        return self.action in ("FULL", "REINITIALIZE", "INCREMENTAL")


def decide(findings: Findings, config: DynamicTableConfig) -> Decision:
    """Choose the action."""
    if findings.leaves_no_state:
        return Decision("FULL", reason("EMPTY_RUN"))
    why_not = findings.always_full or findings.not_incremental
    # Rows that were found to be wrong are not left, in no mode.
    is_wrong = findings.invalid is not None and findings.invalid.code == "SELF_CHECK_FAILED"
    if config.refresh_mode is RefreshMode.INCREMENTAL and why_not and not is_wrong:
        raise refused(why_not)
    if not findings.is_stored:
        failed = why_not is not None and why_not.code == "PLANNING_FAILED"
        why = why_not if why_not and failed else reason("INITIAL_BUILD")
        return _waiting(findings) or Decision("FULL", why)
    if findings.is_covered:
        return Decision("COVERED")
    if findings.full_refresh:
        return _waiting(findings) or Decision("FULL", reason("REQUESTED"))
    invalid, warning = findings.invalid, ""
    if findings.config_changes or findings.changes_in_place:
        changed, warning = _config_change(findings, config)
        invalid = invalid or changed
    if findings.waiting_for:
        return Decision("WAITING", detail=", ".join(findings.waiting_for), warning=warning)
    forbidden = findings.full_refresh_forbidden
    if invalid is not None:
        # Who asked for an empty run asked for the rebuild after it, too.
        is_forbidden = forbidden and invalid.code != "AFTER_EMPTY_RUN"
        return unasked("REINITIALIZE", invalid, is_forbidden, warning)
    if not findings.changed_sources and findings.always_full is None:
        return Decision("NO_DATA", warning=warning)
    if config.refresh_mode is RefreshMode.FULL:
        return Decision("FULL", reason("CONFIGURED_FULL"), warning=warning)
    if why_not is not None:
        return unasked("FULL", why_not, forbidden, warning)
    chooses = config.refresh_mode is RefreshMode.AUTO and not forbidden
    if chooses and findings.cheaper_full is not None:
        return Decision("FULL", findings.cheaper_full, warning=warning)
    why = findings.cheaper_changes if chooses else NONE
    return Decision("INCREMENTAL", why, warning=warning)


def _waiting(findings: Findings) -> Decision | None:
    if findings.waiting_for:
        return Decision("WAITING", detail=", ".join(findings.waiting_for))
    return None


def _config_change(findings: Findings, config: DynamicTableConfig) -> tuple[Reason | None, str]:
    changes = "; ".join(findings.config_changes + findings.changes_in_place)
    match config.on_configuration_change:
        case OnConfigurationChange.FAIL:
            raise EngineError(
                "CONFIG_CHANGED",
                f"The storage was reconfigured ({changes}) and on_configuration_change='fail'. "
                "Use --full-refresh, or on_configuration_change='apply'.",
            )
        case OnConfigurationChange.CONTINUE:
            return None, f"Configuration changes were not applied: {changes}."
    rebuilds = reason("CONFIG_CHANGED", "; ".join(findings.config_changes))
    return (rebuilds if findings.config_changes else None), ""


def unasked(action: str, why: Reason, is_forbidden: bool, warning: str) -> Decision:
    """Return a decision to rebuild that nobody asked for, unless the config forbids those."""
    if is_forbidden:
        raise EngineError(
            why.code,
            f"{why.sentence} The table would have to be rebuilt, which full_refresh: false "
            "forbids.",
            f"{why.remedy} Or run it once with full_refresh: true to allow it.".lstrip(),
        )
    return Decision(action, why, warning=warning)


def refused(why: Reason) -> EngineError:
    """Return the error of a refresh that has to be incremental and cannot be."""
    return EngineError(
        why.code,
        f"The query cannot be refreshed incrementally: {why.sentence}",
        f"{why.remedy} Or use refresh_mode='auto' or 'full'.".lstrip(),
    )

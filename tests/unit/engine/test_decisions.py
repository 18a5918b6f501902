"""Every action and reason of the contract, as a table."""

import re
from typing import Any

import pytest
from fake_shop import config

from spark_dynamic.errors import EngineError
from spark_dynamic.refresh.decide import Decision, Findings, decide
from spark_dynamic.support import codes, reason

CLOCK = reason("CLOCK_FUNCTION", "now()")
NOT_DELTA = reason("SOURCE_NOT_DELTA", "shop.t")
LIMIT = reason("LIMIT")
EMPTIED = reason("AFTER_EMPTY_RUN")
NOT_ALLOWED = {"full_refresh_forbidden": True}
CHEAPER = reason("CHEAPER", "few rows")
CHANGES = reason("CHANGES_CHEAPER", "1 of 9 rows")
CHANGED = ("shop.t",)
WAITS = ("shop.up",)
SETTINGS = reason("SETTINGS_CHANGED", "x")
LOST = reason("RECORD_LOST")
STORED: dict[str, Any] = {"is_stored": True}


def said(decision: Decision) -> str:
    why = decision.reason.code or decision.detail
    return f"{decision.action}/{why}" if why else decision.action


def decided(findings: dict[str, Any], **raw: Any) -> str:
    return said(decide(Findings(**findings), config(**raw)))


@pytest.mark.parametrize(
    ("findings", "raw", "expected"),
    [
        # The first build.
        ({}, {}, "FULL/INITIAL_BUILD"),
        ({"full_refresh": True}, {}, "FULL/INITIAL_BUILD"),
        ({"full_refresh_forbidden": True}, {}, "FULL/INITIAL_BUILD"),
        ({"always_full": CLOCK}, {}, "FULL/INITIAL_BUILD"),
        ({}, {"refresh_mode": "full"}, "FULL/INITIAL_BUILD"),
        ({"waiting_for": WAITS}, {}, "WAITING/shop.up"),
        # Nothing changed.
        (STORED, {}, "NO_DATA"),
        (STORED, {"refresh_mode": "full"}, "NO_DATA"),
        (STORED | {"full_refresh_forbidden": True}, {}, "NO_DATA"),
        # Something changed.
        (STORED | {"changed_sources": CHANGED}, {}, "INCREMENTAL"),
        (STORED | {"changed_sources": CHANGED}, {"refresh_mode": "incremental"}, "INCREMENTAL"),
        (STORED | {"changed_sources": CHANGED, "not_incremental": LIMIT}, {}, "FULL/LIMIT"),
        (STORED | {"changed_sources": CHANGED, "cheaper_full": CHEAPER}, {}, "FULL/CHEAPER"),
        (
            STORED | {"changed_sources": CHANGED, "cheaper_full": CHEAPER},
            {"refresh_mode": "incremental"},
            "INCREMENTAL",
        ),
        (
            STORED | {"changed_sources": CHANGED, "cheaper_full": CHEAPER} | NOT_ALLOWED,
            {},
            "INCREMENTAL",
        ),
        # Who has no choice has no reason for it.
        (
            STORED | {"changed_sources": CHANGED, "cheaper_changes": CHANGES},
            {},
            "INCREMENTAL/CHANGES_CHEAPER",
        ),
        (
            STORED | {"changed_sources": CHANGED, "cheaper_changes": CHANGES},
            {"refresh_mode": "incremental"},
            "INCREMENTAL",
        ),
        (
            STORED | {"changed_sources": CHANGED, "cheaper_changes": CHANGES} | NOT_ALLOWED,
            {},
            "INCREMENTAL",
        ),
        (
            STORED | {"changed_sources": CHANGED},
            {"refresh_mode": "full"},
            "FULL/CONFIGURED_FULL",
        ),
        (
            STORED | {"changed_sources": CHANGED, "full_refresh_forbidden": True},
            {"refresh_mode": "full"},
            "FULL/CONFIGURED_FULL",
        ),
        # An empty run was asked for, and so was the rebuild after it.
        (STORED | NOT_ALLOWED | {"invalid": EMPTIED}, {}, "REINITIALIZE/AFTER_EMPTY_RUN"),
        # What can change without a source's doing.
        (STORED | {"always_full": CLOCK}, {}, "FULL/CLOCK_FUNCTION"),
        (STORED | {"always_full": NOT_DELTA}, {}, "FULL/SOURCE_NOT_DELTA"),
        # Asked for.
        (STORED | {"full_refresh": True}, {}, "FULL/REQUESTED"),
        (STORED | {"full_refresh": True, "invalid": SETTINGS}, {}, "FULL/REQUESTED"),
        (STORED | {"full_refresh": True, "always_full": CLOCK}, {}, "FULL/REQUESTED"),
        (STORED | {"full_refresh": True, "waiting_for": WAITS}, {}, "WAITING/shop.up"),
        # Stored, but not to be carried on.
        *[
            (STORED | {"invalid": reason(code, "x")}, {}, f"REINITIALIZE/{code}")
            for code in (
                "DEFINITION_CHANGED", "SETTINGS_CHANGED", "RECORD_LOST", "AFTER_EMPTY_RUN",
                "FOREIGN_COMMIT", "SOURCE_REPLACED", "HISTORY_LOST",
            )
        ],
        (STORED | {"invalid": LOST, "always_full": CLOCK}, {}, "REINITIALIZE/RECORD_LOST"),
        (STORED | {"invalid": SETTINGS, "waiting_for": WAITS}, {}, "WAITING/shop.up"),
        # Somebody else was faster, or upstreams are late.
        (STORED | {"is_covered": True}, {}, "COVERED"),
        (STORED | {"is_covered": True, "changed_sources": CHANGED}, {}, "COVERED"),
        (STORED | {"waiting_for": ("shop.a", "shop.b")}, {}, "WAITING/shop.a, shop.b"),
        # Another storage was configured.
        (STORED | {"config_changes": ("p",)}, {}, "REINITIALIZE/CONFIG_CHANGED"),
        (
            STORED | {"config_changes": ("p",)},
            {"on_configuration_change": "continue"},
            "NO_DATA",
        ),
        (
            STORED | {"config_changes": ("p",), "full_refresh": True},
            {"on_configuration_change": "fail"},
            "FULL/REQUESTED",
        ),
        # What is changed in place needs no rebuild.
        (STORED | {"changes_in_place": ("c",)}, {}, "NO_DATA"),
        (STORED | {"changes_in_place": ("c",), "full_refresh_forbidden": True}, {}, "NO_DATA"),
        # No state is left.
        ({"leaves_no_state": True}, {}, "FULL/EMPTY_RUN"),
        (STORED | {"leaves_no_state": True, "full_refresh": True}, {}, "FULL/EMPTY_RUN"),
        (STORED | {"leaves_no_state": True}, {"refresh_mode": "incremental"}, "FULL/EMPTY_RUN"),
    ],
)  # fmt: skip
def test_the_action(findings: dict[str, Any], raw: dict[str, Any], expected: str) -> None:
    assert decided(findings, **raw) == expected


FORBIDDEN = STORED | {"full_refresh_forbidden": True}


@pytest.mark.parametrize(
    ("findings", "raw", "message"),
    [
        (
            FORBIDDEN | {"invalid": SETTINGS},
            {},
            r"SETTINGS_CHANGED: Settings .* forbids\. Give all runs .* Or run it once",
        ),
        (
            FORBIDDEN | {"changed_sources": CHANGED, "not_incremental": LIMIT},
            {},
            "LIMIT: .* forbids",
        ),
        (FORBIDDEN | {"always_full": CLOCK}, {}, "CLOCK_FUNCTION: .* forbids"),
        (FORBIDDEN | {"config_changes": ("p",)}, {}, "CONFIG_CHANGED: .* forbids"),
        (
            STORED | {"config_changes": ("p was a and is b",)},
            {"on_configuration_change": "fail"},
            r"CONFIG_CHANGED: .*\(p was a and is b\) and on_configuration_change='fail'",
        ),
        (
            STORED | {"changes_in_place": ("c",)},
            {"on_configuration_change": "fail"},
            r"CONFIG_CHANGED: .*\(c\) and on_configuration_change='fail'",
        ),
        (
            {"not_incremental": LIMIT},
            {"refresh_mode": "incremental"},
            "LIMIT: The query cannot be refreshed incrementally: The query has a LIMIT .* "
            r"Leave it to a view over .* Or use refresh_mode='auto' or 'full'\.",
        ),
        (
            STORED | {"always_full": NOT_DELTA},
            {"refresh_mode": "incremental"},
            r"SOURCE_NOT_DELTA: The query cannot be refreshed incrementally: shop\.t is not",
        ),
    ],
)
def test_the_refusal(findings: dict[str, Any], raw: dict[str, Any], message: str) -> None:
    with pytest.raises(EngineError, match=message):
        decided(findings, **raw)


def test_a_change_that_is_not_applied_is_warned_of() -> None:
    findings = Findings(is_stored=True, config_changes=("a", "b"), changed_sources=CHANGED)
    decision = decide(findings, config(on_configuration_change="continue"))
    assert said(decision) == "INCREMENTAL"
    assert decision.warning == "Configuration changes were not applied: a; b."


@pytest.mark.parametrize(
    ("action", "writes"),
    [("FULL", True), ("REINITIALIZE", True), ("INCREMENTAL", True), ("NO_DATA", False),
     ("COVERED", False), ("WAITING", False)],
)  # fmt: skip
def test_which_actions_write(action: str, writes: bool) -> None:
    assert Decision(action).writes is writes


@pytest.mark.parametrize("code", codes())
def test_every_reason_is_a_code_and_a_sentence(code: str) -> None:
    found = reason(code, "the detail")
    assert str(found) == f"{code}: {found.sentence}"
    assert found.sentence[-1] == "." and "{" not in found.sentence
    assert str(Decision("NO_DATA").reason) == ""


@pytest.mark.parametrize("code", codes())
def test_every_reason_says_what_can_be_done_in_one_short_sentence(code: str) -> None:
    found = reason(code, "the detail")
    assert re.fullmatch(r"[A-Z].{10,170}\.", found.remedy), found.remedy
    assert ". " not in found.remedy and "{" not in found.remedy
    # What a record keeps of a reason is short.
    assert found.remedy not in str(found)


def test_a_configured_full_refresh_needs_no_other_reason() -> None:
    findings = STORED | {"always_full": NOT_DELTA}
    assert decided(findings, refresh_mode="full") == "FULL/CONFIGURED_FULL"


def test_a_requested_refresh_of_an_older_cut_is_covered() -> None:
    assert decided(STORED | {"full_refresh": True, "is_covered": True}) == "COVERED"


def test_a_config_change_fails_also_beside_another_reason() -> None:
    findings = STORED | {"invalid": SETTINGS, "config_changes": ("p",)}
    with pytest.raises(EngineError, match="CONFIG_CHANGED"):
        decided(findings, on_configuration_change="fail")

"""The one list of reasons: why a table was refreshed the way it was, and what to do about it.

Codes are part of the contract: tools match on them. Sentences are for people.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """Why an action was taken."""

    code: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.code}: {self.sentence}" if self.code else ""


NONE = Reason("", "")

_SENTENCES = {
    # Asked for, or the first time.
    "INITIAL_BUILD": "The table did not exist yet.",
    "REQUESTED": "A full refresh was requested.",
    "CONFIGURED_FULL": "The model has refresh_mode='full'.",
    "EMPTY_RUN": "The run was --empty or --sample; the next normal run rebuilds the table.",
    # The query cannot be kept up to date from changes alone.
    "INCREMENTAL_NOT_AVAILABLE": (
        "This version refreshes in full whenever a source has changed. "
        "Use refresh_mode='full' to say that this is intended."
    ),
    "TEXT_NOT_READABLE": (
        "The query cannot be pinned to versions of its sources: {detail}. "
        "It runs as written, on every run."
    ),
    "PLANS_DIFFER": (
        "Spark reads the pinned query differently from the original, so the original runs as "
        "written, on every run: {detail}."
    ),
    "SOURCE_NOT_DELTA": (
        "{detail} is not a Delta table, so its changes cannot be seen. "
        "Convert it to Delta to have it refreshed only when something changed."
    ),
    "VOLATILE_FUNCTION": (
        "The query calls {detail}, whose value may change while no table does. "
        "A function of your own that never does can be listed in immutable_functions."
    ),
    "CLOCK_FUNCTION": "The query calls {detail}, so its result changes with the time.",
    # The stored table cannot be carried on.
    "DEFINITION_CHANGED": "The query, or a view that it reads, was changed.",
    "CONFIG_CHANGED": "The storage was reconfigured: {detail}.",
    "COLUMNS_CHANGED": "The columns of the result changed: {detail}.",
    "SETTINGS_CHANGED": "Settings that change results are different now: {detail}.",
    "RECORD_LOST": "The table's storage carries no refresh record.",
    "AFTER_EMPTY_RUN": "The last run was --empty or --sample and left no state.",
    "FOREIGN_COMMIT": "Something else wrote to the table's storage: {detail}.",
    "SOURCE_REPLACED": "{detail} was dropped and created again.",
    "HISTORY_LOST": "The history of {detail} no longer reaches back to the last refresh.",
}


def reason(code: str, detail: str = "") -> Reason:
    """Return the reason of a code; `detail` completes its sentence.

    >>> str(reason("SOURCE_REPLACED", "shop.orders"))
    'SOURCE_REPLACED: shop.orders was dropped and created again.'
    """
    return Reason(code, _SENTENCES[code].format(detail=detail))


def codes() -> list[str]:
    """Return all codes."""
    return list(_SENTENCES)

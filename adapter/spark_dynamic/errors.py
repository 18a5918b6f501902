"""The engine's own errors."""

import re
from typing import Final

from spark_dynamic.support import Reason

# The name of an error in Spark's own message, in front of its sentence.
_CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]\s*")
_CAUSED_BY: Final = "\nCaused by: "

# What Delta says of rows that break a constraint: those that are written, those that are there.
_BROKEN: Final = ("DELTA_VIOLATE_CONSTRAINT", "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION")

_NO_TABLE: Final = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "DELTA_TABLE_NOT_FOUND")

# What is said of a version of which VACUUM, or the cleaning of the log, has removed something.
_GONE: Final = (
    "FAILED_READ_FILE.FILE_NOT_EXIST",
    "FileNotFoundException",
    "DELTA_FILE_NOT_FOUND",
    "DELTA_VERSION_NOT_FOUND",
    "DELTA_TRUNCATED_TRANSACTION_LOG",
    "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION",
)


class EngineError(Exception):
    """A refresh that cannot go on. The text is `CODE: sentence`, and what to do about it."""

    def __init__(self, code: str, sentence: str, remedy: str = "") -> None:
        super().__init__(f"{code}: {sentence} {remedy}".rstrip())
        self.code = code
        self.sentence = sentence
        self.remedy = remedy

    @classmethod
    def of(cls, why: Reason) -> "EngineError":
        """Return the error of a reason."""
        return cls(why.code, why.sentence, why.remedy)


class WarehouseError(Exception):
    """A statement that the warehouse refused.

    `condition` is Spark's name of the error, such as TABLE_OR_VIEW_NOT_FOUND, or "".
    """

    def __init__(self, condition: str, message: str) -> None:
        # Spark begins what it says about syntax with a line break.
        super().__init__(message.strip())
        self.condition = condition

    @classmethod
    def of(cls, message: str) -> "WarehouseError":
        """Return the error of a message, which mostly begins with its condition."""
        found = _CONDITION.search(message)
        return cls(found.group(1) if found else "", message)

    @property
    def code(self) -> str:
        """The name that people see: Spark's for what caused the error, if it has one."""
        found = _CONDITION.search(self._root) or _CONDITION.search(str(self))
        return found.group(1) if found else "QUERY_FAILED"

    @property
    def sentence(self) -> str:
        """What went wrong, in one line and without the code."""
        return self.sentences.partition("\n")[0]

    @property
    def sentences(self) -> str:
        """What went wrong, with all that Spark says about it."""
        return _CONDITION.sub("", self._root, count=1)

    @property
    def report(self) -> str:
        """The whole message; its first line is `CODE: sentence`."""
        message = str(self).strip()
        first = f"{self.code}: {self.sentence}"
        if self._root != message:
            return f"{first}\n{message}"
        return "\n".join([first, *message.splitlines()[1:]])

    @property
    def _root(self) -> str:
        return str(self).strip().rpartition(_CAUSED_BY)[2]

    @property
    def is_conflict(self) -> bool:
        """Tell whether another writer was faster, so that planning again may succeed."""
        return self.condition.startswith("DELTA_CONCURRENT") or self.condition in (
            "DELTA_METADATA_CHANGED",
            "DELTA_PROTOCOL_CHANGED",
            "DELTA_CONSTRAINT_ALREADY_EXISTS",
            "TABLE_OR_VIEW_ALREADY_EXISTS",
            "DELTA_TABLE_ALREADY_EXISTS",
        )

    @property
    def misses_table(self) -> bool:
        """Tell whether the table or view that was named does not exist."""
        return self.condition in _NO_TABLE

    @property
    def breaks_constraint(self) -> bool:
        """Tell whether rows break a constraint of the table."""
        # What fails in a task comes wrapped into another error.
        return any(name in str(self) for name in _BROKEN)

    @property
    def exceeds_length(self) -> bool:
        """Tell whether a text is longer than a column of the table allows."""
        return "EXCEED_CHAR_VARCHAR_LIMIT" in str(self) or "EXCEED_LIMIT_LENGTH" in str(self)

    @property
    def misses_history(self) -> bool:
        """Tell whether something was to be read that is no longer kept."""
        return any(name in str(self) for name in _GONE)

"""Where a text asks for the time, and the same question with its answer written down.

Only words are looked for, so a column of that name may be among them: as with tables, Spark
judges whether the text with answers means what the text with questions means.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlglot.tokenizer_core import Token, TokenType

from spark_dynamic.clock import stamp
from spark_dynamic.sql.dialect import tokens

# Spark itself makes a date or a local time of the moment, in the time zone of the session. A
# number instead of `unix_timestamp` would be a position in a GROUP BY.
_ANSWERS = {
    "current_date": "CAST({moment} AS DATE)",
    "curdate": "CAST({moment} AS DATE)",
    "current_timestamp": "{moment}",
    "now": "{moment}",
    "localtimestamp": "CAST({moment} AS TIMESTAMP_NTZ)",
    "unix_timestamp": "unix_timestamp({moment})",
}
# The others are functions only with parentheses, which have to be empty.
_BARE = {"current_date", "current_timestamp"}
_NO_WORD = (TokenType.IDENTIFIER, TokenType.STRING)
# After a dot or AS stands a name.
_BEFORE_NAMES = (TokenType.DOT, TokenType.ALIAS)


@dataclass(frozen=True)
class ClockCall:
    """One question for the time: the characters `start` to `end` (exclusive) of the text."""

    name: str
    start: int
    end: int

    def answered(self, moment: datetime) -> str:
        """Return what stands for the call at a moment, with the type that the call has.

        >>> from spark_dynamic.clock import EPOCH
        >>> ClockCall("current_date", 0, 0).answered(EPOCH)
        "CAST(TIMESTAMP_LTZ'1970-01-01T00:00:00.000000Z' AS DATE)"
        """
        return _ANSWERS[self.name].format(moment=f"TIMESTAMP_LTZ'{stamp(moment)}'")


def find_clocks(text: str) -> tuple[ClockCall, ...]:
    """Find the calls of clock functions.

    >>> [(c.name, c.start, c.end) for c in find_clocks("select now( ), t.now, current_date d")]
    [('now', 7, 13), ('current_date', 22, 34)]
    """
    return tuple(_calls(tokens(text)))


def _calls(found: list[Token]) -> Iterator[ClockCall]:
    for index, token in enumerate(found):
        name = token.text.lower()
        if name not in _ANSWERS or token.token_type in _NO_WORD:
            continue
        if index and found[index - 1].token_type in _BEFORE_NAMES:
            continue
        following = [other.token_type for other in found[index + 1 : index + 3]]
        if following == [TokenType.L_PAREN, TokenType.R_PAREN]:
            yield ClockCall(name, token.start, found[index + 2].end + 1)
        elif name in _BARE and following[:1] != [TokenType.L_PAREN]:
            yield ClockCall(name, token.start, token.end + 1)

"""A table that two runs replace at once."""

import pytest
from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.spark_dynamic.replacing import replacing
from spark_dynamic.conflicts import ATTEMPTS


class Statement:
    """Fails some times, then succeeds."""

    def __init__(self, message: str, failures: int) -> None:
        self.message, self.left, self.times = message, failures, 0

    def run(self) -> str:
        self.times += 1
        if self.left:
            self.left -= 1
            raise DbtDatabaseError(self.message)
        return "done"


CONFLICT = "[DELTA_METADATA_CHANGED] The metadata was changed by another commit."


def test_the_slower_run_replaces_the_rows_of_the_faster_one() -> None:
    assert replacing(Statement(CONFLICT, ATTEMPTS - 1).run) == "done"


@pytest.mark.parametrize(
    ("message", "times"), [(CONFLICT, ATTEMPTS), ("[DIVIDE_BY_ZERO] Division by zero.", 1)]
)
def test_what_goes_wrong_otherwise_is_reported_as_dbt_found_it(message: str, times: int) -> None:
    statement = Statement(message, 10)
    with pytest.raises(DbtDatabaseError) as error:
        replacing(statement.run)
    assert error.value.msg == message and statement.times == times

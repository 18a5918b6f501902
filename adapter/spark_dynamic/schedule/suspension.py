"""Suspension: a table that is not refreshed until somebody resumes it."""

from dataclasses import replace
from enum import StrEnum

from spark_dynamic.schedule.known import Known


class Suspension(StrEnum):
    """Who suspended a table."""

    BY_ERRORS = "SUSPENDED_BY_ERRORS"
    BY_A_PERSON = "SUSPENDED_BY_A_PERSON"


def suspension(known: Known, suspend_after: int) -> Suspension | None:
    """Tell whether a table is suspended, and by whom; `suspend_after` 0 is never by errors.

    >>> suspension(Known(errors_in_a_row=3), suspend_after=3).value
    'SUSPENDED_BY_ERRORS'
    """
    if known.is_suspended:
        return Suspension.BY_A_PERSON
    if 0 < suspend_after <= known.errors_in_a_row:
        return Suspension.BY_ERRORS
    return None


def suspended(known: Known) -> Known:
    """Return what is known after a person has suspended a table."""
    return replace(known, is_suspended=True)


def resumed(known: Known) -> Known:
    """Return what is known after a person has resumed a table: the errors count anew."""
    return replace(known, is_suspended=False, errors_in_a_row=0)

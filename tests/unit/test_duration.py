from datetime import timedelta

import pytest

from spark_dynamic.duration import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 second", timedelta(seconds=1)),
        ("90 seconds", timedelta(seconds=90)),
        ("5 minutes", timedelta(minutes=5)),
        ("1 minute", timedelta(minutes=1)),
        ("2 hours", timedelta(hours=2)),
        ("1 day", timedelta(days=1)),
        ("30 days", timedelta(days=30)),
        ("2 weeks", timedelta(days=14)),
        ("5 MINUTES", timedelta(minutes=5)),
        ("  5   Minutes ", timedelta(minutes=5)),
        ("1 minutes", timedelta(minutes=1)),
    ],
)
def test_a_whole_number_and_a_unit_is_a_duration(text: str, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "bad",
    [
        "5",
        "-1 minutes",
        "0 minutes",
        "1.5 hours",
        "soon",
        "",
        "minutes",
        "5minutes",
        "5 fortnights",
        "5 months",
        "1 hour 30 minutes",
        "٥ minutes",
        "9999999999999999 days",
        f"{'9' * 5000} days",
        5,
        5.0,
        True,
        None,
        ["5 minutes"],
        timedelta(minutes=5),
    ],
)
def test_anything_else_is_refused_with_what_is_expected(bad: object) -> None:
    with pytest.raises(ValueError, match="Expected a duration such as '5 minutes'") as error:
        parse_duration(bad)
    assert repr(bad) in str(error.value)


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        (timedelta(), "0s"),
        (timedelta(milliseconds=900), "0s"),
        (timedelta(seconds=48), "48s"),
        (timedelta(minutes=2), "2m"),
        (timedelta(minutes=10), "10m"),
        (timedelta(minutes=90), "1h 30m"),
        (timedelta(days=30), "30d"),
        (timedelta(days=1, hours=2, minutes=3, seconds=4), "1d 2h 3m 4s"),
        (timedelta(days=1, seconds=4), "1d 4s"),
        (timedelta(minutes=-2), "-2m"),
    ],
)
def test_a_duration_is_written_shortly(duration: timedelta, expected: str) -> None:
    assert format_duration(duration) == expected

"""One look at the files of many logs."""

import re
from datetime import timedelta
from typing import Any

import pytest

from spark_dynamic.clock import EPOCH
from spark_dynamic.errors import WarehouseError
from spark_dynamic.frontier.logs import look_at_logs


class Files:
    """A file system; a pattern with braces matches as Hadoop's does."""

    def __init__(self, *paths: str) -> None:
        self.paths = paths
        self.patterns: list[str] = []

    def rows(self, sql: str) -> list[dict[str, Any]]:
        found = re.fullmatch(r"SELECT path, .* FROM binaryFile\.`(.*)`", sql)
        assert found
        self.patterns.append(found[1])
        glob = re.escape(found[1]).replace(r"\{", "(").replace(r"\}", ")").replace(",", "|")
        matching = [p for p in self.paths if re.fullmatch(glob.replace(r"\*", "[^/]*"), p)]
        if not matching:
            raise WarehouseError("PATH_NOT_FOUND", found[1])
        return [{"path": path, "modified": 1_000_000} for path in matching]


def file(place: str, version: int, folder: str = "", middle: str = "") -> str:
    return f"{place}/_delta_log/{folder}{version:020}.{middle}json"


MODIFIED = EPOCH + timedelta(seconds=1)
ORDERS, LINES = "file:/wh/shop.db/orders", "s3a://bucket/lines"


def look(files: Files, **versions: int) -> dict[str, Any]:
    places = {"orders": ORDERS, "lines": LINES}
    return look_at_logs(files, {places[name]: v for name, v in versions.items()})


def test_the_newest_commits_are_found_and_nothing_else() -> None:
    files = Files(*(file(ORDERS, v) for v in (2, 3, 5)), file(LINES, 7))
    assert look(files, orders=3, lines=7) == {ORDERS: {3: MODIFIED}, LINES: {7: MODIFIED}}


@pytest.mark.parametrize(
    "following",
    [
        file(ORDERS, 4),
        file(ORDERS, 4, "_staged_commits/", "0d9f4b1c-1."),
        file(ORDERS, 4, "_commits/", "0d9f4b1c-1."),
    ],
)
def test_a_commit_after_the_newest_known_one_is_seen(following: str) -> None:
    found = look(Files(file(ORDERS, 3), following), orders=3)
    assert found == {ORDERS: {3: MODIFIED, 4: MODIFIED}}


def test_a_log_that_is_gone_is_not_in_the_answer() -> None:
    assert look(Files(), orders=3) == {}
    assert look(Files(file(LINES, 7)), orders=3, lines=7) == {LINES: {7: MODIFIED}}


@pytest.mark.parametrize("place", ["file:/wh/my table", "file:/wh/a%20b", "file:/wh/{a}", "/a*"])
def test_what_would_have_to_be_escaped_is_not_looked_at(place: str) -> None:
    files = Files(file(place, 1))
    assert look_at_logs(files, {place: 1}) == {} and files.patterns == []


def test_many_logs_are_looked_at_in_few_statements() -> None:
    places = {f"file:/wh/t{n}": 1 for n in range(700)}
    files = Files(*(file(place, 1) for place in places))
    assert look_at_logs(files, places).keys() == places.keys()
    assert len(files.patterns) == 3


def test_three_slashes_are_one() -> None:
    found = look_at_logs(Files(file("file:/wh/t", 1)), {"file:///wh/t": 1})
    assert found == {"file:///wh/t": {1: MODIFIED}}

"""Texts with line breaks of all kinds: in data, as bounds of what changed, and in queries."""

import pytest
from spark_shop import SparkShop

# As Spark reads them; the last of each pair are line breaks to Python only.
NAMES = (r"'abc\n'", r"'a\u2028b'", r"'\u0085\u001c'")


@pytest.fixture
def notes(shop: SparkShop) -> SparkShop:
    shop.table("names", "name string, kind string", *(f"({name}, 'x')" for name in NAMES))
    shop.table(
        "notes",
        "name string, text string",
        *(f"({name}, {text})" for name in NAMES for text in (*NAMES, "'m'")),
    )
    return shop


def test_they_stay_what_they_are(notes: SparkShop) -> None:
    notes.model(
        "joined",
        "select n.name, n.text, k.kind, 'two\n  lines' as words from notes n join names k "
        "on n.name = k.name where n.text <> 'two\n\n  lines'",
    )
    notes.model(
        "grouped",
        "select concat(k.kind, 'two\nGenerate \u2028\u0085 lines', r'\n', '\\00012') as kind, "
        "n.name, count(*) as n, min(n.text) as low, max(n.text) as high from notes n "
        "join names k on n.name = k.name where n.text <> 'two\n\n  lines' group by all",
    )
    for model in ("joined", "grouped"):
        notes.check(model, "FULL")
    for name in NAMES:
        notes.run(
            f"DELETE FROM notes WHERE name = {name} AND text = {name}",
            f"INSERT INTO names VALUES ({name}, 'y')",
        )
        for model in ("joined", "grouped"):
            notes.check(model)

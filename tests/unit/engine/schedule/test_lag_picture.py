"""The picture in the documents is the one that the simulation draws.

`REWRITE=1 pytest tests/unit/engine/schedule/test_lag_picture.py` draws it anew.
"""

import os
from pathlib import Path
from xml.etree import ElementTree

from simulation.saw_tooth import BEGIN, MINUTE, PAUSE, SHOWN, draw, shop

from spark_dynamic.schedule.lag_numbers import lag_numbers

PICTURE = Path(__file__).parents[4] / "docs" / "images" / "lag.svg"


def test_the_picture_is_up_to_date() -> None:
    drawn = draw(shop())
    ElementTree.fromstring(drawn)
    if os.environ.get("REWRITE"):
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_text(drawn)
    assert PICTURE.read_text() == drawn


def test_only_the_pause_makes_a_table_late() -> None:
    world = shop()
    for name in world.graph.order:
        refreshes = [done.refresh for done in world.done[name]]
        for begin, end in [(BEGIN, PAUSE[0]), (PAUSE[1] + 2 * MINUTE, BEGIN + SHOWN)]:
            numbers = lag_numbers(refreshes, world.graph.lags[name], begin, end)
            assert numbers and numbers.share_within_target == 1

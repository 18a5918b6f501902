"""A run that dies at any statement: each change arrives once in each consumer of each kind."""

import pytest
from spark_shop import SparkShop
from stream_shop import STREAMS, Killed, StreamShop, arrived

KINDS = ("append", "merge", "snapshot")


class Story:
    """What has happened to the sources, and so what every consumer must hold."""

    def __init__(self, streams: StreamShop) -> None:
        self.streams = streams
        self.newest = 1
        self.ids: dict[str, tuple[set[int], set[int]]] = {name: ({1}, set()) for name in STREAMS}

    def go_on(self) -> None:
        self.newest += 1
        self.streams.change(self.newest)
        for name, (came, went) in self.ids.items():
            came.add(self.newest)
            if name == "orders" and self.newest > 2:
                went.add(self.newest - 2)

    def check(self, consumers: list[str], number: int) -> None:
        for consumer in consumers:
            wanted = arrived(self.ids, consumer.partition("_")[0])
            assert self.streams.taken(consumer) == wanted, f"{consumer}, killed at {number}"
            numbers = self.streams.numbers(consumer)
            assert numbers == list(range(1, len(numbers) + 1)), f"{consumer} at {number}"


def begun(shop: SparkShop, consumers: list[str]) -> tuple[StreamShop, Story]:
    streams = StreamShop(shop)
    streams.run(consumers)
    return streams, Story(streams)


def test_killed_right_after_a_commit(shop: SparkShop) -> None:
    """The first consumer has taken the changes, or both have; nobody could say so any more."""
    consumers = ["append_1", "merge_1"]
    streams, story = begun(shop, consumers)
    for number in (1, 2):
        story.go_on()
        with pytest.raises(Killed):
            streams.run(consumers, builds=False, after_write=number)
        story.go_on()
        streams.run(consumers, builds=False)
        story.check(consumers, number)


@pytest.mark.nightly
def test_killed_anywhere_while_changes_are_consumed(shop: SparkShop) -> None:
    """The sources change before the run that dies, and again before the one after it."""
    consumers = [f"{kind}_1" for kind in KINDS]
    streams, story = begun(shop, consumers)
    story.go_on()
    statements = streams.run(consumers, builds=False)
    story.check(consumers, 0)
    for number in range(1, len(statements) + 1):
        story.go_on()
        with pytest.raises(Killed):
            streams.run(consumers, builds=False, before=number)
        story.go_on()
        streams.run(consumers, builds=False)
        story.check(consumers, number)


@pytest.mark.nightly
def test_killed_while_consumers_are_made(shop: SparkShop) -> None:
    streams = StreamShop(shop)
    first = [f"{kind}_0" for kind in KINDS]
    streams.run(first)
    count = len(streams.run([f"{kind}_00" for kind in KINDS], builds=False))
    for number in range(1, count + 1):
        consumers = [f"{kind}_{number}" for kind in KINDS]
        with pytest.raises(Killed):
            streams.run(consumers, builds=False, before=number)
        made = [name for name in consumers if shop.session.catalog.tableExists(name)]
        streams.run(consumers, builds=False)
        story = Story(streams)
        story.check(consumers, number)
        assert made == consumers[: len(made)]
        for name in consumers:
            assert streams.numbers(name) == ([1, 2] if name in made else [1])

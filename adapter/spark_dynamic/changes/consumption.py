"""The record of a consumption: it rides in the commit that holds the consumed rows."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from spark_dynamic.changes.position import read_position, write_position
from spark_dynamic.changes.read import Position
from spark_dynamic.clock import read_stamp, stamp
from spark_dynamic.frontier.record import as_metadata
from spark_dynamic.warehouse import Commit

_KEY: Final = "spark_dynamic_consumption"
_FORMAT: Final = 1


@dataclass(frozen=True)
class Taken:
    """The interval of a stream that a consumer took last."""

    fingerprint: str
    # None: from before the first change, so the contents at the end.
    start: Position | None
    end: Position
    taken_at: datetime
    # How its changes were computed.
    shape: str = ""


@dataclass(frozen=True)
class Consumption:
    """Everything that the next consumption has to know about this one."""

    consumer: str
    engine: str
    incarnation: str
    number: int
    attempt: str
    cycle: str
    data_timestamp: datetime
    action: str
    # By the dbt id of the stream's model; also streams that this consumption did not touch.
    streams: Mapping[str, Taken]


@dataclass(frozen=True)
class Consumed:
    """A consumption together with the commit that carries it."""

    consumption: Consumption
    commit: Commit


def write_consumption(consumption: Consumption) -> str:
    """Return a consumption as the commit's user metadata."""
    streams = {
        name: {
            "fingerprint": taken.fingerprint,
            "start": None if taken.start is None else write_position(taken.start),
            "end": write_position(taken.end),
            "taken_at": stamp(taken.taken_at),
            "shape": taken.shape,
        }
        for name, taken in consumption.streams.items()
    }
    body = {
        **vars(consumption),
        "data_timestamp": stamp(consumption.data_timestamp),
        "streams": streams,
    }
    return as_metadata({_KEY: _FORMAT, **body})


def is_consumption(metadata: str | None) -> bool:
    """Tell whether a commit's metadata is a consumption, of whatever version."""
    return bool(metadata) and _KEY in str(metadata)


def read_consumption(metadata: str | None) -> Consumption | None:
    """Return the consumption that a commit's metadata holds, if it is one that we can read."""
    if not metadata or not is_consumption(metadata):
        return None
    try:
        body: dict[str, Any] = json.loads(metadata)
        if body.pop(_KEY) != _FORMAT:
            return None
        streams = {
            name: Taken(
                fingerprint=taken["fingerprint"],
                start=None if taken["start"] is None else read_position(taken["start"]),
                end=read_position(taken["end"]),
                taken_at=read_stamp(taken["taken_at"]),
                shape=taken.get("shape", ""),
            )
            for name, taken in body.pop("streams").items()
        }
        moment = read_stamp(body.pop("data_timestamp"))
        return Consumption(**body, data_timestamp=moment, streams=streams)
    except (ValueError, KeyError, TypeError, AttributeError):
        # Written by another version of the engine, or not by the engine at all.
        return None


def consumptions(commits: Iterable[Commit]) -> list[Consumed]:
    """Return the consumptions of a log, newest first.

    Auto-compaction repeats the metadata of the commit before it, so of several commits with one
    attempt's id the oldest is the one.
    """
    found: dict[str, Consumed] = {}
    for commit in sorted(commits, key=lambda commit: commit.version):
        read = read_consumption(commit.user_metadata)
        if read is not None and read.attempt not in found:
            found[read.attempt] = Consumed(read, commit)
    return sorted(found.values(), key=lambda one: one.commit.version, reverse=True)

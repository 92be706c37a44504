"""Streams for tests: small rows of events, and a process that dies at a chosen request."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from instar.api.stream import Stream
from instar.schema import as_schema
from instar.stream import StreamHandle
from tests.faults import Faults, UnreliableBlob, UnreliableConsensus
from tests.tables import START, Clock, World

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from instar.table import Services

__all__ = [
    "FIRST",
    "KINDS",
    "NAME",
    "DeadError",
    "Mortal",
    "day",
    "events",
    "make_stream",
    "new_world",
    "open_again",
    "sorted_rows",
]

FIRST = "user string not null, at timestamp, amount int"
KINDS = {"hourly": "6h", "regular": "1d", "repartitioned": "1d", "eod": "1d", "archive": "1y"}
NAME = "billing/events"


class DeadError(BaseException):
    """The process has ended: nobody catches this."""


class Mortal:
    """Counts the requests that change something, and dies before or after one of them, for good."""

    def __init__(self, at: int | None = None, *, after: bool = False) -> None:
        self.at = at
        self.is_after = after
        self.count = 0
        self.dead = False
        self.faults = Faults(before=self._before, after=self._after)
        self._lock = threading.Lock()

    def services(self, world: World) -> Services:
        """Open the world as a process that may die."""
        return world.services(
            lambda blob: UnreliableBlob(blob, self.faults),
            lambda consensus: UnreliableConsensus(consensus, self.faults),
        )

    def _before(self, operation: str, _: str) -> None:
        if self.dead:
            raise DeadError
        if operation in {"put", "put_if_absent", "append", "delete"}:
            with self._lock:
                self.count += 1
                if self.count == self.at:
                    self.dead = True
            if self.dead and not self.is_after:
                raise DeadError

    def _after(self, *_: str) -> None:
        if self.dead:
            raise DeadError


def day(number: int) -> datetime:
    """Return the beginning of a day before the tests began."""
    start = datetime.fromtimestamp(START / 1000, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return start - timedelta(days=number)


def events(days: Sequence[int], each: int = 2, **columns: Any) -> pa.Table:  # noqa: ANN401 -- any values
    """Return some events on each of some days, with the same values in further columns."""
    times = [day(number) + timedelta(hours=7 * at) for number in days for at in range(each)]
    users = [f"u{number}-{at}" for number in days for at in range(each)]
    more = {name: [value] * len(times) for name, value in columns.items()}
    return pa.table({"user": users, "at": pa.array(times, pa.timestamp("us", "UTC")), **more})


def new_world(**settings: Any) -> World:  # noqa: ANN401 -- those of a world
    """Return a place whose clock begins where tests do."""
    return World(clock=Clock(), **settings)


def make_stream(world: World, kinds: Mapping[str, str] | None = None, schema: str = FIRST) -> Stream:
    """Create the stream that tests use."""
    handle = StreamHandle(world.services(), NAME)
    handle.create(as_schema(schema), version="v0.0.1", time="at", kinds=KINDS if kinds is None else kinds)
    return Stream(handle)


def open_again(world: World, services: Services | None = None) -> Stream:
    """Open the stream as another process would."""
    return Stream(StreamHandle(services or world.services(), NAME))


def sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows in an order of their own, so that two results can be compared."""
    return sorted(table.to_pylist(), key=lambda row: repr(sorted(row.items(), key=lambda item: item[0])))

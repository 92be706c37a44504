"""Random commands from several handles against a plain list, on every backend.

The suites beside this one say what must hold in chosen situations; this looks for situations nobody chose.
"""

# The names of the rules say what they do.
# ruff: noqa: D102

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from instar.errors import StorageTimeoutError
from instar.storage import AppendResult, Versioned

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.storage import Consensus
    from tests.conformance.conftest import Place

KEYS = ["a/b", "a%2Fb"]
HANDLES = 2
keys = st.sampled_from(KEYS)
handles = st.integers(0, HANDLES - 1)
seqnos = st.integers(-2, 3)


class ConsensusMachine(RuleBasedStateMachine):
    """Several handles to the same logs, and what the logs must contain."""

    open_handle: Callable[[], Consensus]
    fuzzy = False  # whether a writer that slept through a truncation may be told that nobody knows

    def __init__(self) -> None:
        super().__init__()
        self.handles = [self.open_handle() for _ in range(HANDLES)]
        self.run = uuid.uuid4().hex  # all examples share one place
        self.floors = dict.fromkeys(KEYS, 0)
        self.logs: dict[str, list[bytes]] = {key: [] for key in KEYS}
        self.seen: dict[tuple[int, str], int] = {}  # what each handle last saw of each log

    def name(self, key: str) -> str:
        return f"{self.run}/{key}"

    def head(self, key: str) -> int | None:
        return len(self.logs[key]) - 1 if self.logs[key] else None

    @rule(key=keys, handle=handles, data=st.binary(max_size=3), more=st.integers(1, 4))
    def append_at_the_head(self, key: str, handle: int, data: bytes, more: int) -> None:
        for _ in range(more):
            assert self.handles[handle].append(self.name(key), self.head(key), data) is AppendResult.LANDED
            self.logs[key].append(data)
            self.seen[handle, key] = len(self.logs[key]) - 1

    def append_in_vain(self, key: str, handle: int, expected: int | None) -> None:
        if expected == self.head(key):
            return
        try:
            assert self.handles[handle].append(self.name(key), expected, b"ghost") is AppendResult.MISMATCH
        except StorageTimeoutError:
            assert self.fuzzy
            assert (0 if expected is None else expected + 1) < self.floors[key]

    @rule(key=keys, handle=handles, distance=st.integers(-40, 3))
    def append_elsewhere(self, key: str, handle: int, distance: int) -> None:
        expected = len(self.logs[key]) - 1 + distance
        self.append_in_vain(key, handle, None if expected < 0 else expected)

    @rule(key=keys, handle=handles)
    def append_after_a_sleep(self, key: str, handle: int) -> None:
        self.append_in_vain(key, handle, self.seen.get((handle, key)))

    @rule(key=keys, handle=handles, below=seqnos)
    def truncate(self, key: str, handle: int, below: int) -> None:
        head = self.head(key) or 0
        self.handles[handle].truncate(self.name(key), head + below)
        self.floors[key] = max(self.floors[key], min(head + below, head))

    @rule(key=keys, handle=handles, start=st.integers(-1, 40), limit=st.none() | st.integers(0, 5))
    def scan(self, key: str, handle: int, start: int, limit: int | None) -> None:
        begin = max(start, self.floors[key])
        expected = [Versioned(n, self.logs[key][n]) for n in range(begin, len(self.logs[key]))]
        assert self.handles[handle].scan(self.name(key), start, limit) == expected[:limit]

    @rule(key=keys, handle=handles)
    def look_at_the_head(self, key: str, handle: int) -> None:
        head = self.head(key)
        expected = None if head is None else Versioned(head, self.logs[key][head])
        assert self.handles[handle].head(self.name(key)) == expected
        tail = self.handles[handle].tail(self.name(key))
        assert bool(tail) == (head is not None)
        known = [Versioned(n, self.logs[key][n]) for n in range(self.floors[key], len(self.logs[key]))]
        assert tail == known[len(known) - len(tail) :]
        if head is not None:
            self.seen[handle, key] = head

    @rule(handle=handles)
    def reopen(self, handle: int) -> None:
        self.handles[handle] = self.open_handle()
        for key in KEYS:
            self.seen.pop((handle, key), None)

    @invariant()
    def keys_are_those_with_entries(self) -> None:
        expected = sorted((self.name(key) for key in KEYS if self.logs[key]), key=str.encode)
        assert list(self.handles[0].keys(self.run)) == expected


EXAMPLES = {"memory": 50, "blob-memory": 60, "blob-s3": 2}
_OTHERS = 15


def test_consensus_behaves_like_a_list(place: Place) -> None:
    """Whatever the handles do and in whatever order, each sees the log as it is."""
    handle = place.open_consensus()

    class Machine(ConsensusMachine):
        fuzzy = place.name.startswith("blob-")

        def open_handle(self) -> Consensus:
            # A server's connections are dear; what differs between handles is what blobs have seen.
            return handle if place.name == "postgres" else place.open_consensus()

    steps = 12 if place.name == "blob-s3" else 40
    more = settings.default.max_examples // 100 if settings.default else 1
    run_state_machine_as_test(
        Machine,
        settings=settings(max_examples=EXAMPLES.get(place.name, _OTHERS) * more, stateful_step_count=steps),
    )

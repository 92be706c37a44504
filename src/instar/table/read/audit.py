"""Whether parts are skipped, and which skipped parts are still read, to check the proof.

`off` reads everything. `audit` reads everything too, and checks every part that would have been skipped.
`on` skips, and checks a sample: a hash of their places chooses the parts, so every reader checks the same,
and only as long as what all checks read stays within a budget. The same part is not checked twice for the
same filter.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import numpy as np

from instar.state.chunk import FILES, PLACES
from instar.state.options import check_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from instar.state import ConfigValue
    from instar.table.log.part_set import PartSet

__all__ = ["Audits", "Policy", "Skipping", "resolve_policy"]

_SHARE: Final = 0.01
"""How much checks may read of what queries read."""
_LEAST_COST: Final = 16 * 1024 * 1024
"""What a check costs at least, in bytes: starting to read is not free."""
_REMEMBERED: Final = 100_000


class Skipping(StrEnum):
    """What happens to parts that a filter does not need."""

    OFF = "off"
    AUDIT = "audit"
    ON = "on"


@dataclass(frozen=True)
class Policy:
    """How to skip: the mode, and how much of what is skipped is checked in mode `on`."""

    mode: Skipping = Skipping.ON
    sample: float = 1.0
    """Percent of the skipped parts."""
    budget: int = 256 * 1024 * 1024
    """Bytes that checks may read beyond one percent of what queries read, as long as a store is open."""


def resolve_policy(*choices: Mapping[str, ConfigValue | None]) -> Policy:
    """Combine options; the first setting that is present wins."""
    found: dict[str, ConfigValue] = {}
    for options in reversed(choices):
        found |= {name: value for name, value in check_options(options).items() if value is not None}
    usual = Policy()
    return Policy(
        Skipping(str(found.get("skipping", usual.mode))),
        float(found.get("skipping_sample", usual.sample)),
        int(found.get("skipping_budget", usual.budget)),
    )


class Audits:
    """Chooses the parts to check, and tracks the budget. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read = 0
        self._spent = 0
        self._done: OrderedDict[tuple[str, str], None] = OrderedDict()

    def choose(self, policy: Policy, skipped: PartSet, table_id: str, condition: str) -> list[int]:
        """Return the positions of the skipped parts that are checked against a condition."""
        match policy.mode:
            case Skipping.OFF:
                return []
            case Skipping.AUDIT:
                return list(range(len(skipped)))
        drawn = np.flatnonzero(_hashes(skipped, table_id) < policy.sample / 100 * 2.0**64).tolist()
        chosen = []
        files = skipped.columns[FILES]
        with self._lock:
            for at in drawn:
                key, size = files.column("key")[at].as_py(), files.column("size")[at].as_py()
                if self._spent + max(size, _LEAST_COST) > policy.budget + _SHARE * self._read:
                    break
                if (key, condition) not in self._done:
                    self._pay(key, size, condition)
                    chosen.append(at)
        return chosen

    def note_read(self, size: int) -> None:
        """Record how much a query reads."""
        with self._lock:
            self._read += size

    def _pay(self, key: str, size: int, condition: str) -> None:
        self._spent += max(size, _LEAST_COST)
        self._done[key, condition] = None
        while len(self._done) > _REMEMBERED:
            self._done.popitem(last=False)


def _hashes(parts: PartSet, table_id: str) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return a number for each part that depends on its place in its table, and on nothing else."""
    salt = np.uint64(int.from_bytes(blake2b(table_id.encode(), digest_size=8).digest()))
    places = parts.columns[PLACES]
    batches, ordinals = (places.column(name).to_numpy().astype(np.uint64) for name in ("batch", "ordinal"))
    mixed = (batches << np.uint64(24)) ^ ordinals ^ salt
    # The finaliser of splitmix64.
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    hashes: np.ndarray[tuple[int], np.dtype[np.uint64]] = mixed ^ (mixed >> np.uint64(31))
    return hashes

"""Two machines on one store: what one does between any two requests of the other."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from instar.api import Store
from tests.faults import Faults, UnreliableBlob, UnreliableConsensus
from tests.tables import World

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Steps", "between_requests"]


class Steps(NamedTuple):
    """What two machines do with a store, and what must be so in the end."""

    prepare: Callable[[Store], object]
    act: Callable[[Store], object]
    other: Callable[[Store], object]
    check: Callable[[Store], object]


def between_requests(steps: Steps) -> int:
    """Let others act before the first request of one machine; in a new store, before its second; and so on.

    Return how many requests there are.
    """
    for turn in itertools.count(1):
        world = World()
        aside = Store("memory", world.services())
        steps.prepare(aside)
        left = turn

        def before(_operation: str, _key: str, aside: Store = aside) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                steps.other(aside)

        faults = Faults(before=before)
        own = world.services(
            lambda blob, faults=faults: UnreliableBlob(blob, faults),  # type: ignore[misc]
            lambda logs, faults=faults: UnreliableConsensus(logs, faults),  # type: ignore[misc]
        )
        steps.act(Store("memory", own))
        requests = turn - left
        if left > 0:
            world.close()
            return requests
        steps.check(Store("memory", world.services()))
        world.close()
    raise AssertionError

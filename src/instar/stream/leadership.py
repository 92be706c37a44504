"""Leadership: one process of several does something that all could do, until it stops renewing its lead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from instar.errors import LeadershipLostError
from instar.stream.journal import Codec, Journal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from instar.table import Services

__all__ = ["LEAD_MS", "Claim", "Leader", "Leadership", "claim_lead"]

LEAD_MS: Final = 60_000
"""How long a lead lasts without being renewed."""


class Leadership(msgspec.Struct, frozen=True, array_like=True):
    """Who leads, until when, and the number of the leadership: each leader has a greater one."""

    holder: str
    fence: int
    expires_at: int


class Claim(NamedTuple):
    """The answer to a process that wants to lead: who else leads, or what to record, if anything."""

    rival: Leadership | None = None
    renewed: Leadership | None = None


def claim_lead(current: Leadership | None, holder: str, fence: int | None, now: int, lead_ms: int) -> Claim:
    """Decide whether somebody may lead, or lead on, at a time. A lead is renewed in its second half.

    One that lasts much longer than any does was taken by a clock that is ahead, and counts for nothing: its
    holder may be dead, and if it is not, its number keeps it from doing harm.
    """
    if current is not None and current.holder != holder and now < current.expires_at <= now + 3 * lead_ms:
        return Claim(rival=current)
    mine = current is not None and current.holder == holder and current.fence == fence
    if mine and current is not None and current.expires_at - now > lead_ms // 2:
        return Claim()
    number = (0 if current is None else current.fence) + (0 if mine else 1)
    return Claim(renewed=Leadership(holder, number, now + lead_ms))


_CODEC: Final = Codec[Leadership, Leadership](
    "leadership",
    Leadership,
    Leadership,
    lambda _, after: after,
    lambda leadership: leadership,
    lambda image: image,  # type: ignore[arg-type, return-value]
)


class Leader:
    """A process that leads, or waits to lead, the work of one key."""

    def __init__(self, services: Services, key: str, *, lead_ms: int = LEAD_MS) -> None:
        self._key = key
        self._clock = services.clock
        self._holder = f"{services.author()}/{services.new_id()[:8]}"
        self._lead_ms = lead_ms
        self._journal: Journal[Leadership, Leadership] = Journal(services, key, _CODEC)
        self._fence: int | None = None

    def lead(self) -> Leadership | None:
        """Take the lead, or keep it, and return None; or return its holder."""
        current = self._journal.refresh()
        rival, renewed = claim_lead(current, self._holder, self._fence, self._clock(), self._lead_ms)
        if rival is not None or renewed is None:
            return rival

        def decide(found: Leadership | None) -> Sequence[Leadership]:
            if found != current:
                raise LeadershipLostError(self._key, "nobody" if found is None else found.holder)
            return (renewed,)

        try:
            self._journal.commit(decide)
        except LeadershipLostError:
            return self._journal.refresh()
        self._fence = renewed.fence
        return None

    def resign(self) -> None:
        """Let others lead at once, if this one does."""

        def decide(found: Leadership | None) -> Sequence[Leadership]:
            if found is None or found.holder != self._holder:
                return ()
            return (msgspec.structs.replace(found, expires_at=self._clock()),)

        self._journal.commit(decide)

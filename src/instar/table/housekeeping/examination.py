"""Examine a store: can it be read and written, does it keep its promises, is its clock right?"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from instar.errors import InstarError
from instar.storage import BlobConsensus, creates_twice, put_if_missing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.table.services import Services

__all__ = ["Finding", "Health", "examine_store"]

_PROBES: Final = "probes"
_AHEAD_MS: Final = 5000
"""By how much clocks may differ without anybody noticing: commits take their times from the writer's."""


class Health(StrEnum):
    """How something is."""

    FINE = "fine"
    WARNING = "warning"
    """It works, but not as well as it could."""
    WRONG = "wrong"


class Finding(NamedTuple):
    """What was examined, its health, what was found, and what to do about it."""

    what: str
    health: Health
    found: str
    remedy: str = ""


def examine_store(services: Services) -> Iterator[Finding]:
    """Write, read and delete an object below `probes/`, and look at what the store did."""
    key = f"{_PROBES}/{services.new_id()}"
    try:
        before = services.clock()
        put_if_missing(services.blob, key, b"probe")
        again = creates_twice(services.blob, key, b"probe")
        after = services.clock()
        probe = services.blob.stat(key)
        services.blob.delete([key])
    except InstarError as error:
        remedy = "Check the address, the credentials, and that they may read, write and delete there."
        yield Finding("store", Health.WRONG, str(error), remedy)
        return
    yield Finding("store", Health.FINE, f"{services.blob.url} can be read and written")
    if not again:
        yield Finding("conditional writes", Health.FINE, "an object cannot be created twice")
    elif not isinstance(services.consensus, BlobConsensus):
        found = "the service does not support them, which is fine: the logs are elsewhere"
        yield Finding("conditional writes", Health.FINE, found)
    else:
        found = "two writers may create the same object, so logs in the store would lose commits"
        remedy = "Keep the logs in PostgreSQL: consensus='postgresql://…'."
        yield Finding("conditional writes", Health.WRONG, found, remedy)
    if probe is not None:
        yield _clocks(before, probe.modified_ms, after)
    try:
        services.consensus.head(f"{services.log_prefix}@store")
    except InstarError as error:
        remedy = "Check that the server runs, its address and its credentials."
        yield Finding("logs", Health.WRONG, str(error), remedy)
    else:
        yield Finding("logs", Health.FINE, "they can be read")


def _clocks(before: int, stamped: int, after: int) -> Finding:
    """Compare the store's clock with ours; stores round to seconds."""
    ahead = max(before - stamped - 1000, stamped - after, 0)
    if ahead <= _AHEAD_MS:
        return Finding("clock", Health.FINE, "this machine's clock and the store's agree")
    found = f"this machine's clock and the store's differ by {ahead / 1000:.0f} seconds"
    remedy = "Synchronise this machine (NTP): times of commits and ages of files come from both clocks."
    return Finding("clock", Health.WARNING, found, remedy)

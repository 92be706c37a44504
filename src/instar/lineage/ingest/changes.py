"""What one event changed about a dataset: around which moments its versions have to be looked at again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from uuid import UUID

__all__ = ["DatasetChange"]


class DatasetChange(NamedTuple):
    """A read or a version came, went or moved at a moment, or says something else than before.

    `version_uuid` is the version itself; a read has none. `run_uuid` is whose read or version it is. A
    version is `settled` if its schema is what its writer said, which is right as long as nobody has read it;
    `is_current` says whether it is or was current.
    """

    dataset_uuid: UUID
    at: int
    run_uuid: UUID | None
    version_uuid: UUID | None = None
    settled: bool = False
    is_current: bool = False

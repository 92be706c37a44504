"""Commits: what one entry of a table's log says.

A commit is a few steps that happen together. Steps are facts: whether they may happen was decided
by `commands.py` on the state before.
"""

from __future__ import annotations

from typing import Union

import msgspec

from instar.schema import Schema
from instar.state.parts import ChunkRef, Part, Place
from instar.state.retractions import Retraction, SheetRef

__all__ = [
    "Appended",
    "Checkpointed",
    "Cloned",
    "CommitRecord",
    "Compacted",
    "ConfigValue",
    "Configured",
    "Created",
    "Dropped",
    "Evolved",
    "Naming",
    "NewBatch",
    "Pointed",
    "Removed",
    "Renamed",
    "Renaming",
    "SinceAdvanced",
    "Start",
    "Step",
    "Undropped",
]

ConfigValue = Union[bool, int, float, str]  # noqa: UP007 -- resolved by msgspec


class NewBatch(msgspec.Struct, frozen=True, array_like=True):
    """Parts and retractions on their way into a table. The seqno that they will have is not known yet."""

    lower: int
    upper: int
    schema_id: int
    parts: tuple[Part, ...] = ()
    chunks: tuple[ChunkRef, ...] = ()
    retractions: tuple[Retraction, ...] = ()
    sheets: tuple[SheetRef, ...] = ()

    @property
    def rows(self) -> int:
        """The number of updates in the batch: rows of parts, and rows that are retracted by position."""
        return self.part_rows + self.retracted

    @property
    def part_rows(self) -> int:
        """The number of rows of its parts."""
        return sum(part.rows for part in self.parts) + sum(chunk.rows for chunk in self.chunks)

    @property
    def retracted(self) -> int:
        """The number of rows of other batches that it retracts by position."""
        return sum(it.rows for it in self.retractions) + sum(sheet.rows for sheet in self.sheets)

    @property
    def part_count(self) -> int:
        """The number of parts, inline and in chunks."""
        return len(self.parts) + sum(chunk.parts for chunk in self.chunks)


class Created(msgspec.Struct, frozen=True, array_like=True, tag="created"):
    """A table begins, under a name that was free: `name`, or if that is None the key of the log."""

    table_id: str
    schema: Schema
    order_by: tuple[int, ...] = ()
    key: tuple[int, ...] = ()
    config: dict[str, ConfigValue] = {}
    name: str | None = None


class Cloned(msgspec.Struct, frozen=True, array_like=True, tag="cloned"):
    """A table begins with the content of another one; the commit's rollup has all of it."""

    table_id: str
    source: str
    source_seqno: int
    schema_id: int
    upper: int


class Evolved(msgspec.Struct, frozen=True, array_like=True, tag="evolved"):
    """A schema becomes the latest, under the next id."""

    schema_id: int
    schema: Schema


class Appended(msgspec.Struct, frozen=True, array_like=True, tag="appended"):
    """A batch is added, and the table's upper becomes the batch's.

    `touched` are the places of the parts that it takes rows of, if they are in sheets. `adopted` is the key
    of the list of all files that the table has ever adopted, if the batch is made of such. `restored` is the
    time whose rows the batch brings back, if it does; it is only for the log to tell.
    """

    batch: NewBatch
    token: str | None = None
    touched: tuple[Place, ...] = ()
    adopted: str | None = None
    restored: int | None = None

    @property
    def places(self) -> frozenset[Place]:
        """The places of all parts that it takes rows of."""
        return frozenset((*self.touched, *(it.place for it in self.batch.retractions)))


class Compacted(msgspec.Struct, frozen=True, array_like=True, tag="compacted"):
    """Parts are replaced by others that say the same."""

    removed: tuple[Place, ...]
    removed_rows: int
    removed_size: int
    batch: NewBatch | None = None
    removed_retracted: int = 0


class SinceAdvanced(msgspec.Struct, frozen=True, array_like=True, tag="since"):
    """Times before `since` may from now on be merged together."""

    since: int


class Configured(msgspec.Struct, frozen=True, array_like=True, tag="configured"):
    """Options are set, or with None go back to their default."""

    options: dict[str, ConfigValue | None]


class Checkpointed(msgspec.Struct, frozen=True, array_like=True, tag="checkpointed"):
    """Nothing changes, but readers may start at the commit's rollup from now on."""


class Dropped(msgspec.Struct, frozen=True, array_like=True, tag="dropped"):
    """The table ends; its name is free again."""


class Undropped(msgspec.Struct, frozen=True, array_like=True, tag="undropped"):
    """A table that was dropped is back, as it was."""


class Removed(msgspec.Struct, frozen=True, array_like=True, tag="removed"):
    """What a dropped table held may be deleted from now on; it cannot come back."""


class Renaming(msgspec.Struct, frozen=True, array_like=True, tag="renaming"):
    """The table is about to get another name, or with None it is no longer."""

    to: str | None


class Renamed(msgspec.Struct, frozen=True, array_like=True, tag="renamed"):
    """The table has the name that it was about to get. Its log stays where it is."""

    name: str


class Pointed(msgspec.Struct, frozen=True, array_like=True, tag="pointed"):
    """A table whose name is the key of this log has another log, if that says so too.

    `table_id` is that of no table: the log may have had none yet.
    """

    log: str
    table_id: str


Step = Union[  # noqa: UP007 -- as above
    Created,
    Cloned,
    Evolved,
    Appended,
    Compacted,
    SinceAdvanced,
    Configured,
    Checkpointed,
    Dropped,
    Undropped,
    Removed,
    Renaming,
    Renamed,
    Pointed,
]


class Start(msgspec.Struct, frozen=True, array_like=True):
    """Where reading a state may start: at a rollup, or at the commit that created the table."""

    seqno: int
    rollup: bool


class Naming(msgspec.Struct, frozen=True, array_like=True):
    """What a commit leaves of names, where its steps alone do not tell it.

    `name` is that of the table, `ended` whether it was dropped, and `pointer` the log of the table that has
    the key of this log as its name.
    """

    name: str
    ended: bool
    pointer: str | None


class CommitRecord(msgspec.Struct, frozen=True, array_like=True):
    """One entry of a table's log: who did what, when, in one atomic move.

    The committer chooses the id before the first attempt: after a lost reply it tells whether the
    commit landed. `at` is milliseconds since 1970 by the committer's clock, and `by` names the committer.
    `after` is the id of the entry before, so that a lost or replaced entry is noticed.
    """

    id: str
    at: int
    by: str
    table_id: str
    start: Start
    steps: tuple[Step, ...]
    after: str | None
    naming: Naming | None = None

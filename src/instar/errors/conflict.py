"""Errors because somebody else changed the table first: reload, and decide again."""

from __future__ import annotations

from instar.errors.base import InstarError

__all__ = [
    "ConflictError",
    "LeadershipLostError",
    "LeaseExpiredError",
    "PartsGoneError",
    "SchemaMismatchError",
    "StreamExistsError",
    "TableExistsError",
    "UpperMismatchError",
    "VersionConflictError",
]


class ConflictError(InstarError):
    """Somebody else changed the table first; reload and decide again."""

    code = "conflict"


class SchemaMismatchError(ConflictError):
    """`compare_and_evolve_schema` expected a schema that is not the latest."""

    code = "schema-mismatch"

    def __init__(self, table: str, *, expected: int | None, current: int | None) -> None:
        self.table = table
        self.expected = expected
        self.current = current
        wanted = "no schema" if expected is None else f"schema {expected}"
        found = "the table has none" if current is None else f"{current} is current"
        super().__init__(
            f"cannot evolve `{table}`: the change expected {wanted}, but {found}. "
            "Reload the table and apply the change again."
        )


class UpperMismatchError(ConflictError):
    """An append expected the table to be complete up to another time."""

    code = "upper-mismatch"

    def __init__(self, table: str, *, expected: int, current: int) -> None:
        self.table = table
        self.expected = expected
        self.current = current
        super().__init__(
            f"cannot append to `{table}`: the batch starts at time {expected}, but the table is complete "
            f"up to {current}, its upper. Read the upper again and build a new batch."
        )


class LeaseExpiredError(ConflictError):
    """A reader paused for longer than its lease lasts, and a vacuum has deleted files that it needs."""

    code = "lease-expired"

    def __init__(self, table: str) -> None:
        self.table = table
        super().__init__(
            f"cannot continue reading this snapshot of `{table}`: its lease expired, and "
            "a vacuum has deleted files that it needs. Take a new snapshot and read again."
        )


class PartsGoneError(ConflictError):
    """The inputs of a compaction are no longer what it read."""

    code = "parts-gone"

    def __init__(self, table: str, *, planned_at: int, why: str) -> None:
        self.table = table
        self.planned_at = planned_at
        self.why = why
        super().__init__(
            f"the compaction of `{table}` planned at state {planned_at} cannot be applied: {why}. "
            "Plan it again; nothing was changed."
        )


class TableExistsError(ConflictError):
    """A table of that name already exists."""

    code = "table-exists"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"table `{name}` already exists. Open it, drop it, or choose another name.")


class StreamExistsError(ConflictError):
    """A stream of that name already exists."""

    code = "stream-exists"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"stream `{name}` already exists. Open it with store.stream, or choose another name."
        )


class VersionConflictError(ConflictError):
    """A version of a stream keeps its schema forever, and this schema is another one."""

    code = "version-conflict"

    def __init__(self, stream: str, version: str, *, known: str, given: str) -> None:
        self.stream = stream
        self.version = version
        self.known = known
        self.given = given
        super().__init__(
            f"version {version} of stream `{stream}` is known with another schema ({known}) than this one "
            f"({given}). Give the changed schema a new version."
        )


class LeadershipLostError(ConflictError):
    """Another evolver leads this stream now; nothing that this one did is lost."""

    code = "leadership-lost"

    def __init__(self, stream: str, holder: str) -> None:
        self.stream = stream
        self.holder = holder
        super().__init__(f"{holder} is evolving stream `{stream}` now. Nothing is lost; run again later.")

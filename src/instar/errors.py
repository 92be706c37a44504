"""Every error that instar raises, grouped by what the caller should do next.

    InstarError
    ├── UsageError                      change the call
    │   ├── InvalidSchemaError          a schema text or value that cannot be read; says where
    │   │   └── UnsupportedTypeError    a type that a table cannot hold
    │   ├── AmbiguousEvolutionError     a rename, or a drop and an add? only the caller knows
    │   ├── InvalidNameError            a table name or path that is not allowed
    │   ├── InvalidEventError           an OpenLineage event that cannot be understood; nothing of it is kept
    │   ├── DataMismatchError           data that does not fit the table; says column, row and why
    │   ├── MissingExtraError           something that has to be installed is not: says what
    │   └── FormatTooNewError           written by a newer instar: upgrade
    ├── NotFoundError                   name something that exists
    │   ├── StoreNotFoundError
    │   ├── TableNotFoundError
    │   ├── StreamNotFoundError
    │   ├── EntityNotFoundError         a dataset, job, run or version that lineage does not know
    │   ├── SchemaNotFoundError
    │   └── ColumnNotFoundError
    ├── ConflictError                   reload and retry
    │   ├── SchemaMismatchError         compare_and_evolve_schema expected another schema
    │   ├── UpperMismatchError          an append expected another upper
    │   ├── PartsGoneError              a compaction's inputs were replaced meanwhile
    │   ├── TableExistsError
    │   ├── StreamExistsError
    │   ├── VersionConflictError        a version of a stream is known with another schema
    │   └── LeadershipLostError         another evolver leads now
    ├── IncompatibleSchemaError         against the evolution rules: make another change
    ├── FencedError                     open again at the latest schema
    │   ├── ReaderFencedError
    │   └── WriterFencedError
    ├── CommitOutcomeUnknownError       look before retrying
    ├── CorruptTableError               stop: stored bytes are not what was written
    ├── NegativeCountError              a row was retracted more often than it was added: add it back
    ├── CountOverflowError              a row is there more often than 64 bits can count: retract some
    ├── SkippingViolationError          a proof about a part was wrong: read everything, and report it
    └── StorageError                    the store did not do it
        ├── StorageDeniedError          it does not allow it
        └── StorageTimeoutError         the store may or may not have done it

Each class has a stable `code`, typed fields, and builds its own message: what, why, what next.
`DISPOSITIONS` gives each class its process exit code and HTTP status.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "DISPOSITIONS",
    "AmbiguousEvolutionError",
    "ColumnNotFoundError",
    "CommitOutcomeUnknownError",
    "ConflictError",
    "CorruptTableError",
    "CountOverflowError",
    "DataMismatchError",
    "Disposition",
    "EntityNotFoundError",
    "FencedError",
    "FormatTooNewError",
    "IncompatibleSchemaError",
    "InstarError",
    "InvalidEventError",
    "InvalidNameError",
    "InvalidSchemaError",
    "LeadershipLostError",
    "MissingExtraError",
    "NegativeCountError",
    "NotFoundError",
    "PartsGoneError",
    "ReaderFencedError",
    "SchemaMismatchError",
    "SchemaNotFoundError",
    "SkippingViolationError",
    "StorageDeniedError",
    "StorageError",
    "StorageTimeoutError",
    "StoreNotFoundError",
    "StreamExistsError",
    "StreamNotFoundError",
    "TableExistsError",
    "TableNotFoundError",
    "UnsupportedTypeError",
    "UpperMismatchError",
    "UsageError",
    "VersionConflictError",
    "WriterFencedError",
    "disposition",
]


class InstarError(Exception):
    """Base of every error that instar raises on purpose."""

    code: ClassVar[str] = "error"


class UsageError(InstarError):
    """The call itself is wrong: nothing was done, and the same call will fail again."""

    code = "usage"


class InvalidSchemaError(UsageError):
    """A schema text or value cannot be understood; `position` is an offset into `text`."""

    code = "invalid-schema"

    def __init__(self, problem: str, *, text: str | None = None, position: int | None = None) -> None:
        self.problem = problem
        self.text = text
        self.position = position
        super().__init__(_with_caret(problem, text, position))


class UnsupportedTypeError(InvalidSchemaError):
    """A type that a table cannot hold without losing something."""

    code = "unsupported-type"

    def __init__(
        self,
        type_name: str,
        why: str,
        *,
        path: str | None = None,
        text: str | None = None,
        position: int | None = None,
    ) -> None:
        self.type_name = type_name
        self.why = why
        self.path = path
        where = f" of column `{path}`" if path else ""
        super().__init__(f"type {type_name}{where} cannot be held: {why}", text=text, position=position)


class AmbiguousEvolutionError(UsageError):
    """Two schemas compared by name leave open whether a column was renamed or replaced."""

    code = "ambiguous-evolution"

    def __init__(self, candidates: Sequence[tuple[str, str]]) -> None:
        self.candidates = tuple(candidates)
        lines = "".join(
            f"\n  - is `{new}` the old `{old}` renamed, or a new column?" for old, new in self.candidates
        )
        super().__init__(
            f"the change cannot be decided from names alone:{lines}\n"
            "Rename first to keep the values, or drop first to let them go; then evolve to the schema."
        )


class InvalidNameError(UsageError):
    """A name from outside that could mean something else inside the store."""

    code = "invalid-name"

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.why = why
        super().__init__(f"{name!r} is not a usable name: {why}")


class InvalidEventError(UsageError):
    """An OpenLineage event, or something else that was sent to the service, cannot be understood."""

    code = "invalid-event"

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"this cannot be taken in, and nothing of it was kept: {why}")


class DataMismatchError(UsageError):
    """Data does not fit the table, and nothing of it was written; `row` counts from 0."""

    code = "data-mismatch"

    def __init__(
        self, column: str, reason: str, *, row: int | None = None, sample: str | None = None
    ) -> None:
        self.column = column
        self.reason = reason
        self.row = row
        self.sample = sample
        where = "" if row is None else f" Row {row}, counted from 0: {sample}"
        super().__init__(f"column `{column}` of the data does not fit: {reason}.{where}")

    def __reduce__(self) -> tuple[object, ...]:
        """Travel between processes: an executor raises it, and the driver shows it."""
        return _rebuild_mismatch, (self.column, self.reason, self.row, self.sample)


class MissingExtraError(UsageError):
    """What was asked for needs packages that come with an extra of instar."""

    code = "missing-extra"

    def __init__(self, extra: str) -> None:
        self.extra = extra
        super().__init__(
            f"this needs packages that are not installed. Install them: pip install 'instar[{extra}]'"
        )


class FormatTooNewError(UsageError):
    """The stored format is newer than this instar understands."""

    code = "format-too-new"

    def __init__(self, what: str, *, found: int, supported: int) -> None:
        self.what = what
        self.found = found
        self.supported = supported
        super().__init__(
            f"{what} is written in format {found}, and this instar reads formats up to {supported}. "
            "Upgrade instar to open it."
        )


class NotFoundError(InstarError):
    """The thing that was named does not exist."""

    code = "not-found"


class StoreNotFoundError(NotFoundError):
    """There is no store at the location."""

    code = "store-not-found"

    def __init__(self, location: str) -> None:
        self.location = location
        super().__init__(
            f"there is no instar store at {location}. Create one with `instar init {location}`, "
            "or check the path."
        )


class TableNotFoundError(NotFoundError):
    """There is no table of that name in the store, or it was dropped."""

    code = "table-not-found"

    def __init__(self, name: str, *, dropped: bool = False) -> None:
        self.name = name
        self.dropped = dropped
        why = "was dropped" if dropped else "does not exist"
        super().__init__(f"table `{name}` {why}. `instar tables` lists what there is.")


class StreamNotFoundError(NotFoundError):
    """There is no stream of that name in the store."""

    code = "stream-not-found"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"stream `{name}` does not exist. `instar stream list` lists what there is.")


class EntityNotFoundError(NotFoundError):
    """Lineage knows no such dataset, job, run, version or tag."""

    code = "entity-not-found"

    def __init__(self, kind: str, name: str) -> None:
        self.kind = kind
        self.name = name
        super().__init__(f"{kind} {name!r} is not known. Check the spelling, or send an event that names it.")


class SchemaNotFoundError(NotFoundError):
    """The table's history has no schema of that id."""

    code = "schema-not-found"

    def __init__(self, table: str, schema_id: int, *, latest: int) -> None:
        self.table = table
        self.schema_id = schema_id
        self.latest = latest
        super().__init__(f"table `{table}` has no schema {schema_id}: its schemas are 0 to {latest}.")


class ColumnNotFoundError(NotFoundError):
    """No column of the schema is at that path."""

    code = "column-not-found"

    def __init__(self, path: str, *, known: Sequence[str]) -> None:
        self.path = path
        self.known = tuple(known)
        close = get_close_matches(path, self.known, n=1)
        hint = f" Did you mean `{close[0]}`?" if close else ""
        super().__init__(f"there is no column `{path}`: the columns are {', '.join(self.known)}.{hint}")


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
    """An append expected another upper."""

    code = "upper-mismatch"

    def __init__(self, table: str, *, expected: int, current: int) -> None:
        self.table = table
        self.expected = expected
        self.current = current
        super().__init__(
            f"cannot append to `{table}`: the batch starts at time {expected}, but the table is complete "
            f"up to {current}. Read the new upper and build the batch again."
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
    """A table of that name is already there."""

    code = "table-exists"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"table `{name}` already exists. Open it, drop it, or choose another name.")


class StreamExistsError(ConflictError):
    """A stream of that name is already there."""

    code = "stream-exists"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"stream `{name}` already exists. Open it with store.stream, or choose another name."
        )


class VersionConflictError(ConflictError):
    """A version of a stream has one schema for ever, and this is another."""

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
        super().__init__(
            f"{holder} is evolving stream `{stream}` now. Its tables are looked after; run again later."
        )


class IncompatibleSchemaError(InstarError):
    """The new schema breaks the evolution rules; `violations` has every offence."""

    code = "incompatible-schema"

    def __init__(self, table: str | None, violations: Sequence[object]) -> None:
        self.table = table
        self.violations = tuple(violations)
        what = f"cannot evolve `{table}`" if table else "the schemas are not compatible"
        if len(self.violations) == 1:
            super().__init__(f"{what}: {self.violations[0]}")
        else:
            lines = "\n".join(f"  - {violation}" for violation in self.violations)
            super().__init__(f"{what}: {len(self.violations)} changes break the rules:\n{lines}")


class FencedError(InstarError):
    """A reader or writer was stopped because its schema can no longer be honoured."""

    code = "fenced"


class ReaderFencedError(FencedError):
    """The reader's schema is no longer a valid migration of the table's; no row was returned."""

    code = "reader-fenced"

    def __init__(
        self, table: str, fences: Sequence[object], *, reader_schema: int | None, latest: int
    ) -> None:
        self.table = table
        self.fences = tuple(fences)
        self.reader_schema = reader_schema
        self.latest = latest
        at = "" if reader_schema is None else f" at schema {reader_schema}"
        reasons = "; ".join(str(fence) for fence in self.fences)
        super().__init__(
            f"reader of `{table}`{at} is fenced: {reasons}. "
            f"Read without what changed, or open the table at schema {latest}."
        )


class WriterFencedError(FencedError):
    """The batch holds values in fields that the latest schema has deleted; nothing was committed."""

    code = "writer-fenced"

    def __init__(self, table: str, columns: Sequence[str], *, writer_schema: int, latest: int) -> None:
        self.table = table
        self.columns = tuple(columns)
        self.writer_schema = writer_schema
        self.latest = latest
        names = ", ".join(f"`{column}`" for column in self.columns)
        super().__init__(
            f"writer of `{table}` at schema {writer_schema} is fenced: the batch has values in {names}, "
            f"deleted by schema {latest} or before, and nobody could ever read them. "
            f"Write under schema {latest}, or say dropped='discard'."
        )


class CommitOutcomeUnknownError(InstarError):
    """The store stopped answering after the commit was sent, and whether it landed could not be found out."""

    code = "commit-outcome-unknown"

    def __init__(self, table: str, commit_id: str, why: str) -> None:
        self.table = table
        self.commit_id = commit_id
        self.why = why
        super().__init__(
            f"commit {commit_id} to `{table}` may or may not have landed: {why}. "
            f"Run `instar log {table}` before retrying."
        )


class CorruptTableError(InstarError):
    """A stored object is not what was written, or `missing`; nothing is guessed from it."""

    code = "corrupt-table"

    def __init__(self, what: str, why: str, *, missing: bool = False) -> None:
        self.what = what
        self.why = why
        self.missing = missing
        super().__init__(
            f"{what} is corrupt: {why}. Restore this object from a backup; instar will not guess."
        )


class NegativeCountError(InstarError):
    """More retractions of a row than additions; a snapshot would miss rows, so there is none."""

    code = "negative-count"

    def __init__(self, row: str, count: int | None) -> None:
        self.row = row
        self.count = count
        known = "less than 0" if count is None else count
        super().__init__(
            f"a row was retracted more often than it was added: its count is {known}. Find out who retracted "
            f"it, and add it back. The row: {row}"
        )


class CountOverflowError(InstarError):
    """The diffs of a row add up to a number that 64 bits cannot hold; a snapshot cannot show the row."""

    code = "count-overflow"

    def __init__(self, row: str, count: int | None) -> None:
        self.row = row
        self.count = count
        known = "a number" if count is None else count
        super().__init__(
            f"the diffs of a row add up to {known}, which is more than 64 bits can hold. Find out who gave "
            f"diffs that large, and retract the row as often. The row: {row}"
        )


class SkippingViolationError(InstarError):
    """A part was proved not to be needed, and then a row of it was: statistics or the proof are wrong."""

    code = "skipping-violation"

    def __init__(self, table: str, part: str, condition: str, bounds: str, row: str) -> None:
        self.table = table
        self.part = part
        self.condition = condition
        self.bounds = bounds
        self.row = row
        super().__init__(
            f"`{table}` must not skip part {part} for {condition}: {bounds}, but there is {row}. Set its "
            "option skipping to 'off', which reads everything, and report this: no query may miss a row."
        )


class StorageError(InstarError):
    """The store refused or failed, and it is certain that nothing happened."""

    code = "storage"

    def __init__(self, operation: str, why: str) -> None:
        self.operation = operation
        self.why = why
        super().__init__(f"{operation} failed: {why}")


class StorageDeniedError(StorageError):
    """The store does not allow it to this user, or to anybody: it may be read only."""

    code = "storage-denied"


class StorageTimeoutError(StorageError):
    """The store did not answer: the operation may or may not have happened."""

    code = "storage-timeout"


@dataclass(frozen=True)
class Disposition:
    """What a process and an HTTP service answer with."""

    exit_code: int
    http_status: int


DISPOSITIONS: dict[type[InstarError], Disposition] = {
    InstarError: Disposition(70, 500),
    UsageError: Disposition(2, 400),
    InvalidEventError: Disposition(2, 422),
    NotFoundError: Disposition(3, 404),
    ConflictError: Disposition(4, 409),
    IncompatibleSchemaError: Disposition(5, 422),
    FencedError: Disposition(6, 412),
    CommitOutcomeUnknownError: Disposition(7, 504),
    CorruptTableError: Disposition(8, 500),
    NegativeCountError: Disposition(10, 500),
    CountOverflowError: Disposition(10, 500),
    SkippingViolationError: Disposition(11, 500),
    StorageError: Disposition(9, 503),
    StorageDeniedError: Disposition(9, 403),
    StorageTimeoutError: Disposition(9, 504),
}


def disposition(error: InstarError | type[InstarError]) -> Disposition:
    """Return the exit code and HTTP status of an error: its own, or its nearest ancestor's."""
    kind = error if isinstance(error, type) else type(error)
    return next(DISPOSITIONS[base] for base in kind.__mro__ if base in DISPOSITIONS)


def _rebuild_mismatch(column: str, reason: str, row: int | None, sample: str | None) -> DataMismatchError:
    return DataMismatchError(column, reason, row=row, sample=sample)


def _with_caret(problem: str, text: str | None, position: int | None) -> str:
    """Point at the offending place of a text, on the line that holds it."""
    if text is None or position is None:
        return problem
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : end if end >= 0 else len(text)]
    number = text.count("\n", 0, position) + 1
    column = position - start
    return f"{problem}\n  line {number}, column {column + 1}:\n    {line}\n    {' ' * column}^"

"""`CommitInfo`: what a commit in a table's log did, in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple, SupportsIndex, overload

from instar.amounts import format_count, format_time
from instar.schema.html import html_table
from instar.state import (
    Appended,
    Checkpointed,
    Cloned,
    Compacted,
    Configured,
    Created,
    Dropped,
    Evolved,
    Pointed,
    Removed,
    Renamed,
    Renaming,
    SinceAdvanced,
    Undropped,
)
from instar.state.comments import is_comment

if TYPE_CHECKING:
    from instar.state import NewBatch, Step
    from instar.table.log.entries import Entry

__all__ = ["CommitInfo", "CommitList", "describe_entry", "moment_of", "schema_of"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC)
_NEAR_MS: Final = 60_000
"""Times of rows that are nearer to the clock's are times by the clock."""


class CommitInfo(NamedTuple):
    """One line of a table's log: who did what, when, under which schema."""

    seqno: int
    """The version of the table that the commit made."""
    at: datetime
    """When it was made, by the clock of its writer, in UTC; at most the end of year 9999."""
    by: str
    """The user and the machine."""
    what: str
    """What its steps did, in words."""
    schema_id: int | None
    """The schema that it wrote under or evolved to, if it did either."""
    commit_id: str
    """Its id, chosen by the writer."""
    ts: int | None = None
    """The time of its rows, if it wrote any: a snapshot as of it has them."""

    def line(self) -> tuple[str, str, str, str, str]:
        """Return its line in a log: seqno, time, author, what it did, schema.

        `as_of` accepts the time, and then reads what the commit wrote.
        """
        made = (self.at - _EPOCH) // timedelta(milliseconds=1)
        by_clock = self.ts is not None and abs(self.ts - made) < _NEAR_MS
        when = format_time(self.ts if self.ts is not None and by_clock else made)
        what = self.what.removesuffix(f" at {self.ts}") if by_clock else self.what
        schema = "-" if self.schema_id is None else str(self.schema_id)
        return str(self.seqno), when, self.by, what, schema


class CommitList(list[CommitInfo]):
    """Commits, the newest first, which print as a log does; so do some of them, such as `commits[:3]`."""

    @overload
    def __getitem__(self, at: SupportsIndex) -> CommitInfo: ...
    @overload
    def __getitem__(self, at: slice) -> CommitList: ...
    def __getitem__(self, at: SupportsIndex | slice) -> CommitInfo | CommitList:
        return CommitList(super().__getitem__(at)) if isinstance(at, slice) else super().__getitem__(at)

    def __repr__(self) -> str:
        lines = [commit.line() for commit in self]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            f"{seqno:>{widths[0]}}  {at}  {by:{widths[2]}}  {what:{widths[3]}}  schema {schema}"
            for seqno, at, by, what, schema in lines
        )

    def _repr_html_(self) -> str:
        rows = [commit.line() for commit in self]
        return html_table(("seqno", "at (UTC)", "by", "what", "schema"), rows, numbers=(0, 4))


def describe_entry(entry: Entry) -> CommitInfo:
    """Put an entry of a log into words."""
    commit = entry.commit
    what = "; ".join(_describe_step(step) for step in commit.steps)
    uppers = [step.batch.upper for step in commit.steps if isinstance(step, Appended)]
    uppers += [step.upper for step in commit.steps if isinstance(step, Cloned)]
    ts = max(uppers) - 1 if uppers else None
    return CommitInfo(
        entry.seqno, moment_of(commit.at), commit.by, what, schema_of(commit.steps), commit.id, ts
    )


def moment_of(milliseconds: int) -> datetime:
    """Return a time of a clock that may be wrong: nearest to it, if there is no such year."""
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return _LAST if milliseconds > 0 else _FIRST


def _describe_step(step: Step) -> str:
    match step:
        case Created():
            return "created"
        case Evolved(schema_id=schema_id):
            return f"evolved to schema {schema_id}"
        case Appended(batch=batch, adopted=adopted) if adopted is not None:
            files = format_count(batch.part_count, "file")
            return f"adopted {files}, {format_count(batch.part_rows, 'row')} at {batch.upper - 1}"
        case Appended(batch=batch, restored=restored) if restored is not None:
            updates = format_count(batch.rows, "update")
            return f"restored as of {format_time(restored)}: {updates} at {batch.upper - 1}"
        case Appended(batch=batch):
            return f"{_describe_batch(batch)} at {batch.upper - 1}"
        case Compacted(removed=removed, batch=batch):
            into = "" if batch is None else f" into {batch.part_count}"
            return f"compacted {format_count(len(removed), 'part')}{into}"
        case SinceAdvanced(since=since):
            return f"advanced since to {since}"
        case Configured(options=options) if all(map(is_comment, options)):
            return "commented"
        case Configured(options=options):
            return "configured " + ", ".join(f"{name}={value}" for name, value in options.items())
        case Checkpointed():
            return "checkpointed"
        case Dropped() | Undropped() | Removed() | Renaming() | Renamed() | Pointed() | Cloned():
            return _describe_naming(step)


def _describe_naming(
    step: Dropped | Undropped | Removed | Renaming | Renamed | Pointed | Cloned,
) -> str:
    match step:
        case Dropped():
            return "dropped"
        case Undropped():
            return "brought back"
        case Removed():
            return "removed for good"
        case Renaming(to=to):
            return "rename cancelled" if to is None else f"is about to be renamed to {to}"
        case Renamed(name=name):
            return f"renamed to {name}"
        case Pointed():
            return "another table has the first name now"
        case Cloned(source=source, source_seqno=seqno):
            return f"cloned from {source} at seqno {seqno}"


def _describe_batch(batch: NewBatch) -> str:
    """Say what a batch does to rows, as far as the commit itself knows: of many parts it knows only rows."""
    if batch.chunks:
        return f"wrote {format_count(batch.rows, 'update')}"
    if batch.retracted and batch.part_rows:
        return f"changed rows by {format_count(batch.rows, 'update')}"
    if batch.retracted:
        return f"retracted {format_count(batch.rows, 'row')}"
    if all(part.diff_min > 0 for part in batch.parts):
        return f"appended {format_count(batch.rows, 'row')}"
    if all(part.diff_max < 0 for part in batch.parts):
        return f"retracted {format_count(batch.rows, 'row')}"
    return f"changed rows by {format_count(batch.rows, 'update')}"


def schema_of(steps: tuple[Step, ...]) -> int | None:
    """Return the id of the schema that steps wrote under or evolved to, if they did either."""
    for step in steps:
        match step:
            case Created():
                return 0
            case Evolved(schema_id=schema_id):
                return schema_id
            case Appended(batch=batch):
                return batch.schema_id
            case Cloned(schema_id=schema_id):
                return schema_id
    return None

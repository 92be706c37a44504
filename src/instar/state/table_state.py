"""`TableState`: everything durable about a table at one seqno, as one immutable value.

`apply` folds one commit into it. The cost depends on the commit and on what came since the last
rollup, never on the number of parts: those that a rollup has seen are in manifest chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace as replace_struct

from instar.errors import CorruptTableError
from instar.schema import Field, History, Schema
from instar.schema.types import Primitive
from instar.state.comments import comments_in, is_comment
from instar.state.commits import (
    Appended,
    Checkpointed,
    Cloned,
    CommitRecord,
    Compacted,
    Configured,
    ConfigValue,
    Created,
    Dropped,
    Evolved,
    Naming,
    NewBatch,
    Pointed,
    Removed,
    Renamed,
    Renaming,
    SinceAdvanced,
    Start,
    Step,
    Undropped,
)
from instar.state.options import CLUSTER_BY, STATS, parse_fields
from instar.state.parts import Batch, BatchHeader, ChunkRef, Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.state.retractions import SheetRef

__all__ = [
    "REMOVAL_WINDOW",
    "TOKEN_WINDOW",
    "TOUCHED_PLACES",
    "Removal",
    "TableState",
    "TokenRecord",
    "Totals",
    "apply",
    "check_follows",
    "naming_after",
    "rebase",
]

TOKEN_WINDOW: Final = 1000
"""A token is remembered until this many commits with other tokens have followed."""

LABEL: Final = "stream"
"""What the names of entries begin with that a stream makes in the config of its tables."""

REMOVAL_WINDOW: Final = 100
"""A compaction can be applied until this many others have been applied since it was planned."""

TOUCHED_PLACES: Final = 10_000
"""How many places are remembered of parts that rows were last retracted from, by position."""


_NOTHING: Final = Schema((Field(1, "nothing", Primitive("boolean")),))
"""The schema of a log without a table."""


class TokenRecord(NamedTuple):
    """What a commit with a token answered, so that a repeated call can answer the same."""

    token: str
    seqno: int
    ts: int
    schema_id: int
    rows: int


class Removal(NamedTuple):
    """Parts that one compaction replaced, or parts that one batch retracted rows of."""

    seqno: int
    places: frozenset[Place]


class Totals(NamedTuple):
    """How much a table holds: parts, the updates in them, their bytes, and rows retracted by position."""

    parts: int = 0
    rows: int = 0
    bytes: int = 0
    retracted: int = 0


@dataclass(frozen=True)
class TableState:
    """A table at one seqno. `since <= upper`, and neither ever goes back.

    Parts are in `chunks` as of the seqno `folded`, that of a rollup, and in `tail` those that came after it.
    Of these, the places in `unfolded()` have since been removed. `start` is the newest rollup in the log:
    the chunks may be those of an older one, or of one that was written just now.
    Retractions are likewise in `sheets` and in the tail; those of places that were removed mean nothing.
    """

    name: str
    table_id: str
    seqno: int
    start: Start
    history: History
    order_by: tuple[int, ...] = ()
    key: tuple[int, ...] = ()
    config: dict[str, ConfigValue] | None = None
    since: int = 0
    upper: int = 0
    chunks: tuple[ChunkRef, ...] = ()
    tail: tuple[Batch, ...] = ()
    removals: tuple[Removal, ...] = ()
    removals_since: int = 0  # removals of later seqnos are all in `removals`
    folded: int = -1  # removals up to this seqno are reflected in the chunks
    tokens: tuple[TokenRecord, ...] = ()
    totals: Totals = field(default_factory=Totals)
    dropped: bool = False
    commit_id: str = ""  # of the entry at this seqno
    sheets: tuple[SheetRef, ...] = ()
    touches: tuple[Removal, ...] = ()  # parts that rows were retracted of by position
    touches_since: int = 0  # touches of later seqnos are all in `touches`
    adopted: str | None = None  # the key of the list of all files that were ever adopted
    renaming: str | None = None  # the name that it is about to get
    pointer: str | None = None  # the log of the table that has the key of this log as its name
    origins: tuple[str, ...] = ()  # the ids of tables whose files this one may refer to, as a clone
    removed: bool = False  # it was dropped, and what it held may be gone
    dropped_at: int = 0  # by the clock of whatever dropped or removed it; 0 if there never was a table

    def is_at(self, name: str) -> bool:
        """Whether there is a table, and it has a name."""
        return not self.dropped and self.name == name

    @property
    def options(self) -> dict[str, ConfigValue]:
        """The options that were set."""
        return {
            name: value
            for name, value in (self.config or {}).items()
            if not name.startswith(LABEL) and not is_comment(name)
        }

    @property
    def comments(self) -> dict[str | None, str]:
        """What is said about columns, by their paths, and under None about the table."""
        return comments_in(self.history.latest, self.config or {})

    @property
    def cluster_by(self) -> tuple[int, ...]:
        """The fields that compaction lays rows out by, along a curve."""
        return parse_fields(self.options.get(CLUSTER_BY, ""))

    @property
    def bounded(self) -> tuple[int, ...]:
        """The fields that parts have statistics of, however wide the table: those that queries look for."""
        chosen = parse_fields(self.options.get(STATS, ""))
        return tuple(dict.fromkeys((*self.order_by, *self.key, *self.cluster_by, *chosen)))

    @property
    def labels(self) -> dict[str, ConfigValue]:
        """What a stream has noted about its table."""
        return {name: value for name, value in (self.config or {}).items() if name.startswith(LABEL)}

    @property
    def base(self) -> Start:
        """Where reading this state starts: at the newest rollup, which may not be in the log yet."""
        return self.start if self.start.seqno >= self.folded else Start(self.folded, rollup=True)

    def unfolded(self) -> frozenset[Place]:
        """Return the places of parts that were removed after the chunks were written."""
        late = [removal.places for removal in self.removals if removal.seqno > self.folded]
        return frozenset[Place]().union(*late)

    def find_token(self, token: str) -> TokenRecord | None:
        """Find what a commit with this token answered, if it is still remembered."""
        return next((record for record in reversed(self.tokens) if record.token == token), None)


def apply(state: TableState | None, name: str, seqno: int, commit: CommitRecord) -> TableState:
    """Fold the commit at a seqno into the state before it (None: there was no table)."""
    if state is not None:
        check_follows(name, seqno, commit, state.commit_id)
    for step in commit.steps:
        state = _apply_step(state, name, seqno, step, commit)
    assert state is not None, "a commit has at least one step, and the first one creates the table"  # noqa: S101
    newer = commit.start if commit.start.seqno > state.start.seqno else state.start
    return replace(state, seqno=seqno, start=newer, commit_id=commit.id)


def naming_after(state: TableState, log: str, steps: tuple[Step, ...]) -> Naming | None:
    """Return what a commit must say about names, if its steps do not, in the log of a key."""
    told = state.dropped == any(isinstance(step, Dropped) for step in steps)
    if told and state.name == log and state.pointer is None:
        return None
    return Naming(state.name, state.dropped, state.pointer)


def check_follows(name: str, seqno: int, commit: CommitRecord, before: str) -> None:
    """Raise if the commit at a seqno was not made after the one with that id, which is before it."""
    if commit.after != before:
        why = f"it does not follow commit {seqno - 1} of `{name}`: one of them was lost or replaced"
        raise CorruptTableError(f"commit {seqno} of `{name}`", why)


def _apply_step(
    state: TableState | None, name: str, seqno: int, step: Step, commit: CommitRecord
) -> TableState:
    if isinstance(step, Created | Pointed):
        return _begun(state, name, seqno, step)
    if isinstance(step, Removed):
        return _ended(state, name, seqno, commit)
    if isinstance(step, Cloned):
        raise TypeError("a clone is read from its rollup")
    if state is None:
        raise ValueError(f"commit {commit.id} changes a table that was never created")
    match step:
        case Evolved(schema=schema):
            history = state.history
            extended = History((*history.schemas, schema), history.migration_type.extend(schema))
            return replace(state, history=extended)
        case Appended():
            return _appended(state, seqno, step)
        case Compacted():
            return _compacted(state, seqno, step)
        case SinceAdvanced(since=since):
            return replace(state, since=max(since, state.since))
        case Configured(options=options):
            merged = {**(state.config or {}), **options}
            return replace(state, config={name: value for name, value in merged.items() if value is not None})
        case Checkpointed():
            return state
        case Dropped() | Undropped() | Renaming() | Renamed():
            return _named(state, step, commit)


def _begun(state: TableState | None, name: str, seqno: int, step: Created | Pointed) -> TableState:
    """Begin a table, or note in the log of a name where a table of that name is."""
    start = Start(seqno, rollup=False)
    if isinstance(step, Created):
        return TableState(
            step.name or name,
            step.table_id,
            seqno,
            start,
            History.start(step.schema),
            step.order_by,
            step.key,
            step.config,
            removals_since=seqno,
            touches_since=seqno,
        )
    if state is None:
        state = _nothing(name, step.table_id, seqno, start)
    return replace(state, pointer=step.log)


def _ended(state: TableState | None, name: str, seqno: int, commit: CommitRecord) -> TableState:
    """Leave of a table only that it is no more: the commit that says so can tell it alone."""
    if state is not None:
        name, start, pointer = state.name, state.start, state.pointer
    else:
        naming = commit.naming or Naming(name, ended=True, pointer=None)
        name, start, pointer = naming.name, commit.start, naming.pointer
    return replace(
        _nothing(name, commit.table_id, seqno, start), pointer=pointer, dropped_at=max(1, commit.at)
    )


def _nothing(name: str, table_id: str, seqno: int, start: Start) -> TableState:
    """Return the state of a log without a table."""
    return TableState(name, table_id, seqno, start, History.start(_NOTHING), dropped=True, removed=True)


def _named(
    state: TableState, step: Dropped | Undropped | Renaming | Renamed, commit: CommitRecord
) -> TableState:
    """Fold in a step about a table's end or name."""
    match step:
        case Dropped():
            return replace(state, dropped=True, dropped_at=commit.at)
        case Undropped():
            return replace(state, dropped=False)
        case Renaming(to=to):
            return replace(state, renaming=to)
        case Renamed(name=renamed):
            return replace(state, name=renamed, renaming=None)


def _appended(state: TableState, seqno: int, step: Appended) -> TableState:
    new = step.batch
    tokens = state.tokens
    if step.token is not None:
        record = TokenRecord(step.token, seqno, new.upper - 1, new.schema_id, new.rows)
        tokens = (*tokens, record)[-TOKEN_WINDOW:]
    added = _touching(_with_batch(state, seqno, new), seqno, step.places)
    adopted = step.adopted or state.adopted
    return replace(added, upper=max(new.upper, state.upper), tokens=tokens, adopted=adopted)


def _touching(state: TableState, seqno: int, places: frozenset[Place]) -> TableState:
    """Remember which parts a batch has taken rows of; what is too much to remember is forgotten first."""
    if not places:
        return state
    touches = (*state.touches, Removal(seqno, places))
    left = sum(len(touch.places) for touch in touches)
    forgotten = state.touches_since
    while touches and (left > TOUCHED_PLACES or len(touches) > REMOVAL_WINDOW):
        left -= len(touches[0].places)
        forgotten, touches = touches[0].seqno, touches[1:]
    return replace(state, touches=touches, touches_since=forgotten)


def _compacted(state: TableState, seqno: int, step: Compacted) -> TableState:
    removals = (*state.removals, Removal(seqno, frozenset(step.removed)))
    kept = tuple(
        removal
        for at, removal in enumerate(removals)
        if removal.seqno > state.folded or at >= len(removals) - REMOVAL_WINDOW
    )
    forgotten = (
        removals[len(removals) - len(kept) - 1].seqno if len(kept) < len(removals) else state.removals_since
    )
    totals = Totals(
        state.totals.parts - len(step.removed),
        state.totals.rows - step.removed_rows,
        state.totals.bytes - step.removed_size,
        state.totals.retracted - step.removed_retracted,
    )
    smaller = replace(state, removals=kept, removals_since=forgotten, totals=totals)
    return smaller if step.batch is None else _with_batch(smaller, seqno, step.batch)


def _with_batch(state: TableState, seqno: int, new: NewBatch) -> TableState:
    header = BatchHeader(seqno, new.lower, new.upper, new.schema_id)
    chunks = tuple(_placed_chunks(new.chunks, header))
    sheets = tuple(replace_struct(sheet, header=header) for sheet in new.sheets)
    batch = Batch(header, new.parts, chunks, new.retractions, sheets)
    totals = Totals(
        state.totals.parts + new.part_count,
        state.totals.rows + new.part_rows,
        state.totals.bytes
        + sum(part.size for part in new.parts)
        + sum(chunk.parts_size for chunk in new.chunks),
        state.totals.retracted + new.retracted,
    )
    return replace(state, tail=(*state.tail, batch), totals=totals)


def _placed_chunks(chunks: tuple[ChunkRef, ...], header: BatchHeader) -> Iterator[ChunkRef]:
    """Give the chunks of a batch the place that its commit has got them."""
    for chunk in chunks:
        first, last = Place(header.seqno, chunk.first.ordinal), Place(header.seqno, chunk.last.ordinal)
        yield replace_struct(chunk, first=first, last=last, header=header)


def rebase(state: TableState, rolled: TableState) -> TableState:
    """Return the same state with its parts laid out as in a rollup of an earlier seqno."""
    if rolled.seqno <= state.folded:
        return state
    return replace(
        state,
        chunks=rolled.chunks,
        sheets=rolled.sheets,
        tail=tuple(batch for batch in state.tail if batch.header.seqno > rolled.seqno),
        folded=rolled.seqno,
    )

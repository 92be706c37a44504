"""Commands: each looks at a state and answers with the steps to commit, or with a typed error.

An empty answer means that there is nothing to do. Nothing here reads a clock or draws an id: what a
command needs is given to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from instar.errors import (
    ConflictError,
    PartsGoneError,
    SchemaMismatchError,
    SchemaNotFoundError,
    TableExistsError,
    TableNotFoundError,
    UpperMismatchError,
    UsageError,
    WriterFencedError,
)
from instar.schema import Map, Schema, Struct, format_path
from instar.schema.algebra import slots
from instar.state.comments import is_comment
from instar.state.commits import (
    Appended,
    Compacted,
    Configured,
    Created,
    Dropped,
    Evolved,
    Removed,
    Renamed,
    Renaming,
    SinceAdvanced,
    Undropped,
)
from instar.state.options import OPTIONS, Fields, check_options, format_fields
from instar.state.parts import Place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from instar.schema import Type
    from instar.state.commits import Cloned, ConfigValue, Step
    from instar.state.table_state import TableState

    Option = ConfigValue | Sequence[str] | None

__all__ = [
    "advance_since",
    "append",
    "begin_rename",
    "cancel_rename",
    "check_schema_id",
    "check_token",
    "column_ids",
    "compact",
    "configure",
    "create",
    "create_clone",
    "drop",
    "end_rename",
    "evolve",
    "remove",
    "resolve_columns",
    "supplant",
    "undrop",
]

MAX_TIME: Final = 2**63 - 1
MAX_TOKEN: Final = 256
"""How many bytes of UTF-8 a token may have: a state carries a thousand of them."""


def create(state: TableState | None, name: str, step: Created) -> tuple[Created]:
    """Begin a table under a name that is free."""
    if state is not None and not state.dropped:
        raise TableExistsError(name)
    said = {name: text for name, text in step.config.items() if is_comment(name)}
    options = check_options({name: value for name, value in step.config.items() if name not in said})
    chosen = {option: value for option, value in options.items() if value is not None}
    return (replace(step, config={**chosen, **said}),)


def supplant(state: TableState | None, name: str, step: Created) -> tuple[Created]:
    """Begin a table in the place of another, which ends by that: its handles find that it is gone."""
    if state is not None and not state.dropped:
        _check_own_name(state, "replace")
    return create(None, name, step)


def create_clone(state: TableState | None, name: str, step: Cloned) -> tuple[Step, ...]:
    """Begin a table with what another one holds, under a name that is free."""
    if state is not None and not state.dropped:
        raise TableExistsError(name)
    return (step,)


def column_ids(schema: Schema, columns: Sequence[str]) -> tuple[int, ...]:
    """Return the ids of columns that a table is sorted or identified by."""
    ids = tuple(schema.load_column(column).id for column in columns)
    if len(set(ids)) != len(ids):
        raise UsageError(f"a column is named twice in {', '.join(columns)}")
    for column in columns:
        if isinstance(schema.load_column(column).type, Map):
            raise UsageError(f"cannot sort by `{column}`: maps have no order")
    return ids


def resolve_columns(schema: Schema, options: Mapping[str, Option]) -> dict[str, ConfigValue | None]:
    """Return options with the columns that one of them names as it is kept, by the ids of their fields."""
    kept: dict[str, ConfigValue | None] = {}
    for option, value in options.items():
        allowed = OPTIONS.get(option)
        if isinstance(allowed, Fields) and value is not None:
            if isinstance(value, str | int | float) or not all(isinstance(it, str) for it in value):
                raise UsageError(f"{option}={value!r}: give a list of columns, such as ['country', 'at']")
            if len(value) > allowed.most:
                raise UsageError(f"option {option!r} is {allowed}, not {len(value)}")
            kept[option] = format_fields(column_ids(schema, value)) or None
        elif value is not None and not isinstance(value, bool | int | float | str):
            raise UsageError(f"option {option!r} cannot be {value!r}: it is not a list")
        else:
            kept[option] = value
    return kept


def evolve(state: TableState, expected_id: int | None, schema: Schema) -> tuple[Step, ...]:
    """Append a schema to the history, if `expected_id` is the latest; the same schema gives no step."""
    if schema == state.history.latest:
        return ()
    if "stream" in state.labels:
        stream = state.labels["stream"]
        raise UsageError(
            f"the schema of `{state.name}` is that of its stream `{stream}`: change it with stream.evolve"
        )
    if expected_id != state.history.latest_id:
        raise SchemaMismatchError(state.name, expected=expected_id, current=state.history.latest_id)
    state.history.evolve(schema, state.name)
    _check_key_stays(state, schema)
    return (Evolved(state.history.latest_id + 1, schema),)


def append(
    state: TableState,
    step: Appended,
    *,
    expected_upper: int | None = None,
    present: Collection[int] = (),
    discard: bool = False,
    planned_at: int | None = None,
) -> tuple[Step, ...]:
    """Add a batch whose `lower` is the table's upper; a token that is remembered gives no step.

    Rows that it retracts by position were seen at the seqno `planned_at`: since then nobody may have replaced
    their parts, or retracted rows of them.

    `present` are the fields, at every level, that have values in the batch: if the latest schema has
    deleted one of them, the values could never be read, and the writer is fenced unless it discards them.
    """
    batch = step.batch
    check_token(step.token)
    if step.token is not None and state.find_token(step.token) is not None:
        return ()
    expected = batch.lower if expected_upper is None else expected_upper
    if state.upper != expected or state.upper != batch.lower:
        raise UpperMismatchError(state.name, expected=expected, current=state.upper)
    if not batch.lower < batch.upper <= MAX_TIME:
        raise UsageError(f"a batch needs lower < upper <= {MAX_TIME}, not [{batch.lower}, {batch.upper})")
    check_schema_id(state, batch.schema_id)
    check_untouched(state, planned_at, step.places)
    lost = _lost_columns(state, batch.schema_id, present)
    if lost and not discard:
        raise WriterFencedError(
            state.name, lost, writer_schema=batch.schema_id, latest=state.history.latest_id
        )
    return (step,)


def check_untouched(state: TableState, planned_at: int | None, places: Collection[Place]) -> None:
    """Raise unless parts have, by position, the same rows as at a seqno."""
    if not places:
        return
    if planned_at is None:
        raise UsageError("a batch that retracts by position has to say which seqno it has looked at")
    for late, known_since in ((state.removals, state.removals_since), (state.touches, state.touches_since)):
        changed = frozenset[Place]().union(*(it.places for it in late if it.seqno > planned_at))
        if planned_at < known_since or not changed.isdisjoint(places):
            raise ConflictError(
                f"cannot retract rows of `{state.name}`: others have changed the same parts since seqno "
                f"{planned_at}. Nothing was done; try again."
            )


def check_token(token: str | None) -> None:
    """Raise unless a commit may have this token: text in UTF-8, of 1 to `MAX_TOKEN` bytes, or none."""
    if token is None:
        return
    if not isinstance(token, str):
        raise UsageError(f"a token is text, and {token!r} is {type(token).__name__}: give a str")
    try:
        size = len(token.encode())
    except UnicodeEncodeError:
        raise UsageError(f"token {token!r} is not text that UTF-8 can hold: leave out surrogates") from None
    if not 1 <= size <= MAX_TOKEN:
        raise UsageError(
            f"a token has 1 to {MAX_TOKEN} bytes, and this one has {size}: give its hash instead"
        )


def check_schema_id(state: TableState, schema_id: int) -> None:
    """Raise unless the table has had this schema."""
    if not 0 <= schema_id <= state.history.latest_id:
        raise SchemaNotFoundError(state.name, schema_id, latest=state.history.latest_id)


def compact(state: TableState, planned_at: int, step: Compacted) -> tuple[Step, ...]:
    """Replace parts that were there at seqno `planned_at`, if they still are."""
    if step.batch is not None:
        check_schema_id(state, step.batch.schema_id)
    if planned_at < state.removals_since:
        raise PartsGoneError(state.name, planned_at=planned_at, why="too many others came between")
    since = [removal.places for removal in state.removals if removal.seqno > planned_at]
    gone = frozenset[Place]().union(*since).intersection(step.removed)
    if gone:
        raise PartsGoneError(state.name, planned_at=planned_at, why=f"{len(gone)} of its parts were replaced")
    touched = [touch.places for touch in state.touches if touch.seqno > planned_at]
    if planned_at < state.touches_since or not frozenset[Place]().union(*touched).isdisjoint(step.removed):
        raise PartsGoneError(state.name, planned_at=planned_at, why="rows of its parts were retracted")
    return (step,)


def advance_since(state: TableState, since: int) -> tuple[Step, ...]:
    """Allow times before `since` to be merged; an earlier time gives no step."""
    if since > state.upper:
        raise UsageError(
            f"since cannot pass upper: {since} is after {state.upper}, the upper of `{state.name}`"
        )
    return () if since <= state.since else (SinceAdvanced(since),)


def configure(state: TableState, options: Mapping[str, Option]) -> tuple[Step, ...]:
    """Set options; None removes one."""
    changed = {
        option: value
        for option, value in check_options(resolve_columns(state.history.latest, options)).items()
        if state.options.get(option) != value
    }
    return (Configured(changed),) if changed else ()


def drop(state: TableState) -> tuple[Step, ...]:
    """End the table; if it has ended already, there is no step."""
    return () if state.dropped else (Dropped(),)


def undrop(state: TableState, *, with_stream: bool = False) -> tuple[Step, ...]:
    """Bring back a table that has ended, unless a vacuum may have deleted its files.

    Tables of a stream come back only together with it.
    """
    if not with_stream:
        _check_own_name(state, "bring back")
    if state.removed:
        raise TableNotFoundError(state.name, vacuumed=True)
    return (Undropped(),) if state.dropped else ()


def remove(state: TableState) -> tuple[Step, ...]:
    """Give up the files of a table for good, if it has ended."""
    return (Removed(),) if state.dropped and not state.removed else ()


def begin_rename(state: TableState, name: str) -> tuple[Step, ...]:
    """Say that a table is about to have another name. The name may be claimed for it only after this."""
    _check_own_name(state, "rename")
    return () if state.renaming == name else (Renaming(name),)


def end_rename(state: TableState, name: str) -> tuple[Step, ...]:
    """Give a table the name that was claimed for it, unless others have taken it since."""
    if state.renaming != name:
        raise ConflictError(
            f"cannot rename `{state.name}` to `{name}`: somebody else was renaming it or has taken the name. "
            "Nothing was done; look at `instar tables` and try again."
        )
    return (Renamed(name),)


def cancel_rename(state: TableState, name: str) -> tuple[Step, ...]:
    """Let a table keep its name, if it is about to have this one."""
    return (Renaming(None),) if state.renaming == name else ()


def _check_own_name(state: TableState, verb: str) -> None:
    if "stream" in state.labels:
        stream = state.labels["stream"]
        raise UsageError(f"cannot {verb} `{state.name}`: it belongs to the stream `{stream}`, which names it")


def _lost_columns(state: TableState, schema_id: int, present: Collection[int]) -> dict[str, int]:
    """Name the columns that a writer of an older schema has values for, and the schema that deleted each."""
    schemas = state.history.schemas
    if schema_id == state.history.latest_id or not present:
        return {}
    lost = state.history.migration_type.deleted_ids().intersection(present)
    if not lost:
        return {}
    later = [frozenset(schema.field_ids()) for schema in schemas[schema_id + 1 :]]
    return {
        format_path(path): next(at for at, ids in enumerate(later, schema_id + 1) if field_id not in ids)
        for path, field_id in _paths_to(Struct(schemas[schema_id].fields), lost, ())
    }


def _paths_to(
    type_: Type, ids: Collection[int], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the paths and ids of fields with these ids, and nothing below them."""
    for slot in slots(type_):
        inside = (*path, slot.name)
        if slot.field is not None and slot.field.id in ids:
            yield inside, slot.field.id
        else:
            yield from _paths_to(slot.type, ids, inside)


def _check_key_stays(state: TableState, schema: Schema) -> None:
    kept = frozenset(schema.field_ids())
    lost = [format_path(path) for path, leaf in state.history.latest.leaves() if leaf.id in state.key]
    if not kept.issuperset(state.key):
        raise UsageError(f"cannot drop a column of the key of `{state.name}`, which is {', '.join(lost)}")

"""The tables of a store: creating, finding, dropping and renaming them by name.

A table has its log for life, under the key of its first name. Where a table of another name has a log, or
none, the log may have a pointer to a second one, which counts if the table there has the name. So a rename
is one commit to the table's own log, and nothing of it moves. Two commits before that make sure that nobody
takes the name meanwhile: the table records its next name, then the name points at it. A caller that
finds a pointer to a table that has not taken the name yet may cancel that, and take the name.
A table that replaces another begins in the log of that one, with one commit, so that the name always has one.
"""

from __future__ import annotations

import unicodedata
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace as replace_struct

from instar.errors import (
    ConflictError,
    CorruptTableError,
    FormatTooNewError,
    InvalidNameError,
    TableExistsError,
    TableNotFoundError,
)
from instar.schema import as_schema
from instar.schema.schema import Schema, number_fields
from instar.state import Created, Pointed, Renaming
from instar.state.commands import (
    begin_rename,
    cancel_rename,
    column_ids,
    create,
    drop,
    end_rename,
    resolve_columns,
    supplant,
    undrop,
)
from instar.state.comments import resolve_comments
from instar.storage.keys import encode_key
from instar.table.log.table_log import TableLog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from instar.errors import InstarError
    from instar.schema import SchemaLike
    from instar.state import ConfigValue, Step, TableState
    from instar.table.log.table_log import Committed, Decide
    from instar.table.services import Services

__all__ = [
    "INTERNAL",
    "UNREADABLE",
    "Beginning",
    "begin_empty",
    "begin_table",
    "begin_with",
    "check_table_name",
    "create_table",
    "define_table",
    "drop_table",
    "find_log",
    "find_tables",
    "list_tables",
    "log_keys",
    "open_log",
    "rename_table",
    "undrop_table",
]

UNREADABLE: Final = (CorruptTableError, FormatTooNewError)
"""Errors of one table, after which the others can still be processed."""

INTERNAL: Final = "@"
"""What the keys of logs that belong to no table begin with."""
_ELSEWHERE: Final = "@tables/"
"""What the keys of logs begin with whose tables have a name that another table had first."""
_READERS: Final = 16
_ATTEMPTS: Final = 10
"""How often a table is replaced at most, while others create and drop it."""
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters that control, format or separate, and show nothing of their own."""


def check_table_name(name: str) -> None:
    """Raise unless a table may have this name: segments joined by `/`, each visible and not hidden.

    Names that look the same are the same: they are in Unicode's normal form NFC, and have no characters
    that cannot be seen, nor white space at an end of a segment.
    """
    if not isinstance(name, str):
        raise InvalidNameError(name, f"a name is a str, and this is {type(name).__name__}")
    encode_key(name)
    if not unicodedata.is_normalized("NFC", name):
        raise InvalidNameError(name, "it is not in Unicode's normal form NFC; unicodedata.normalize makes it")
    if any(unicodedata.category(character) in _UNSEEN for character in name):
        raise InvalidNameError(name, "it has a character that cannot be seen")
    if any(segment != segment.strip() for segment in name.split("/")):
        raise InvalidNameError(name, "a part of it begins or ends with white space")
    if name.startswith(INTERNAL):
        raise InvalidNameError(name, f"a store keeps names that begin with {INTERNAL} for itself")


def create_table(
    services: Services,
    name: str,
    schema: SchemaLike,
    *,
    order_by: Sequence[str] = (),
    key: Sequence[str] = (),
    options: Mapping[str, ConfigValue | Sequence[str]] | None = None,
    comments: Mapping[str | None, str] | None = None,
) -> TableLog:
    """Create a table, in one commit."""
    step = define_table(
        services, name, schema, order_by=order_by, key=key, options=options, comments=comments
    )
    return begin_empty(services, name, step)


def begin_empty(services: Services, name: str, step: Created, *, replace: bool = False) -> TableLog:
    """Create a table by the step that says what it is; with `replace`, in the place of one of this name."""
    begin = begin_with(name, step, replace=replace)
    return begin_table(services, name, step.table_id, begin, replace=replace).log


def define_table(
    services: Services,
    name: str,
    schema: SchemaLike,
    *,
    order_by: Sequence[str] = (),
    key: Sequence[str] = (),
    options: Mapping[str, ConfigValue | Sequence[str]] | None = None,
    comments: Mapping[str | None, str] | None = None,
) -> Created:
    """Return the step that creates a table, if there can be such a table."""
    check_table_name(name)
    given = as_schema(schema)
    first = Schema(number_fields(given.fields))
    config = {**resolve_columns(first, options or {}), **resolve_comments(first, dict(comments or {}))}
    chosen = {name: value for name, value in config.items() if value is not None}
    step = Created(services.new_id(), first, column_ids(first, order_by), column_ids(first, key), chosen)
    (checked,) = create(None, name, step)
    return checked


def begin_with(name: str, step: Created, *, replace: bool = False) -> Callable[[TableLog], Decide]:
    """Return how a table begins in a log with the step that creates it."""

    def decide(log: TableLog) -> Decide:
        own = step if log.key == name else replace_struct(step, name=name)
        return lambda state: (supplant if replace else create)(state, name, own)

    return decide


class _NameInUseError(Exception):
    """The log of this name belongs to a table that has another name now, and exists or may come back."""


class Beginning(NamedTuple):
    """A table that has begun: its log, and its first commit."""

    log: TableLog
    committed: Committed


def begin_table(
    services: Services,
    name: str,
    table_id: str,
    decide: Callable[[TableLog], Decide],
    commit_id: str | None = None,
    *,
    replace: bool = False,
) -> Beginning:
    """Make the first commit of a table whose name is free, or with `replace`, of one that takes its place."""
    for _ in range(_ATTEMPTS):
        begun = _begin_in_place(services, name, decide, commit_id) if replace else None
        if begun is not None:
            return begun
        try:
            return _begin_free(services, name, table_id, decide, commit_id)
        except TableExistsError:
            if not replace:
                raise
    raise ConflictError(
        f"cannot replace `{name}`: others created, dropped or renamed it each of {_ATTEMPTS} times. "
        "Nothing was done; try again."
    )


def _begin_in_place(
    services: Services, name: str, decide: Callable[[TableLog], Decide], commit_id: str | None
) -> Beginning | None:
    """Begin a table in the log of the one that has its name, which ends by that; None if there is none."""
    log, state = find_log(services, name)
    if state is None or not state.is_at(name):
        return None
    begin = decide(log)

    def in_its_place(state: TableState | None) -> tuple[Step, ...]:
        if state is None or not state.is_at(name):
            raise _NameInUseError(f"the table `{name}` is no longer in its log")
        return begin(state)

    try:
        return Beginning(log, log.commit(in_its_place, commit_id))
    except _NameInUseError:
        return None


def _begin_free(
    services: Services,
    name: str,
    table_id: str,
    decide: Callable[[TableLog], Decide],
    commit_id: str | None,
) -> Beginning:
    """Begin a table whose name is free: in the log of the name, or else in another."""
    log = TableLog(services, name)
    begin = decide(log)

    def in_own_log(state: TableState | None) -> tuple[Step, ...]:
        _check_free(services, state, name)
        if state is not None and (not state.dropped or (state.name != name and not state.removed)):
            raise _NameInUseError(f"the log of `{name}` is in use")
        return begin(state)

    with suppress(_NameInUseError):
        return Beginning(log, log.commit(in_own_log, commit_id))
    elsewhere = TableLog(services, name, _ELSEWHERE + table_id)
    committed = elsewhere.commit(decide(elsewhere), commit_id)
    try:
        _point(services, name, elsewhere.key)
    except TableExistsError:
        elsewhere.commit(lambda state: drop(elsewhere.check_exists(state)))
        raise
    return Beginning(elsewhere, committed)


def open_log(services: Services, name: str) -> TableLog:
    """Return the log of the table that has a name now, or raise `TableNotFoundError`."""
    check_table_name(name)
    there, state = find_log(services, name)
    there.check_exists(state)
    return there


def find_log(services: Services, name: str) -> tuple[TableLog, TableState | None]:
    """Return the log in which the table of a name is, or would be, and the state at its end.

    The table there may be called otherwise by now, or be dropped: `TableState.is_at` tells.
    """
    log = TableLog(services, name)
    return _follow(services, log, log.refresh())


def drop_table(services: Services, name: str) -> None:
    """End a table, in one commit; a vacuum removes what it held."""
    log = open_log(services, name)
    log.commit(lambda state: drop(_check_called(log.check_exists(state), name)))


def undrop_table(services: Services, name: str, *, with_stream: bool = False) -> TableLog:
    """Bring back a dropped table, as long as its name is free and no vacuum has deleted its files."""
    check_table_name(name)
    log = TableLog(services, name)
    there, state = _follow(services, log, log.refresh())
    if state is None or (state.name != name and state.dropped) or (state.removed and not state.dropped_at):
        raise TableNotFoundError(name)
    if not state.dropped:
        if state.name == name:
            raise TableExistsError(name)
        raise TableNotFoundError(name, renamed=state.name)
    there.bind(state.table_id)

    def back(state: TableState | None) -> TableState:
        if state is None or state.table_id != there.table_id or not state.dropped:
            raise TableExistsError(name)
        undrop(state, with_stream=with_stream)
        return state

    def in_own_log(state: TableState | None) -> tuple[Step, ...]:
        _check_free(services, state, name)
        return undrop(back(state), with_stream=with_stream)

    if there is log:
        log.commit(in_own_log)
        return log
    there.commit(lambda state: (*cancel_rename(back(state), name), Renaming(name)))
    _point(services, name, there.key)

    def if_still_ours(state: TableState | None) -> tuple[Step, ...]:
        if back(state).renaming != name:
            raise TableExistsError(name)
        return (*undrop(back(state), with_stream=with_stream), Renaming(None))

    there.commit(if_still_ours)
    return there


def rename_table(services: Services, name: str, new_name: str) -> TableLog:
    """Give a table another name, which must be free. Nothing of the table moves."""
    check_table_name(new_name)
    log = open_log(services, name)
    if new_name == name:
        return log
    _check_free(services, TableLog(services, new_name).refresh(), new_name, cancel=False)
    log.commit(lambda state: begin_rename(_check_called(log.check_exists(state), name), new_name))
    try:
        if log.key != new_name:
            _point(services, new_name, log.key)
        log.commit(lambda state: end_rename(log.check_exists(state), new_name))
    except (TableExistsError, ConflictError):
        _cancel(log, new_name)
        raise
    return log


def _check_called(state: TableState, name: str) -> TableState:
    """Return a state of a table that has a name, or raise: it may have been renamed just now."""
    if state.name != name:
        raise TableNotFoundError(name, renamed=state.name)
    return state


def _follow(
    services: Services, log: TableLog, state: TableState | None
) -> tuple[TableLog, TableState | None]:
    """Return the log and the state of the table that has the name of a log: its own, or one it points at."""
    if state is None or state.pointer is None or state.is_at(log.name):
        return log, state
    there = TableLog(services, log.name, state.pointer)
    pointed = there.refresh()
    ours = pointed is not None and pointed.name == log.name and (not pointed.dropped or pointed.dropped_at)
    return (there, pointed) if ours else (log, state)


def _check_free(services: Services, state: TableState | None, name: str, *, cancel: bool = True) -> None:
    """Raise if a table has a name, given the state of the name's log; and let nobody else be about to."""
    if state is None:
        return
    if state.is_at(name):
        raise TableExistsError(name)
    if state.pointer is None:
        return
    there = TableLog(services, name, state.pointer)
    pointed = there.refresh()
    if pointed is not None and pointed.is_at(name):
        raise TableExistsError(name)
    if pointed is not None and cancel:
        _cancel(there, name)


def _cancel(log: TableLog, name: str) -> None:
    """Let a table keep its name, if it is about to have another one."""

    def decide(state: TableState | None) -> tuple[Step, ...]:
        return () if state is None else cancel_rename(state, name)

    with suppress(TableNotFoundError):
        log.commit(decide)


def _point(services: Services, name: str, key: str) -> None:
    """Let a name that is free mean the table in another log, as soon as that has the name."""
    log = TableLog(services, name)

    def decide(state: TableState | None) -> tuple[Step, ...]:
        if state is not None and state.pointer == key:
            if state.is_at(name):
                raise TableExistsError(name)
        else:
            _check_free(services, state, name)
        back = (Renaming(None),) if state is not None and state.renaming == name else ()
        return (*back, Pointed(key, services.new_id()))

    log.commit(decide)


def list_tables(services: Services, prefix: str = "") -> list[str]:
    """Return the names of the tables that begin with a prefix, in order, reading one commit of each.

    One whose last commit cannot be read is listed: opening it will say why.
    """

    def exists(name: str) -> bool:
        try:
            own = TableLog(services, name).find_naming()
            if own is not None and own.pointer is not None and (own.ended or own.name != name):
                own = TableLog(services, name, own.pointer).find_naming()
        except UNREADABLE:
            return True
        return own is not None and not own.ended and own.name == name

    names = _names(services, prefix)
    with ThreadPoolExecutor(_READERS) as pool:
        return [name for name, there in zip(names, pool.map(exists, names), strict=True) if there]


def find_tables(
    services: Services,
    prefix: str = "",
    unreadable: dict[str, InstarError] | None = None,
    limit: int | None = None,
) -> list[TableLog]:
    """Open the tables whose names begin with a prefix, in the order of their names; at most so many.

    Errors of those that cannot be read are put into `unreadable`, if it is given, and raised otherwise.
    """

    def load(log: TableLog) -> TableLog | None:
        try:
            there, state = _follow(services, log, log.refresh())
        except UNREADABLE as error:
            if unreadable is None:
                raise
            unreadable[log.name] = error
            return None
        return there if state is not None and state.is_at(log.name) else None

    names = _names(services, prefix)
    found: list[TableLog] = []
    at = 0
    with ThreadPoolExecutor(_READERS) as pool:
        while at < len(names) and (limit is None or len(found) < limit):
            some = names[at:] if limit is None else names[at : at + limit - len(found)]
            opened = pool.map(load, [TableLog(services, name) for name in some])
            found += [log for log in opened if log is not None]
            at += len(some)
    return found


def log_keys(services: Services) -> list[str]:
    """Return the keys of all logs of tables, those of dropped tables too."""
    elsewhere = services.consensus.keys(services.log_prefix + _ELSEWHERE)
    return [*_names(services), *(key.removeprefix(services.log_prefix) for key in elsewhere)]


def _names(services: Services, prefix: str = "") -> list[str]:
    """Return the names that have a log; their tables may be called otherwise now, or be no more."""
    keys = services.consensus.keys(services.log_prefix + prefix)
    names = (key.removeprefix(services.log_prefix) for key in keys)
    return [name for name in names if not name.startswith(INTERNAL)]

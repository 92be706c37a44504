"""Which schema rows are written under: one that the table has had, or a new one that they bring with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from instar.errors import DataMismatchError, FormerNameError
from instar.parts import Conformer, new_columns, wider_columns
from instar.parts.layout import UPDATE_FIELDS
from instar.schema import SchemaUpdate, parse_path
from instar.schema.former import find_former
from instar.state.commands import check_schema_id

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from instar.schema import History, Schema
    from instar.state import TableState

__all__ = ["Evolution", "WriterSchema", "check_former", "check_new_names", "resolve_writer"]

_TOLD: Final = 10
"""Of how many columns an error says what became of them."""


class WriterSchema(NamedTuple):
    """What rows are written under: a schema and its id, and whether the table has yet to evolve to it."""

    schema: Schema
    schema_id: int
    is_new: bool = False


class Evolution(NamedTuple):
    """How far data may change a schema.

    `former_names` lets a new column have the name that another one had before. `needs` are the types that
    the values need, where that is less than their own types say.
    """

    former_names: bool = False
    needs: pa.Schema | None = None
    fixed: Collection[str] = ()
    """Paths of columns that are not widened."""


def resolve_writer(
    state: TableState,
    incoming: pa.Schema,
    schema_id: int | None = None,
    *,
    evolution: Evolution | None = None,
    updates: bool = False,
) -> WriterSchema:
    """Return the schema to write under; with an `evolution`, one that the data fits.

    What the types alone can tell is checked: everything else only as rows are stored.
    """
    history = state.history
    chosen = history.latest_id if schema_id is None else schema_id
    check_schema_id(state, chosen)
    writer = WriterSchema(history.schemas[chosen], chosen)
    if evolution is not None and chosen == history.latest_id:
        evolved = _evolved(state.name, history, incoming, evolution, updates=updates)
        if evolved != writer.schema:
            writer = WriterSchema(evolved, chosen + 1, is_new=True)
    if not writer.is_new and chosen == history.latest_id:
        own = _without_updates(incoming) if updates else incoming
        check_former(
            history, own.names, "Data of an older schema is written under it: schema={old} (--schema {old})"
        )
    Conformer(incoming, writer.schema, updates=updates)
    return writer


def check_former(history: History, names: Sequence[str], remedy: str) -> None:
    """Raise if data has columns under names of before, and say what became of them and what to do.

    In the remedy, `{old}` is the id of a schema that has them.
    """
    latest = {name.lower() for name in history.latest.names}
    unknown = [name for name in names if name.lower() not in latest]
    found = {name: former for name in unknown if (former := find_former(history, (name,))) is not None}
    if not found:
        return
    fates = [
        f"`{name}` was dropped by schema {former.schema_id + 1}"
        if former.now is None
        else f"`{name}` is called `{former.now}` since schema {former.schema_id + 1}"
        for name, former in found.items()
    ]
    told = ", ".join(fates[:_TOLD]) + (f" and {len(fates) - _TOLD} more" if len(fates) > _TOLD else "")
    old = min(former.schema_id for former in found.values())
    raise DataMismatchError(next(iter(found)), f"{told}. {remedy.format(old=old)}")


def _evolved(
    table: str, history: History, incoming: pa.Schema, evolution: Evolution, *, updates: bool
) -> Schema:
    """Return the latest schema with what the data has beyond it."""
    update = SchemaUpdate(history)
    own = _without_updates(incoming) if updates else incoming
    added = list(new_columns(own, history.latest))
    if not evolution.former_names:
        check_new_names(table, history, [column.path for column in added])
    for column in added:
        update.add_column(column.path, column.type)
    needs = incoming if evolution.needs is None else evolution.needs
    for column in wider_columns(_without_updates(needs) if updates else needs, history.latest):
        if column.path not in evolution.fixed:
            update.widen_column(column.path, column.type)
    return update.schema


def check_new_names(table: str, history: History, paths: Sequence[str]) -> None:
    """Raise if new columns have former names of other columns."""
    found = {path: former for path in paths if (former := find_former(history, parse_path(path))) is not None}
    if found:
        (path, former), *others = found.items()
        raise FormerNameError(
            table,
            path,
            former.field_id,
            former.schema_id,
            now=former.now,
            others=[other for other, _ in others[:_TOLD]],
        )


def _without_updates(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in UPDATE_FIELDS])

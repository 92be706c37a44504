"""Adoption: Parquet files that others wrote become parts of a table, where they lie.

Columns are matched by name once, now; from then on they are the fields that they were matched with, whatever
these are called later. What a table has ever adopted is remembered in a list, so that no file is adopted
twice.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from instar.errors import (
    ConflictError,
    CorruptTableError,
    DataMismatchError,
    IncompatibleSchemaError,
    UsageError,
)
from instar.parts import (
    Conformer,
    adopted_stats,
    check_foreign,
    encode_limits,
    foreign_nanos,
    inspect_file,
    new_columns,
    path_value,
    wider_columns,
)
from instar.schema import Field, History, Schema, SchemaUpdate, format_path, format_type
from instar.schema.algebra import walk_fields
from instar.schema.paths import parse_path
from instar.schema.schema import index_fields, number_fields
from instar.state import Adopted, Part
from instar.storage.frame import decode_record, encode_record
from instar.table.layout import adoption_key
from instar.table.outside import find_files, open_outside, path_values
from instar.table.write.append import begin_write
from instar.table.write.evolving import WriterSchema, check_new_names
from instar.table.write.rows import ATTEMPTS

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from instar.parts import ForeignFile
    from instar.state import TableState
    from instar.storage import Blob
    from instar.table.log.table_log import TableLog
    from instar.table.outside import OutsideFile
    from instar.table.services import Services

__all__ = ["AdoptionReport", "adopt_files", "infer_schema"]

_READERS: Final = 8
_INT: Final = 2**31


class AdoptionReport(NamedTuple):
    """The result of an adoption."""

    files: int = 0
    """How many files were adopted."""
    rows: int = 0
    bytes: int = 0
    known: int = 0
    """How many were skipped, because the table has adopted them before."""
    schema_id: int | None = None
    """The schema that their columns were matched with."""
    seqno: int | None = None


class _Looked(NamedTuple):
    """A file and what its footer and its path say."""

    file: OutsideFile
    foreign: ForeignFile
    values: dict[str, str | None]


def adopt_files(
    services: Services,
    log: TableLog,
    paths: Sequence[str | os.PathLike[str]],
    *,
    evolve: bool = False,
    former_names: bool = False,
    tell: Callable[[int, int], None] | None = None,
) -> AdoptionReport:
    """Make files part of a table; those that it has adopted before are skipped."""
    files = find_files(services.blob, paths)
    for _ in range(ATTEMPTS):
        try:
            return _adopt(services, log, files, evolve=evolve, former_names=former_names, tell=tell)
        except _OvertakenError:
            continue
    raise ConflictError(f"cannot adopt files into `{log.name}`: others adopted at the same time. Try again.")


def infer_schema(blob: Blob, paths: Sequence[str | os.PathLike[str]]) -> Schema:
    """Return a schema that all files fit, with every column nullable."""
    looked = _look_at(blob, find_files(blob, paths), None)
    first = new_columns(_incoming(looked[0], looked), None)
    fields = number_fields(Field(0, parse_path(column.path)[0], column.type) for column in first)
    return _united(looked, SchemaUpdate(History.start(Schema(fields))))


class _OvertakenError(Exception):
    """Somebody else adopted files meanwhile, perhaps the same ones."""


def _adopt(
    services: Services,
    log: TableLog,
    files: Sequence[OutsideFile],
    *,
    evolve: bool,
    former_names: bool,
    tell: Callable[[int, int], None] | None,
) -> AdoptionReport:
    state = log.load()
    if "stream" in state.labels:
        raise UsageError(
            f"`{state.name}` belongs to the stream `{state.labels['stream']}`, whose rows are routed by "
            "their time: adopt the files into a table of its own"
        )
    known = _load_list(services.blob, state)
    new = [file for file in files if file.location not in known]
    report = AdoptionReport(known=len(files) - len(new))
    if not new:
        return report
    looked = _look_at(services.blob, new, tell)
    writer = _choose_schema(state, looked, evolve=evolve, former_names=former_names)
    for one in looked:
        _check_fits(one, writer.schema)
    parts = [_part(services.blob, one, writer.schema, state.order_by) for one in looked]
    with begin_write(services, log, state) as write:
        key = adoption_key(state.table_id, write.write_id)
        services.blob.put(key, _encode_list(key, [*known, *(file.location for file in new)]))

        def check(current: TableState) -> None:
            if current.adopted != state.adopted:
                raise _OvertakenError

        committed = write.append(
            [part for part in parts if part is not None],
            writer.schema_id,
            evolved=writer.schema if writer.is_new else None,
            present={field_id for one in looked for field_id in _present(one, writer.schema)},
            adopted=(key, check),
        )
    taken = [part for part in parts if part is not None]
    return AdoptionReport(
        len(new),
        sum(part.rows for part in taken),
        sum(file.size for file in new),
        report.known,
        writer.schema_id,
        committed.state.seqno if committed.entry is None else committed.entry.seqno,
    )


def _look_at(
    blob: Blob, files: Sequence[OutsideFile], tell: Callable[[int, int], None] | None
) -> list[_Looked]:
    """Read all footers, several at a time."""
    looked = []
    with ThreadPoolExecutor(_READERS) as pool:
        for one in pool.map(lambda file: _look(blob, file), files):
            looked.append(one)
            if tell is not None:
                tell(len(looked), len(files))
    return looked


def _look(blob: Blob, file: OutsideFile) -> _Looked:
    try:
        with open_outside(blob, file.location, file.size) as source:
            foreign = inspect_file(source)
    except DataMismatchError as error:
        raise _misfit(file, error) from error
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"cannot adopt {file.location}: {str(error).strip()}. Nothing was done") from error
    values = path_values(file.location)
    both = {name.lower() for name in values}.intersection(name.lower() for name in foreign.schema.names)
    if both:
        raise UsageError(
            f"cannot adopt {file.location}: column `{min(both)}` is in the path and in the file, and they "
            "may not agree. Nothing was done; move the file, or drop the column from it"
        )
    return _Looked(file, foreign, values)


def _misfit(file: OutsideFile, error: DataMismatchError) -> DataMismatchError:
    return DataMismatchError(
        error.column, f"{error.reason}. The file is {file.location}", row=error.row, sample=error.sample
    )


def _choose_schema(
    state: TableState, looked: Sequence[_Looked], *, evolve: bool, former_names: bool
) -> WriterSchema:
    """Return the schema that the columns of the files are matched with, and check that they all fit."""
    history = state.history
    schema = history.latest
    if evolve:
        schema = _united(looked, SchemaUpdate(history), None if former_names else state)
        violations = history.check(schema)
        if violations:
            raise IncompatibleSchemaError(state.name, violations)
    is_new = schema != history.latest
    return WriterSchema(schema, history.latest_id + is_new, is_new=is_new)


def _united(looked: Sequence[_Looked], update: SchemaUpdate, table: TableState | None = None) -> Schema:
    """Add columns that only files have, widen those that are too narrow, and let them be null.

    With a table, a new column that has the name of a former one is refused.
    """
    for incoming in {_incoming(one, looked): None for one in looked}:
        added = list(new_columns(incoming, update.schema))
        if table is not None:
            check_new_names(table.name, table.history, [column.path for column in added])
        for column in added:
            update.add_column(column.path, column.type)
        for column in wider_columns(incoming, update.schema):
            update.widen_column(column.path, column.type)
        given = {name.lower() for name in incoming.names}
        for field in update.schema.fields:
            if not field.nullable and field.name.lower() not in given:
                update.make_nullable(format_path((field.name,)))
    known = index_fields(update.schema.fields)
    for field in {known[name.lower()] for one in looked for name, text in one.values.items() if text is None}:
        if not field.nullable:
            update.make_nullable(format_path((field.name,)))
    return update.schema


def _check_fits(one: _Looked, schema: Schema) -> None:
    """Raise if the columns of a file, or what its path tells, do not fit a schema."""
    for column in wider_columns(one.foreign.schema, schema):
        reason = f"the file has {format_type(column.type)}. Widen the column, or adopt with evolve=True"
        raise _misfit(one.file, DataMismatchError(column.path, reason))
    known = index_fields(schema.fields)
    told = {name: known.get(name.lower()) for name in one.values}
    for name, field in told.items():
        if field is None:
            reason = "the table has no such column. Add it first, or adopt with evolve=True"
            raise _misfit(one.file, DataMismatchError(format_path((name,)), reason))
        if one.values[name] is None and not field.nullable:
            reason = "the column is not null, and the path has no value for it"
            raise _misfit(one.file, DataMismatchError(format_path((name,)), reason))
        try:
            path_value(one.values[name], field)
        except DataMismatchError as error:
            raise _misfit(one.file, error) from error
    rest = tuple(field for field in schema.fields if field not in told.values())
    try:
        Conformer(one.foreign.schema, Schema(rest))
    except DataMismatchError as error:
        raise _misfit(one.file, error) from error


def _part(blob: Blob, one: _Looked, schema: Schema, order_by: Sequence[int]) -> Part | None:
    """Return what a table keeps of a file, once it is sure that its values fit; None if it has no rows."""
    file, foreign, texts = one
    if not foreign.rows:
        return None
    try:
        with open_outside(blob, file.location, file.size) as source:
            check_foreign(source, foreign, schema)
    except DataMismatchError as error:
        raise _misfit(file, error) from error
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"cannot adopt {file.location}: {str(error).strip()}. Nothing was done") from error
    known = index_fields(schema.fields)
    values = {known[name.lower()].id: text for name, text in texts.items()}
    stats = adopted_stats(foreign, values, schema, order_by)
    first, last = encode_limits(stats, foreign.rows, schema, order_by)
    return Part(
        file.location,
        foreign.rows,
        file.size,
        ordered=False,
        first_row=first,
        last_row=last,
        stats=stats,
        adopted=Adopted(foreign.footer, file.modified_ms, values, foreign_nanos(foreign, schema)),
    )


def _present(one: _Looked, schema: Schema) -> set[int]:
    """Return the fields that a file may have values for."""
    known = index_fields(schema.fields)
    names = [*one.foreign.schema.names, *one.values]
    return {field.id for field in walk_fields(tuple(known[name.lower()] for name in names))}


def _load_list(blob: Blob, state: TableState) -> list[str]:
    """Return the locations of all files that a table has ever adopted."""
    if state.adopted is None:
        return []
    what = f"list of adopted files {state.adopted}"
    data = blob.find(state.adopted)
    if data is None:
        raise CorruptTableError(what, "its object is missing", missing=True)
    return decode_record(data, "adoptions", state.adopted, list[str], what=what)


def _encode_list(key: str, locations: Sequence[str]) -> bytes:
    return encode_record("adoptions", key, sorted(locations))


def _incoming(one: _Looked, looked: Sequence[_Looked]) -> pa.Schema:
    """Return the columns of a file and of its path."""
    told = [pa.field(name, _told_type(name, looked)) for name in one.values]
    return pa.schema([*one.foreign.schema, *told])


def _told_type(name: str, looked: Iterable[_Looked]) -> pa.DataType:
    """Guess the type of a column that paths tell: whole numbers, dates, or texts."""
    texts = [text for one in looked if (text := one.values.get(name)) is not None]
    if texts and all(_is_int(text) for text in texts):
        return pa.int32() if all(-_INT <= int(text) < _INT for text in texts) else pa.int64()
    return pa.date32() if texts and all(_is_date(text) for text in texts) else pa.string()


def _is_int(text: str) -> bool:
    """Whether a text is how everybody writes a number of 64 bits: `07` may be a code."""
    try:
        return str(int(text)) == text and -(2**63) <= int(text) < 2**63
    except ValueError:
        return False


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False

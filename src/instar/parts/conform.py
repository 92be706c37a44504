"""Bringing data from outside into the layout of a schema, or saying why it does not fit.

Columns and members are matched by name as Spark does it, missing ones are null, numbers widen. Whole numbers
of any width fit where each of their values does, and so do numbers of Python and pandas, whose types nobody
chose; nothing else is narrowed, rounded or guessed, and whether its type fits is known before the first row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.errors import DataMismatchError, UsageError
from instar.parts.incoming import (
    INTEGERS,
    ArrowData,
    check_names,
    find_leaf,
    is_list,
    open_stream,
    plain,
    plain_type,
)
from instar.parts.keys import arrange, column_keys
from instar.parts.layout import DIFF, UPDATE_FIELDS, update_schema
from instar.parts.nested import null_mask, open_list, open_map
from instar.parts.objects import is_incidental
from instar.parts.samples import sample_row, sample_value
from instar.schema import (
    Decimal,
    Field,
    List,
    Map,
    Names,
    Primitive,
    Schema,
    Struct,
    Type,
    arrow_field,
    arrow_type,
    format_path,
    format_type,
)
from instar.schema.paths import ELEMENT, KEY, VALUE
from instar.schema.primitives import Family, names_of
from instar.schema.rules import can_widen
from instar.schema.types import INTERVAL_DAY_TIME, INTERVAL_YEAR_MONTH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

__all__ = ["Conformer", "conform"]

_BATCH_ROWS: Final = 128 * 1024
_BATCH_BYTES: Final = 64 * 1024 * 1024

_SHOWN: Final = 20
_REALS: Final = tuple(Primitive(name) for name in names_of(Family.REAL))
"""How many unknown columns are named."""

Path = tuple[str, ...]


def conform(data: ArrowData, schema: Schema, *, updates: bool = False) -> Iterator[pa.RecordBatch]:
    """Yield data batch by batch in the layout of a schema, with the table's names for its columns.

    With `updates`, the data may have columns `_ts` and `_diff`, which are kept as 64-bit integers. What
    can be known from the types alone is checked by this call, and the values as they are read.
    """
    reader = open_stream(data)
    conformer = Conformer(reader.schema, schema, updates=updates)
    return _conform_all(reader, conformer)


def _conform_all(reader: pa.RecordBatchReader, conformer: Conformer) -> Iterator[pa.RecordBatch]:
    done = 0
    for batch in reader:
        for piece in _pieces(batch):
            yield conformer.apply(piece, first_row=done)
            done += piece.num_rows


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch that is too large for 32-bit offsets, or for comfort."""
    rows = batch.num_rows
    if batch.nbytes > _BATCH_BYTES:
        rows = max(1, rows * _BATCH_BYTES // batch.nbytes)
    rows = min(rows, _BATCH_ROWS)
    for start in range(0, batch.num_rows, rows or 1):
        yield batch.slice(start, rows)


class Conformer:
    """The way from one incoming layout to a schema, worked out once and applied to each batch."""

    def __init__(self, incoming: pa.Schema, schema: Schema, *, updates: bool = False) -> None:
        fields = list(incoming)
        if not fields:
            raise UsageError("the data has no columns: give it at least one")
        check_names(fields, ())
        own = [field for field in fields if not (updates and field.name in UPDATE_FIELDS)]
        self._updates = [_update_slot(field) for field in fields if updates and field.name in UPDATE_FIELDS]
        self._columns = _Members(own, schema.fields, ())
        position = {field.name: at for at, field in enumerate(fields)}
        self._own = [position[field.name] for field in own]
        self._extra = [position[slot.path[0]] for slot in self._updates]
        self._diff = DIFF if any(slot.path == (DIFF,) for slot in self._updates) else None
        self._target = update_schema(schema, Names.COLUMN, tuple(slot.path[0] for slot in self._updates))

    def apply(self, batch: pa.RecordBatch, *, first_row: int = 0) -> pa.RecordBatch:
        """Bring a batch into the layout of the schema; rows are counted from `first_row` in errors."""
        try:
            columns = self._columns.apply([batch.column(at) for at in self._own], batch.num_rows, None)
            for slot, at in zip(self._updates, self._extra, strict=True):
                columns.append(slot.apply(batch.column(at)))
        except _MisfitError as misfit:
            sample = misfit.value or sample_row(batch, misfit.index)
            raise DataMismatchError(
                format_path(misfit.path), misfit.reason, row=first_row + misfit.index, sample=sample
            ) from None
        conformed = pa.RecordBatch.from_arrays(columns, schema=self._target)
        if self._diff is None:
            return conformed
        changes = pc.not_equal(conformed.column(self._diff), 0)  # a row that is added no times is no update
        return conformed.filter(changes)


class _MisfitError(Exception):
    """One value does not fit; on its way up, `index` becomes the number of a row."""

    def __init__(self, path: Path, index: int, reason: str, value: str | None = None) -> None:
        super().__init__(reason)
        self.path = path
        self.index = index
        self.reason = reason
        self.value = value


class _Step(Protocol):
    """How the values of one type are brought to another."""

    same: bool
    """Whether arrays of the right type can be passed on unseen."""

    def apply(self, array: pa.Array) -> pa.Array: ...


class _Slot:
    """A column, member, element, key or value: a type, and whether nulls may be in it."""

    def __init__(self, given: pa.Field, type_: Type, path: Path, *, nullable: bool) -> None:
        self.path = path
        self.nullable = nullable
        self.step = _step(given, type_, path)
        self.target = arrow_type(type_)
        self.same = nullable and self.step.same

    def apply(self, array: pa.Array, parents: pa.Array | None = None) -> pa.Array:
        """Convert an array; where a parent is null, a null is none of ours."""
        array = plain(array)
        if not (self.step.same and array.type.equals(self.target)):
            array = self.step.apply(array)
        if not self.nullable and array.null_count:
            self._check_nulls(array, parents)
        return array

    def _check_nulls(self, array: pa.Array, parents: pa.Array | None) -> None:
        missing = array.is_null().to_numpy(zero_copy_only=False)
        if parents is not None and parents.null_count:
            missing &= parents.is_valid().to_numpy(zero_copy_only=False)
        if missing.any():
            raise _MisfitError(
                self.path, int(missing.argmax()), "the column is not null, and this row has no value"
            )


class _Members:
    """The members of a struct, or the columns of a table, matched by name."""

    def __init__(self, incoming: Sequence[pa.Field], fields: tuple[Field, ...], path: Path) -> None:
        position = {field.name.lower(): at for at, field in enumerate(incoming)}
        known = {field.name.lower() for field in fields}
        unknown = [given.name for given in incoming if given.name.lower() not in known]
        if unknown:
            raise _unknown(unknown, path)
        self.sources = [position.get(field.name.lower()) for field in fields]
        self.fields = [arrow_field(field) for field in fields]
        self.slots = [
            _find_slot(incoming, source, field, (*path, field.name))
            for source, field in zip(self.sources, fields, strict=True)
        ]
        complete = len(self.sources) == len(incoming) and self.sources == sorted(position.values())
        self.same = complete and all(slot is not None and slot.same for slot in self.slots)

    def apply(self, arrays: Sequence[pa.Array], length: int, parents: pa.Array | None) -> list[pa.Array]:
        return [
            pa.nulls(length, field.type)
            if slot is None or source is None
            else slot.apply(arrays[source], parents)
            for field, source, slot in zip(self.fields, self.sources, self.slots, strict=True)
        ]


class _StructStep:
    def __init__(self, given: pa.DataType, type_: Struct, path: Path) -> None:
        check_names(given.fields, path)
        self.members = _Members(given.fields, type_.fields, path)
        self.same = self.members.same

    def apply(self, array: pa.StructArray) -> pa.Array:
        after = self.members.apply(array.flatten(), len(array), array)
        return pa.StructArray.from_arrays(after, fields=self.members.fields, mask=null_mask(array))


class _ListStep:
    def __init__(self, given: pa.DataType, type_: List, path: Path) -> None:
        nullable = type_.element_nullable
        self.element = _Slot(given.value_field, type_.element, (*path, ELEMENT), nullable=nullable)
        self.target = arrow_type(type_)
        self.same = self.element.same

    def apply(self, array: pa.Array) -> pa.Array:
        offsets, items = open_list(array)
        items = _apply_inside(self.element, items, offsets)
        return pa.ListArray.from_arrays(offsets, items, type=self.target, mask=null_mask(array))


class _MapStep:
    def __init__(self, given: pa.DataType, type_: Map, path: Path) -> None:
        nullable = type_.value_nullable
        self.key = _Slot(given.key_field, type_.key, (*path, KEY), nullable=False)
        self.value = _Slot(given.item_field, type_.value, (*path, VALUE), nullable=nullable)
        self.type = type_
        self.path = path
        self.target = arrow_type(type_)
        self.same = False  # keys are checked for nulls, and for being there twice

    def apply(self, array: pa.MapArray) -> pa.Array:
        offsets, keys, values = open_map(array)
        keys = _apply_inside(self.key, keys, offsets)
        self._check_keys(keys, offsets.to_numpy())
        values = _apply_inside(self.value, values, offsets)
        return pa.MapArray.from_arrays(offsets, keys, values, type=self.target, mask=null_mask(array))

    def _check_keys(self, keys: pa.Array, offsets: npt.NDArray[np.int32]) -> None:
        """Raise if a map has a key twice: nobody could tell which of the two values counts."""
        sizes = np.diff(offsets)
        if not (sizes > 1).any():
            return
        owners = np.repeat(np.arange(len(sizes)), sizes)
        found = arrange(
            len(keys), [(pa.array(owners), lambda some: [some]), column_keys(keys, self.type.key)]
        )
        repeated = np.flatnonzero(~found.greater[1:]) + 1
        if len(repeated):
            at = int(found.order[repeated].min())
            reason = "the map has this key more than once. Leave one entry for it"
            raise _MisfitError(self.path, int(owners[at]), reason, sample_value(keys, at))


class _LeafStep:
    def __init__(self, given: pa.DataType, type_: Type, path: Path) -> None:
        # Arrow lets decimals have more digits than their type says.
        self.same = not isinstance(type_, Decimal)
        self.target = arrow_type(type_)
        self.path = path
        wanted = format_type(type_)
        self.reason = (
            f"this value of {given} is not exactly a {wanted}"
            if self.same
            else f"this value has more digits than {wanted}"
        )

    def apply(self, array: pa.Array) -> pa.Array:
        if array.type.id == pa.lib.Type_INTERVAL_MONTHS:
            return array.view(self.target)
        try:
            return self._cast(array)
        except pa.ArrowInvalid:
            index = self._first_misfit(array)
            raise _MisfitError(self.path, index, self.reason, sample_value(array, index)) from None

    def _cast(self, array: pa.Array) -> pa.Array:
        after = array.cast(self.target)
        if not self.same:
            after.validate(full=True)
        return after

    def _first_misfit(self, array: pa.Array) -> int:
        """Find the first value that cannot be cast, by halves."""
        fits, fails = 0, len(array)
        while fails - fits > 1:
            middle = (fits + fails) // 2
            try:
                self._cast(array.slice(fits, middle - fits))
                fits = middle
            except pa.ArrowInvalid:
                fails = middle
        return fits


class _NullStep:
    same = False

    def __init__(self, type_: Type) -> None:
        self.target = arrow_type(type_)

    def apply(self, array: pa.Array) -> pa.Array:
        return pa.nulls(len(array), self.target)


def _unknown(names: Sequence[str], path: Path) -> DataMismatchError:
    """Say that a table lacks columns: all of them, and how they can be had."""
    first, *others = (format_path((*path, name)) for name in names)
    shown = ", ".join(other if "`" in other else f"`{other}`" for other in others[:_SHOWN])
    more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    also = f", nor {shown}{more}" if others else ""
    them = "them" if others else "it"
    reason = (
        f"the table has no such column{also}. Leave {them} out, or add {them} to the table: evolve=True does "
        "that as it writes, and so does --evolve on the command line"
    )
    return DataMismatchError(first, reason)


def _find_slot(incoming: Sequence[pa.Field], source: int | None, field: Field, path: Path) -> _Slot | None:
    if source is not None:
        return _Slot(incoming[source], field.type, path, nullable=field.nullable)
    if not field.nullable:
        raise DataMismatchError(format_path(path), "the column is not null, and the data does not have it")
    return None


def _update_slot(field: pa.Field) -> _Slot:
    return _Slot(field, Primitive("bigint"), (field.name,), nullable=False)


def _step(field: pa.Field, type_: Type, path: Path) -> _Step:
    given = plain_type(field.type)
    if pa.types.is_null(given):
        return _NullStep(type_)
    match type_:
        case Struct() if pa.types.is_struct(given):
            return _StructStep(given, type_, path)
        case List() if is_list(given):
            return _ListStep(given, type_, path)
        case Map() if pa.types.is_map(given):
            return _MapStep(given, type_, path)
    leaf = find_leaf(field)
    if pa.types.is_integer(given) and type_ in INTEGERS and not _is_interval(leaf):
        return _LeafStep(given, type_, path)  # pandas and others make whole numbers wider than they are
    if is_incidental(field) and type_ in (_REALS if pa.types.is_integer(given) else INTEGERS):
        return _LeafStep(given, type_, path)  # Arrow refuses each value that it cannot turn back
    if leaf is None or not _fits(leaf, type_):
        is_ = format_type(leaf) if leaf is not None and _is_interval(leaf) else str(given)
        raise DataMismatchError(format_path(path), _why_not(is_, leaf, type_))
    return _LeafStep(given, type_, path)


def _fits(given: Type, wanted: Type) -> bool:
    if isinstance(given, Primitive) and isinstance(wanted, Primitive):
        # Arrow has one type for all spans of days to seconds, and none for years and months.
        if given.name in INTERVAL_DAY_TIME and wanted.name in INTERVAL_DAY_TIME:
            return True
        if wanted.name in INTERVAL_YEAR_MONTH:
            return (
                given.name in INTERVAL_YEAR_MONTH or can_widen(given, Primitive("int")) or given.name == "int"
            )
    return given == wanted or can_widen(given, wanted)


def _is_interval(leaf: Type | None) -> bool:
    return isinstance(leaf, Primitive) and leaf.name in INTERVAL_YEAR_MONTH


def _why_not(is_: str, leaf: Type | None, wanted: Type) -> str:
    must_be = format_type(wanted)
    if leaf is not None and can_widen(wanted, leaf):
        return f"it is {is_}, and {must_be} cannot hold every {is_}. Cast it first, or widen the column"
    if leaf == Primitive("timestamp_ntz") and wanted == Primitive("timestamp"):
        return f"it is {is_}, which has no time zone, and the column needs one. Give the values their zone"
    return f"it is {is_}, which is not {must_be}. Cast it first"


def _apply_inside(slot: _Slot, items: pa.Array, offsets: pa.Array) -> pa.Array:
    """Convert what lists hold; the number of a misfit becomes that of its list."""
    try:
        return slot.apply(items)
    except _MisfitError as misfit:
        ends = offsets.to_numpy()[1:]
        misfit.index = int(np.searchsorted(ends, misfit.index, side="right"))
        raise

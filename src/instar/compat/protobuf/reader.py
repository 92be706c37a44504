"""Columns of the fields that `wire.py` finds: what each kind of field is built from.

This is what `decode.py` does, for ordinary messages and for many of them at once. A message with fields of a
kind that is not ordinary has no reader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import FieldDescriptor

from instar.compat.protobuf.mapping import WELL_KNOWN
from instar.compat.protobuf.times import TIMES, as_micros
from instar.compat.protobuf.wire import LENGTH, VARINT, Messages, Numbers, scan, unpack_fixed, unpack_varints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.protobuf.descriptor import Descriptor

    from instar.compat.protobuf.wire import WireFields

__all__ = ["RecordReader"]


class _Values(NamedTuple):
    """One value for each of some messages, in the order of their bytes; where it is not there, a default."""

    level: Messages
    message: Numbers
    there: Numbers
    value: Numbers
    at: Numbers
    size: Numbers

    def mark(self, which: Numbers) -> None:
        """Leave the records of some values to the library."""
        self.level.mark(self.message[which])

    def inside(self) -> Messages:
        """Return the messages that these values are."""
        start = np.where(self.there, self.at, 0)
        end = np.where(self.there, self.at + self.size, 0)
        level = self.level
        return level._replace(start=start, end=end, record=level.record[self.message])


Reader = Callable[[_Values, Numbers | None], pa.Array]
"""Makes an array of values; the mask tells which of them are null."""
Builder = Callable[[Messages, "WireFields"], pa.Array]
"""Makes the column of one field, with a value for each message, of what was found of it."""


class _NoReaderError(Exception):
    """A field is of a kind that only the library reads."""


class _Varint(NamedTuple):
    """How a number of variable length becomes a value."""

    convert: Callable[[Numbers], Numbers]
    wire: int = VARINT


class _Fixed(NamedTuple):
    """How a number of fixed length becomes a value."""

    dtype: str
    wire: int


def _unzigzag(bits: int) -> Callable[[Numbers], Numbers]:
    def convert(value: Numbers) -> Numbers:
        value = value.astype(f"u{bits // 8}")
        half, sign = value >> np.uint8(1), np.zeros_like(value) - (value & np.uint8(1))
        found: Numbers = (half ^ sign).astype(f"i{bits // 8}")
        return found

    return convert


def _as(dtype: str) -> Callable[[Numbers], Numbers]:
    return lambda value: value.astype(dtype)


_KINDS: Final[dict[int, _Varint | _Fixed]] = {
    FieldDescriptor.TYPE_BOOL: _Varint(lambda value: value.astype(bool)),
    FieldDescriptor.TYPE_INT32: _Varint(_as("i4")),
    FieldDescriptor.TYPE_INT64: _Varint(_as("i8")),
    FieldDescriptor.TYPE_UINT32: _Varint(_as("u4")),
    FieldDescriptor.TYPE_UINT64: _Varint(_as("u8")),
    FieldDescriptor.TYPE_SINT32: _Varint(_unzigzag(32)),
    FieldDescriptor.TYPE_SINT64: _Varint(_unzigzag(64)),
    FieldDescriptor.TYPE_ENUM: _Varint(_as("i4")),
    FieldDescriptor.TYPE_FIXED32: _Fixed("<u4", 5),
    FieldDescriptor.TYPE_SFIXED32: _Fixed("<i4", 5),
    FieldDescriptor.TYPE_FLOAT: _Fixed("<f4", 5),
    FieldDescriptor.TYPE_FIXED64: _Fixed("<u8", 1),
    FieldDescriptor.TYPE_SFIXED64: _Fixed("<i8", 1),
    FieldDescriptor.TYPE_DOUBLE: _Fixed("<f8", 1),
}
"""The kinds of numbers; text, bytes and messages are spans of bytes."""


class RecordReader:
    """Reads ordinary records of one message."""

    def __init__(self, message: _Message) -> None:
        self._message = message

    @classmethod
    def find(cls, descriptor: Descriptor, types: Sequence[pa.DataType]) -> RecordReader | None:
        """Return what reads a message, or None if only the library does."""
        try:
            return cls(_Message(descriptor, (descriptor.full_name,), types))
        except _NoReaderError:
            return None

    def read(self, records: pa.BinaryArray) -> tuple[list[pa.Array], Numbers, Numbers]:
        """Return columns, which records the library has to read, and which have unknown fields."""
        count = len(records)
        _, offsets, data = records.buffers()
        bounds = np.frombuffer(offsets, np.int32)[records.offset : records.offset + count + 1].astype(
            np.int64
        )
        odd = np.asarray(records.is_null())
        whole = np.zeros(1, np.uint8) if not data else np.frombuffer(data, np.uint8)
        start, end = bounds[:-1], np.where(odd, bounds[:-1], bounds[1:])
        level = Messages(whole, start, end, np.arange(count), odd.copy(), np.zeros(count, bool))
        return self._message.columns(level), level.odd, level.unknown


class _Message:
    """What builds each column of a message."""

    def __init__(self, descriptor: Descriptor, above: tuple[str, ...], types: Sequence[pa.DataType]) -> None:
        if descriptor.GetOptions().message_set_wire_format:
            raise _NoReaderError
        fields = sorted(descriptor.fields, key=lambda field: field.number)
        self._wires = {field.number: _wires(field) for field in fields}
        choices = ([it.number for it in oneof.fields] for oneof in descriptor.oneofs)
        self._choices = [numbers for numbers in choices if len(numbers) > 1]
        pairs = zip(fields, types, strict=True) if fields else ()
        self._builders = [_builder(field, above, into) for field, into in pairs]

    def columns(self, level: Messages) -> list[pa.Array]:
        """Build the columns of messages."""
        found = self.split(level)
        if not found:
            return [pa.array(np.ones(len(level.start), bool))]
        return [build(level, own) for build, own in zip(self._builders, found, strict=True)]

    def split(self, level: Messages) -> list[WireFields]:
        """Find what there is of each field, in the order of numbers."""
        found = scan(level)
        known = np.zeros(len(found.number), bool)
        parts = {}
        for number, wires in self._wires.items():
            first, last = np.searchsorted(found.number, (number, number + 1)).tolist()
            own = found.choose(slice(first, last))
            fits = (own.wire == wires[0]) | (own.wire == wires[-1])
            known[first:last] = fits
            parts[number] = own if fits.all() else own.choose(fits)
        level.unknown[level.record[found.message[~known]]] = True
        for numbers in self._choices:
            chosen = np.sort(np.concatenate([np.unique(parts[number].message) for number in numbers]))
            level.mark(chosen[1:][chosen[1:] == chosen[:-1]])  # the last of several counts
        return list(parts.values())


def _wires(field: FieldDescriptor) -> tuple[int, ...]:
    """Return the ways in which values of a field may lie in the bytes."""
    kind = _KINDS.get(field.type)
    if kind is None:
        return (LENGTH,)
    return (kind.wire, LENGTH) if field.is_repeated else (kind.wire,)


def _builder(field: FieldDescriptor, above: tuple[str, ...], into: pa.DataType) -> Builder:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return _map(field.message_type, above, into)
    if field.is_repeated:
        return _list(field, _reader(field, above, into.value_type), into)
    read = _reader(field, above, into)

    def build(level: Messages, found: WireFields) -> pa.Array:
        values = _singular(level, found)
        return read(values, ~values.there if field.has_presence else None)

    return build


def _singular(level: Messages, found: WireFields) -> _Values:
    """Spread what was found of a field over all messages."""
    count = len(level.start)
    message = np.arange(count)
    there = np.zeros(count, bool)
    there[found.message] = True
    level.mark(found.message[1:][found.message[1:] == found.message[:-1]])  # messages would be merged
    if len(found.message) == count and there.all():
        return _Values(level, message, there, found.value, found.at, found.size)
    spread = [np.zeros(count, column.dtype) for column in found[3:]]
    for column, own in zip(spread, found[3:], strict=True):
        column[found.message] = own
    return _Values(level, message, there, *spread)


def _list(field: FieldDescriptor, read: Reader, into: pa.ListType) -> Builder:
    kind = _KINDS.get(field.type)

    def build(level: Messages, found: WireFields) -> pa.Array:
        if kind is not None:
            packed = found.wire == LENGTH
            if not packed.all():
                level.mark(found.message[packed])  # both ways in one record
                found = found.choose(~packed)
            elif isinstance(kind, _Fixed):
                found = unpack_fixed(level, found, np.dtype(kind.dtype).itemsize)
            else:
                found = unpack_varints(level, found)
        return pa.ListArray.from_arrays(_offsets(level, found), read(_each(level, found), None), type=into)

    return build


def _map(entry: Descriptor, above: tuple[str, ...], into: pa.MapType) -> Builder:
    message = _Message(entry, above, [into.key_type, into.item_type])
    key, item = (entry.fields_by_number[number] for number in (1, 2))
    read_key, read_item = _reader(key, above, into.key_type), _reader(item, above, into.item_type)

    def build(level: Messages, found: WireFields) -> pa.Array:
        entries = _each(level, found).inside()._replace(unknown=np.zeros_like(level.unknown))
        own_keys, own_items = (_singular(entries, own) for own in message.split(entries))
        keys, items = read_key(own_keys, None), read_item(own_items, None)
        level.odd[entries.unknown] = True  # the library takes the whole entry for unknown
        given = pa.table({"message": found.message, "key": keys})
        order = pc.sort_indices(given, [("message", "ascending"), ("key", "ascending")])
        given = given.take(order)
        same = [pc.equal(column[1:], column[:-1]) for column in given.columns]
        level.mark(given["message"].to_numpy()[1:][np.asarray(pc.and_(*same))])  # the last of several counts
        return pa.MapArray.from_arrays(_offsets(level, found), keys.take(order), items.take(order), type=into)

    return build


def _each(level: Messages, found: WireFields) -> _Values:
    return _Values(level, found.message, np.ones(len(found.message), bool), *found[3:])


def _offsets(level: Messages, found: WireFields) -> pa.Array:
    counts = np.bincount(found.message, minlength=len(level.start))
    return pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())


def _reader(field: FieldDescriptor, above: tuple[str, ...], into: pa.DataType) -> Reader:
    """Return what makes an array of values of a field."""
    if field.type == FieldDescriptor.TYPE_GROUP:
        raise _NoReaderError
    if field.message_type is not None:
        return _message_reader(field.message_type, above, into)
    if field.type in {FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES}:
        return lambda values, null: _spans(values, null, into)
    kind = _KINDS[field.type]
    if field.enum_type is not None:
        if field.enum_type.is_closed:  # values that it does not list are unknown fields
            raise _NoReaderError
        names = {value.number: value.name for value in reversed(field.enum_type.values)}
        return lambda values, null: _enums(_numbers(kind, values), null, names)

    def read(values: _Values, null: Numbers | None) -> pa.Array:
        found = pa.array(_numbers(kind, values), mask=null, from_pandas=False)
        return found if found.type == into else found.cast(into)

    return read


def _numbers(kind: _Varint | _Fixed, values: _Values) -> Numbers:
    if isinstance(kind, _Varint):
        return kind.convert(values.value)
    width = np.dtype(kind.dtype).itemsize
    data = values.level.data
    where = np.where(values.there, values.at, 0)[:, None] + np.arange(width)
    found = data[np.minimum(where, len(data) - 1)].view(kind.dtype)[:, 0]
    return np.where(values.there, found, np.zeros(1, found.dtype))


def _enums(numbers: Numbers, null: Numbers | None, names: dict[int, str]) -> pa.Array:
    """Return the names of values; a number that the enum does not list is its own name."""
    distinct, which = np.unique(numbers, return_inverse=True)
    known = pa.array([names.get(number, str(number)) for number in distinct.tolist()], pa.string())
    return known.take(pa.array(which, pa.int64(), mask=null))


def _spans(values: _Values, null: Numbers | None, into: pa.DataType) -> pa.Array:
    """Cut values out of the bytes. They lie there in order, so Arrow takes every other piece of the whole."""
    ends = np.maximum.accumulate(np.where(values.there, values.at + values.size, 0))
    starts = np.where(values.there, values.at, ends)
    cuts = np.empty(2 * len(ends) + 1, np.int32)
    cuts[:-1:2], cuts[1::2], cuts[-1] = starts, ends, ends[-1] if len(ends) else 0
    data = pa.py_buffer(values.level.data)
    pieces = pa.Array.from_buffers(pa.binary(), len(cuts) - 1, [None, pa.py_buffer(cuts), data])
    found = pieces.take(pa.array(np.arange(0, len(cuts) - 1, 2), mask=null))
    if into == found.type:
        return found
    try:
        return found.cast(into)
    except pa.ArrowInvalid:
        broken = np.array([not _is_text(value) for value in found.to_pylist()])
        values.mark(broken)
        return pc.if_else(pa.array(broken), pa.scalar(b""), found).cast(into)


def _is_text(value: bytes | None) -> bool:
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False


def _message_reader(descriptor: Descriptor, above: tuple[str, ...], into: pa.DataType) -> Reader:
    full = descriptor.full_name
    if full in TIMES:
        return _times(descriptor, TIMES[full], into)
    if full in WELL_KNOWN:
        return _wrapped(descriptor, above, into)
    if full in above:
        raise _NoReaderError
    fields = [into.field(at) for at in range(into.num_fields)]
    message = _Message(descriptor, (*above, full), [field.type for field in fields])

    def read(values: _Values, null: Numbers | None) -> pa.Array:
        mask = None if null is None else pa.array(null)
        return pa.StructArray.from_arrays(message.columns(values.inside()), fields=fields, mask=mask)

    return read


def _times(descriptor: Descriptor, bounds: tuple[int, int], into: pa.DataType) -> Reader:
    message = _Message(descriptor, (), [pa.int64(), pa.int32()])

    def read(values: _Values, null: Numbers | None) -> pa.Array:
        inside = values.inside()
        seconds, nanos = (_singular(inside, own).value for own in message.split(inside))
        micros, wrong = as_micros(seconds.astype("i8"), nanos.astype("i4"), bounds)
        values.mark(wrong)
        return pa.array(micros, mask=null).cast(into)

    return read


def _wrapped(descriptor: Descriptor, above: tuple[str, ...], into: pa.DataType) -> Reader:
    """Return what reads a message around one value; others that protobuf has only the library reads."""
    if [field.name for field in descriptor.fields] != ["value"]:
        raise _NoReaderError
    message = _Message(descriptor, above, [into])
    inner = _reader(descriptor.fields_by_name["value"], above, into)

    def read(values: _Values, null: Numbers | None) -> pa.Array:
        inside = values.inside()
        [own] = message.split(inside)
        return inner(_singular(inside, own), null)

    return read

"""Records of serialised messages to Arrow, column by column.

A record that cannot be decoded never stops the others: it is returned as it came, with the reason. Columns
are those of `mapping.py`; this module knows nothing of Spark, tables or streams. Ordinary records are read by
the batch (`reader.py`); protobuf's own library reads the others, and says what is wrong with a record.
"""

from __future__ import annotations

import gc
import json
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from google.protobuf import json_format, message_factory
from google.protobuf.message import DecodeError

from instar.compat.protobuf.compile import decode_descriptors
from instar.compat.protobuf.descriptors import describe_messages, fill_pool, without_extensions
from instar.compat.protobuf.mapping import WELL_KNOWN, columns
from instar.compat.protobuf.reader import RecordReader
from instar.compat.protobuf.times import TIMES, as_micros
from instar.schema import Schema, arrow_schema
from instar.schema.schema import number_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.message import Message

    from instar.compat.protobuf.model import Encoding

__all__ = ["Decoded", "Decoder"]

Values = list[Any]

_AT_ONCE: Final = 16_384
"""How many records are read at once, so that memory is bounded."""
_SECONDS: Final = attrgetter("seconds")
_NANOS: Final = attrgetter("nanos")
_FREE_FORM: Final = frozenset(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue"))


class Decoded(NamedTuple):
    """What became of some records."""

    rows: pa.RecordBatch
    """The records that could be decoded, in their order."""
    positions: Sequence[int]
    """Which records the rows come from."""
    rejected: dict[int, str]
    """The positions of all others, and why each could not be decoded."""
    unknown: frozenset[int]
    """The positions of rows that hold, at any level, fields that this version does not know."""

    def reasons(self, version: str, *, unknown: bool = True) -> dict[int, str]:
        """Say why records must be kept beside their rows, by position; with or without unknown fields."""
        why = f"has fields that {version} does not know; the row was stored without them"
        return {**(dict.fromkeys(self.unknown, why) if unknown else {}), **self.rejected}


class Decoder:
    """Decodes records of one version of one message."""

    def __init__(self, encoding: Encoding) -> None:
        stored = decode_descriptors(encoding.descriptors, "the stored version")
        files = [without_extensions(file) for file in stored]
        self._version = describe_messages(files, [encoding.message])
        descriptor = fill_pool(files).FindMessageTypeByName(encoding.message)
        self._class = message_factory.GetMessageClass(descriptor)
        self._has_required = any(
            field.required for message in self._version.messages.values() for field in message.fields
        )
        self._columns = _members_of(descriptor, (descriptor.full_name,), self._arrow.types)
        self._reader = None if self._has_required else RecordReader.find(descriptor, self._arrow.types)

    @cached_property
    def schema(self) -> Schema:
        """The columns, with provisional ids."""
        return Schema(number_fields(columns(self._version, self._version.roots[0])))

    @cached_property
    def _arrow(self) -> pa.Schema:
        return arrow_schema(self.schema)

    def decode(self, records: pa.Array | pa.ChunkedArray | Sequence[bytes | None]) -> Decoded:
        """Decode records; nothing that is wrong with one of them raises."""
        if not isinstance(records, pa.Array | pa.ChunkedArray):
            records = pa.array(records, pa.binary())
        chunks = records.chunks if isinstance(records, pa.ChunkedArray) else [records]
        pieces = [it.slice(at, _AT_ONCE) for it in chunks for at in range(0, len(it), _AT_ONCE)]
        found = [self._decode_piece(piece.cast(pa.binary())) for piece in pieces]
        return found[0] if len(found) == 1 else self._join(found, pieces)

    def _decode_piece(self, records: pa.BinaryArray) -> Decoded:
        """Decode ordinary records all at once, and leave the others to protobuf's library."""
        if self._reader is None:
            return self._decode_each(records)
        arrays, odd, unknown = self._reader.read(records)
        rows = pa.RecordBatch.from_arrays(arrays, schema=self._arrow)
        if not odd.any():
            return Decoded(rows, range(len(records)), {}, frozenset(np.flatnonzero(unknown).tolist()))
        at = np.flatnonzero(odd)
        others = self._decode_each(records.take(pa.array(at)))
        ordinary = np.flatnonzero(~odd)
        positions = np.concatenate([ordinary, at[list(others.positions)]])
        order = np.argsort(positions)
        whole = pa.Table.from_batches([rows.take(pa.array(ordinary)), others.rows]).take(pa.array(order))
        return Decoded(
            self._as_batch(whole),
            positions[order].tolist(),
            {int(at[position]): why for position, why in others.rejected.items()},
            frozenset(np.flatnonzero(unknown & ~odd).tolist())
            | {int(at[position]) for position in others.unknown},
        )

    def _join(self, found: list[Decoded], pieces: list[pa.Array]) -> Decoded:
        starts = [0, *np.cumsum([len(piece) for piece in pieces]).tolist()]
        each = list(zip(starts, found, strict=False))
        return Decoded(
            self._as_batch(pa.Table.from_batches([it.rows for it in found], self._arrow)),
            [start + at for start, it in each for at in it.positions],
            {start + at: why for start, it in each for at, why in it.rejected.items()},
            frozenset(start + at for start, it in each for at in it.unknown),
        )

    def _as_batch(self, table: pa.Table) -> pa.RecordBatch:
        return table.combine_chunks().to_batches()[0] if table.num_rows else self._empty()

    def _decode_each(self, records: pa.BinaryArray) -> Decoded:
        """Decode records by protobuf's library, one message at a time."""
        with _uncollected():
            return self._decode(records.to_pylist())

    def _decode(self, given: list[bytes | None]) -> Decoded:
        rejected: dict[int, str] = {}
        messages, positions = self._parse_all(given) or self._parse_each(given, rejected)
        sizes = list(map(self._class.ByteSize, messages))
        for message in messages:
            self._class.DiscardUnknownFields(message)
        known = map(self._class.ByteSize, messages)
        unknown = {at for at, before, after in zip(positions, sizes, known, strict=True) if before != after}
        batches = [*self._build(messages, positions, rejected)]
        rows = self._as_batch(pa.Table.from_batches(batches, self._arrow))
        kept = [at for at in positions if at not in rejected]
        return Decoded(rows, kept, dict(sorted(rejected.items())), frozenset(unknown - rejected.keys()))

    def _parse_all(self, given: list[bytes | None]) -> tuple[list[Message], list[int]] | None:
        """Parse records at once; None if they have to be looked at one by one."""
        if self._has_required:
            return None
        try:
            return list(map(self._class.FromString, given)), list(range(len(given)))
        except (DecodeError, TypeError):
            return None

    def _parse_each(
        self, given: list[bytes | None], rejected: dict[int, str]
    ) -> tuple[list[Message], list[int]]:
        """Parse records one by one, and put aside those that are none."""
        messages, positions = [], []
        for at, record in enumerate(given):
            message = self._class()
            problem = self._parse(message, record)
            if problem is None:
                messages.append(message)
                positions.append(at)
            else:
                rejected[at] = problem
        return messages, positions

    def _parse(self, message: Message, record: bytes | None) -> str | None:
        """Fill a message, or say what is wrong with the record."""
        if record is None:
            return "the record is null"
        try:
            self._class.ParseFromString(message, record)
        except DecodeError as error:
            return f"not a {self._version.roots[0]}: {error}"
        if self._has_required and not self._class.IsInitialized(message):
            return f"lacks required {', '.join(self._class.FindInitializationErrors(message))}"
        return None

    def _build(
        self, messages: list[Message], positions: list[int], rejected: dict[int, str]
    ) -> list[pa.RecordBatch]:
        """Build columns; if a value does not fit, halve the records until it stands alone."""
        if not messages:
            return []
        try:
            arrays = [column(messages) for column in self._columns]
            return [pa.RecordBatch.from_arrays(arrays, schema=self._arrow)]
        except (ValueError, OverflowError, pa.ArrowException, json_format.Error) as error:
            if len(messages) == 1:
                rejected[positions[0]] = str(error) or type(error).__name__
                return []
        half = len(messages) // 2
        before = self._build(messages[:half], positions[:half], rejected)
        return before + self._build(messages[half:], positions[half:], rejected)

    def _empty(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [pa.array([], type_) for type_ in self._arrow.types], schema=self._arrow
        )


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the garbage collector from going through messages again and again: they are in no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _ordered(descriptor: Descriptor) -> list[FieldDescriptor]:
    return sorted(descriptor.fields, key=attrgetter("number"))


def _members_of(
    descriptor: Descriptor, above: tuple[str, ...], types: Sequence[pa.DataType]
) -> list[Callable[[Values], pa.Array]]:
    """Return what builds each column of a message."""
    if not descriptor.fields:
        return [_present]
    return [_column_of(field, above, into) for field, into in zip(_ordered(descriptor), types, strict=True)]


def _present(messages: Values) -> pa.Array:
    """Build the one column of a message without fields."""
    return pa.array(np.ones(len(messages), bool))


def _column_of(
    field: FieldDescriptor, above: tuple[str, ...], into: pa.DataType
) -> Callable[[Values], pa.Array]:
    """Return what builds the column of one field from messages, none of which is null."""
    get = attrgetter(field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return _map(field, get, above, into)
    if field.is_repeated:
        element = _values_of(field, above, into.value_type)

        def build_list(messages: Values) -> pa.Array:
            lists = list(map(get, messages))
            values = element(list(chain.from_iterable(lists)))
            return pa.ListArray.from_arrays(_offsets(lists), values, type=into)

        return build_list
    single = _values_of(field, above, into)
    if not field.has_presence:
        return lambda messages: single(list(map(get, messages)))
    name = field.name
    # Methods are those of the class: a field may be called as one of them.
    has = message_factory.GetMessageClass(field.containing_type).HasField

    def build_optional(messages: Values) -> pa.Array:
        return single([get(message) if has(message, name) else None for message in messages])

    return build_optional


def _map(
    field: FieldDescriptor, get: Callable[[Any], Any], above: tuple[str, ...], into: pa.MapType
) -> Callable[[Values], pa.Array]:
    key_field, value_field = (field.message_type.fields_by_number[number] for number in (1, 2))
    keys, items = _values_of(key_field, above, into.key_type), _values_of(value_field, above, into.item_type)

    def build_map(messages: Values) -> pa.Array:
        # In the order of keys: the bytes of a map have none, and equal maps must be equal rows.
        maps = [sorted(get(message).items()) for message in messages]
        pairs = list(chain.from_iterable(maps))
        arrays = keys([key for key, _ in pairs]), items([item for _, item in pairs])
        return pa.MapArray.from_arrays(_offsets(maps), *arrays, type=into)

    return build_map


def _values_of(
    field: FieldDescriptor, above: tuple[str, ...], into: pa.DataType
) -> Callable[[Values], pa.Array]:
    """Return what builds an array from values of a field, some of which may be None."""
    if field.enum_type is not None:
        names = {value.number: value.name for value in reversed(field.enum_type.values)}
        return lambda values: pa.array(_enum_names(names, values), into)
    if field.message_type is not None:
        return _messages_of(field.message_type, above, into, field.name)
    if pa.types.is_decimal(into):
        return lambda values: pa.array(values, pa.uint64()).cast(into)
    return lambda values: pa.array(values, into)


def _enum_names(names: dict[int, str], numbers: Values) -> Values:
    """Return the names of values; a number that the enum does not list is its own name."""
    found: Values = list(map(names.get, numbers))
    if None in found:
        return [
            str(number) if name is None and number is not None else name
            for name, number in zip(found, numbers, strict=True)
        ]
    return found


def _messages_of(
    descriptor: Descriptor, above: tuple[str, ...], into: pa.DataType, name: str
) -> Callable[[Values], pa.Array]:
    full = descriptor.full_name
    if full in TIMES:
        return lambda values: _times(values, into, name, TIMES[full])
    if full in _FREE_FORM:
        return lambda values: pa.array([_json(value) for value in values], into)
    if full in WELL_KNOWN:
        inner = _values_of(descriptor.fields_by_name["value"], above, into)
        return lambda values: inner([None if value is None else value.value for value in values])
    if full in above:
        return lambda values: pa.array([_bytes(value) for value in values], into)
    return _struct(descriptor, (*above, full), into)


def _struct(
    descriptor: Descriptor, above: tuple[str, ...], into: pa.StructType
) -> Callable[[Values], pa.Array]:
    fields = [into.field(at) for at in range(into.num_fields)]
    members = _members_of(descriptor, above, [field.type for field in fields])
    nothing = message_factory.GetMessageClass(descriptor)()

    def build_struct(values: Values) -> pa.Array:
        absent = np.fromiter((value is None for value in values), bool, len(values))
        if absent.any():
            values = [nothing if value is None else value for value in values]
        arrays = [member(values) for member in members]
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=pa.array(absent))

    return build_struct


def _offsets(lists: Sequence[Any]) -> pa.Array:
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    ends = np.concatenate([[0], np.cumsum(lengths)])
    return pa.array(ends, pa.int32())


def _times(values: Values, into: pa.DataType, name: str, bounds: tuple[int, int]) -> pa.Array:
    """Turn seconds and nanoseconds into microseconds."""
    absent = np.fromiter((value is None for value in values), bool, len(values))
    present = [value for value in values if value is not None] if absent.any() else values
    seconds = np.fromiter(map(_SECONDS, present), np.int64, len(present))
    nanos = np.fromiter(map(_NANOS, present), np.int64, len(present))
    found, wrong = as_micros(seconds, nanos, bounds)
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(f"`{name}` is out of range: {seconds[at]} seconds and {nanos[at]} nanoseconds")
    micros = np.zeros(len(values), np.int64)
    micros[~absent] = found
    return pa.array(micros, pa.int64(), mask=absent).cast(into)


def _json(value: Message | None) -> str | None:
    if value is None:
        return None
    return json.dumps(json_format.MessageToDict(value), sort_keys=True, ensure_ascii=False, allow_nan=False)


def _bytes(value: Message | None) -> bytes | None:
    return None if value is None else type(value).SerializeToString(value, deterministic=True)

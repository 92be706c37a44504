"""Decoded columns hold what the records say, and no record is ever lost."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from instar.compat.protobuf.decode import Decoder
from instar.compat.protobuf.model import Encoding
from tests.properties.compat.pairs import Shape, file_of, pairs
from tests.properties.compat.records import records
from tests.protos import message_class

NAN = float("nan")

if TYPE_CHECKING:
    from google.protobuf.message import Message


def encoding_of(shape: Shape) -> Encoding:
    """Return how records of a shape are encoded."""
    files = descriptor_pb2.FileDescriptorSet(file=[file_of(shape, "p.proto")])
    return Encoding(files.SerializeToString(), "p.Event")


@given(pairs(), st.data())
def test_columns_hold_what_records_say(pair: tuple[Shape, Shape], data: st.DataObject) -> None:
    """Every field of every type is decoded as protobuf itself reads it, unset fields included."""
    kind = message_class({"p.proto": file_of(pair[0], "p.proto")}, "p.proto", "Event")
    drawn = data.draw(st.lists(records(kind), max_size=4))
    decoded = Decoder(encoding_of(pair[0])).decode([record.SerializeToString() for record in drawn])
    assert (decoded.rejected, decoded.unknown) == ({}, frozenset())
    assert decoded.rows.to_pylist() == [row_of(record) for record in drawn]


def row_of(record: Message) -> dict[str, Any]:
    """Return the row that a record should become, told field by field."""
    return {field.name: value_of(record, field) for field in record.DESCRIPTOR.fields}


def value_of(record: Message, field: FieldDescriptor) -> Any:  # noqa: ANN401 -- whatever a column holds
    """Return the value of one field."""
    value = getattr(record, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return sorted(value.items())
    if field.is_repeated:
        return [single(it, field) for it in value]
    if field.has_presence and not record.HasField(field.name):
        return None
    return single(value, field)


def single(value: Any, field: FieldDescriptor) -> Any:  # noqa: ANN401 -- see above
    """Return one value as a column holds it."""
    if field.message_type is not None:
        return row_of(value)
    if field.enum_type is not None:
        listed = field.enum_type.values_by_number.get(value)
        return str(value) if listed is None else listed.name
    if isinstance(value, float) and math.isnan(value):
        return NAN
    unsigned = {FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64}
    return Decimal(value) if field.type in unsigned else value


@given(pairs(), st.lists(st.binary(max_size=12) | st.none(), max_size=6))
def test_no_record_is_lost(pair: tuple[Shape, Shape], given_records: list[bytes | None]) -> None:
    """Whatever the bytes, each record is a row or is rejected with a reason, and never both."""
    decoded = Decoder(encoding_of(pair[0])).decode(given_records)
    assert sorted([*decoded.positions, *decoded.rejected]) == list(range(len(given_records)))
    assert decoded.rows.num_rows == len(decoded.positions)
    assert all(decoded.rejected.values())


@given(pairs(), st.data())
def test_records_of_another_version_are_decoded_or_rejected(
    pair: tuple[Shape, Shape], data: st.DataObject
) -> None:
    """A record with fields that the version does not know is decoded, and said to have them."""
    other = message_class({"p.proto": file_of(pair[1], "p.proto")}, "p.proto", "Event")
    record = data.draw(records(other)).SerializeToString()
    decoded = Decoder(encoding_of(pair[0])).decode([record])
    kind = message_class({"p.proto": file_of(pair[0], "p.proto")}, "p.proto", "Event")
    read = kind()
    try:
        read.ParseFromString(record)
    except DecodeError:
        assert decoded.rejected
        return
    if decoded.rejected:
        assert not read.IsInitialized()
        return
    full = read.SerializeToString(deterministic=True)
    read.DiscardUnknownFields()
    assert bool(decoded.unknown) == (read.SerializeToString(deterministic=True) != full)
    assert [with_nan(row) for row in decoded.rows.to_pylist()] == [row_of(read)]


def with_nan(value: Any) -> Any:  # noqa: ANN401 -- whatever a column holds
    """Return a value with one NaN in the place of all, which are not equal to themselves."""
    match value:
        case dict():
            return {key: with_nan(it) for key, it in value.items()}
        case list():
            return [with_nan(it) for it in value]
        case float():
            return NAN if math.isnan(value) else value
    return value

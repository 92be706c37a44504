"""Records of a message with drawn values, and whether another version reads the same in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import strategies as st

if TYPE_CHECKING:
    from google.protobuf.message import Message

__all__ = ["differing", "records"]

_SMALL = {bits: [0, 1, 7, 2 ** (bits - 1) - 1] for bits in (32, 64)}
_VALUES: dict[int, list[Any]] = {
    FieldDescriptor.CPPTYPE_INT32: [*_SMALL[32], -1, -(2**31)],
    FieldDescriptor.CPPTYPE_INT64: [*_SMALL[64], -1, 2**31, -(2**63)],
    FieldDescriptor.CPPTYPE_UINT32: [*_SMALL[32], 2**32 - 1],
    FieldDescriptor.CPPTYPE_UINT64: [*_SMALL[64], 2**64 - 1],
    FieldDescriptor.CPPTYPE_BOOL: [False, True],
    FieldDescriptor.CPPTYPE_FLOAT: [0.0, 1.5, -2.0],
    FieldDescriptor.CPPTYPE_DOUBLE: [0.0, 1.5, -2.0],
}


@st.composite
def records(draw: st.DrawFn, kind: type[Message]) -> Message:
    """Draw a record; required fields are always set."""
    record = kind()
    for field in kind.DESCRIPTOR.fields:
        if not field.is_required and draw(st.integers(0, 3)) == 0:
            continue
        target = getattr(record, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            for key in draw(st.lists(st.sampled_from(["", "k", "q"]), max_size=2)):
                target[key] = draw(st.sampled_from([0, 5, -1]))
        elif field.message_type is not None:
            inner = message_factory.GetMessageClass(field.message_type)
            for it in draw(st.lists(records(inner), min_size=1, max_size=2)):
                (target.add() if field.is_repeated else target).CopyFrom(it)
        elif field.is_repeated:
            target.extend(draw(st.lists(_value(field), max_size=3)))
        else:
            setattr(record, field.name, draw(_value(field)))
    return record


def _value(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.enum_type is not None:
        return st.sampled_from([it.number for it in field.enum_type.values])
    if field.type == FieldDescriptor.TYPE_STRING:
        return st.sampled_from(["", "a", "é"])
    if field.type == FieldDescriptor.TYPE_BYTES:
        return st.sampled_from([b"", b"a", b"\xff"])
    return st.sampled_from(_VALUES[field.cpp_type])


def differing(old: Message, new: Message) -> list[str]:
    """Name the fields, by number, that two readings of the same bytes do not agree on.

    A field that only one of the versions has, at any depth, is not compared.
    """
    found = []
    for field in old.DESCRIPTOR.fields:
        other = new.DESCRIPTOR.fields_by_number.get(field.number)
        if other is not None:
            before, after = _as_list(old, field, other), _as_list(new, other, field)
            if before != after:
                found.append(f"{field.number}: {before} != {after}")
    return found


def _as_list(record: Message, field: FieldDescriptor, other: FieldDescriptor) -> list[Any]:
    """Return the values of a field as a list, so that a single value equals a list of it.

    Not set and 0 or empty are the same bytes, or stand for the same, so both are an empty list; so is a
    single 0 in a list. `other` is the field in the other version.
    """
    value, inner = getattr(record, field.name), other.message_type
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        pairs = ({1: _plain(key, None), 2: _plain(it, None)} for key, it in value.items())
        listed = [{number: [it] for number, it in pair.items() if it not in (0, b"")} for pair in pairs]
    elif field.is_repeated:
        listed = [_plain(it, inner) for it in value]
    elif field.has_presence and not record.HasField(field.name):
        return []
    else:
        listed = [_plain(value, inner)]
    if listed in ([0], [b""], [{}]):
        return []
    return listed if field.message_type is None and inner is None else sorted(listed, key=repr)


def _plain(value: Any, other: Descriptor | None) -> Any:  # noqa: ANN401 -- whatever a field holds
    """Return a value without its type: bytes for text, numbers for truth and enums, fields for a message.

    `other` is the message that the other version has there, if it has one: bytes are read as that message,
    and of a message only the fields that both versions have are returned.
    """
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes) and other is not None:
        value = message_factory.GetMessageClass(other).FromString(value)
    if isinstance(value, bool):
        return int(value)
    if hasattr(value, "DESCRIPTOR"):
        peers = (value.DESCRIPTOR if other is None else other).fields_by_number
        own = [field for field in value.DESCRIPTOR.fields if field.number in peers]
        fields = {field.number: _as_list(value, field, peers[field.number]) for field in own}
        return {number: it for number, it in fields.items() if it}
    return value

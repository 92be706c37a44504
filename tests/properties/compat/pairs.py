"""Pairs of versions of a message, the second made from the first by a few edits, as Hypothesis draws them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Member", "Shape", "file_of", "pairs"]

SCALARS = [
    "int32",
    "int64",
    "uint32",
    "uint64",
    "sint32",
    "sint64",
    "fixed32",
    "fixed64",
    "sfixed32",
    "sfixed64",
]
SCALARS += ["bool", "float", "double", "string", "bytes"]
TYPES = [*SCALARS, "enum", "message", "map"]
NAMES = "abcdefgh"


class Member(NamedTuple):
    """A field. `label` is one of implicit, optional, required and repeated; a map is repeated anyway."""

    number: int
    name: str
    type: str
    label: str = "implicit"
    oneof: bool = False


class Shape(NamedTuple):
    """One version: the members of the message and of the one inside it, the enum, and what is reserved."""

    syntax: str
    members: tuple[Member, ...]
    inner: tuple[Member, ...]
    values: tuple[tuple[int, str], ...]
    reserved: tuple[int, ...] = ()
    reserved_inner: tuple[int, ...] = ()
    reserved_values: tuple[int, ...] = ()


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Shape, Shape]:
    """Draw a version, and another that one to three edits make of it."""
    syntax = draw(st.sampled_from(["proto3", "proto3", "proto2"]))
    old = Shape(
        syntax,
        draw(_members(syntax, TYPES)),
        draw(_members(syntax, SCALARS)),
        ((0, "ZERO"), *draw(st.lists(st.sampled_from([(1, "ONE"), (2, "TWO"), (-1, "LESS")]), unique=True))),
    )
    new = old
    for _ in range(draw(st.integers(1, 3))):
        new = draw(_edited(new))
    return old, new


def _labels(syntax: str) -> list[str]:
    return (
        ["optional", "optional", "repeated", "required"]
        if syntax == "proto2"
        else ["implicit", "optional", "repeated"]
    )


@st.composite
def _members(draw: st.DrawFn, syntax: str, types: Sequence[str]) -> tuple[Member, ...]:
    numbers = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True))
    names = draw(st.permutations(NAMES))
    members = []
    for number, name in zip(numbers, names, strict=False):
        label = draw(st.sampled_from(_labels(syntax)))
        type_ = draw(st.sampled_from(types))
        single = label not in {"repeated", "required"} and type_ != "map"
        members.append(Member(number, name, type_, label, single and draw(st.integers(0, 4)) == 0))
    return tuple(members)


@st.composite
def _edited(draw: st.DrawFn, shape: Shape) -> Shape:
    where = draw(st.sampled_from(["members", "members", "members", "inner", "values"]))
    if where == "values":
        return draw(_edited_values(shape))
    members: tuple[Member, ...] = getattr(shape, where)
    reserved = "reserved" if where == "members" else "reserved_inner"
    taken: tuple[int, ...] = getattr(shape, reserved)
    types = TYPES if where == "members" else SCALARS
    at = draw(st.integers(0, len(members) - 1))
    field, rest = members[at], (*members[:at], *members[at + 1 :])
    fresh = [name for name in NAMES if name not in {it.name for it in members}]
    free = [it for it in range(1, 9) if it not in {other.number for other in members} and it not in taken]
    edit = draw(
        st.sampled_from(
            ["add", "drop", "reserve", "retype", "relabel", "rename", "renumber", "oneof", "swap"]
        )
    )
    match edit:
        case "add" if free and fresh:
            [added] = draw(_members(shape.syntax, types).map(lambda drawn: drawn[:1]))
            changed = (*members, added._replace(number=free[0], name=fresh[0]))
        case "drop" if rest:
            changed = rest
        case "reserve" if rest:
            return shape._replace(**{where: rest, reserved: (*taken, field.number)})  # type: ignore[arg-type]
        case "retype":
            type_ = draw(st.sampled_from(types))
            changed = (*rest, field._replace(type=type_, oneof=field.oneof and type_ != "map"))
        case "relabel":
            label = draw(st.sampled_from(_labels(shape.syntax)))
            oneof = field.oneof and label not in {"repeated", "required"}
            changed = (*rest, field._replace(label=label, oneof=oneof))
        case "rename" if fresh:
            changed = (*rest, field._replace(name=fresh[0]))
        case "renumber" if free:
            changed = (*rest, field._replace(number=free[0]))
        case "oneof" if field.label not in {"repeated", "required"} and field.type != "map":
            changed = (*rest, field._replace(oneof=not field.oneof))
        case "swap" if rest:
            changed = (
                field._replace(number=rest[0].number),
                rest[0]._replace(number=field.number),
                *rest[1:],
            )
        case _:
            changed = members
    return shape._replace(**{where: changed})  # type: ignore[arg-type]


@st.composite
def _edited_values(draw: st.DrawFn, shape: Shape) -> Shape:
    first, *others = shape.values
    free = [
        it
        for it in range(1, 6)
        if it not in {number for number, _ in others} and it not in shape.reserved_values
    ]
    edit = draw(st.sampled_from(["add", "drop", "reserve", "rename", "renumber"]))
    if edit == "add":
        return shape._replace(values=(*shape.values, (free[0], f"NEW{free[0]}")))
    if not others:
        return shape
    number, name = others[0]
    match edit:
        case "drop":
            others = others[1:]
        case "reserve":
            shape = shape._replace(reserved_values=(*shape.reserved_values, number))
            others = others[1:]
        case "rename":
            others[0] = (number, f"{name}_X")
        case "renumber":
            others[0] = (free[0], name)
    return shape._replace(values=(first, *others))


def file_of(shape: Shape, name: str) -> descriptor_pb2.FileDescriptorProto:
    """Return the descriptor of a file with one version of the message `Event`."""
    package = name.removesuffix(".proto")
    file = descriptor_pb2.FileDescriptorProto(name=name, package=package)
    if shape.syntax == "proto3":
        file.syntax = "proto3"
    event = file.message_type.add(name="Event")
    point = event.nested_type.add(name="Point")
    colour = event.enum_type.add(name="Colour")
    for number, value in shape.values:
        colour.value.add(name=value, number=number)
    for number in shape.reserved_values:
        colour.reserved_range.add(start=number, end=number)
    # Both types are always used: what no record can hold is not compared.
    used = (Member(20, "point", "message", "optional"), Member(21, "colour", "enum", "optional"))
    _fill(event, (*shape.members, *used), shape, f".{package}.Event")
    _fill(point, shape.inner, shape, f".{package}.Event")
    for message, numbers in ((event, shape.reserved), (point, shape.reserved_inner)):
        for number in numbers:
            message.reserved_range.add(start=number, end=number + 1)
    return file


def _fill(
    message: descriptor_pb2.DescriptorProto, members: tuple[Member, ...], shape: Shape, event: str
) -> None:
    ordered = sorted(members, key=lambda it: not it.oneof)
    if any(it.oneof for it in members):
        message.oneof_decl.add(name="choice")
    for member in ordered:
        field = message.field.add(name=member.name, number=member.number, json_name=member.name)
        labels = {"required": Proto.LABEL_REQUIRED, "repeated": Proto.LABEL_REPEATED}
        field.label = labels.get(member.label, Proto.LABEL_OPTIONAL)
        match member.type:
            case "enum":
                field.type, field.type_name = Proto.TYPE_ENUM, f"{event}.Colour"
            case "message":
                field.type, field.type_name = Proto.TYPE_MESSAGE, f"{event}.Point"
            case "map":
                entry = message.nested_type.add(name=f"{member.name.upper()}Entry")
                entry.options.map_entry = True
                entry.field.add(name="key", number=1, label=1, type=Proto.TYPE_STRING, json_name="key")
                entry.field.add(name="value", number=2, label=1, type=Proto.TYPE_INT32, json_name="value")
                field.type, field.label = Proto.TYPE_MESSAGE, Proto.LABEL_REPEATED
                field.type_name = f"{event}.{entry.name}"
            case scalar:
                field.type = Proto.Type.Value(f"TYPE_{scalar.upper()}")
        if member.oneof:
            field.oneof_index = 0
        elif shape.syntax == "proto3" and member.label == "optional" and member.type != "map":
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{member.name}")

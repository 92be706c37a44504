"""Descriptors to versions, in a pool of their own: versions never meet, and nothing is global."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import FieldDescriptor

from instar.compat.protobuf.mapping import check_columns
from instar.compat.protobuf.model import ProtobufEnum, ProtobufField, ProtobufMessage, ProtobufVersion
from instar.errors import InvalidSchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from google.protobuf.descriptor import Descriptor, EnumDescriptor

__all__ = ["describe_messages", "fill_pool", "without_extensions"]

_TYPES: Final = {
    value: name.removeprefix("TYPE_").lower()
    for name, value in vars(FieldDescriptor).items()
    if name.startswith("TYPE_")
}
_FEATURES: Final = descriptor_pb2.FeatureSet.Utf8Validation
_MAX_ENUM: Final = 2**31 - 1


def fill_pool(files: Iterable[descriptor_pb2.FileDescriptorProto]) -> descriptor_pool.DescriptorPool:
    """Return a pool with these files and nothing else, so that versions never meet."""
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        try:
            pool.AddSerializedFile(file.SerializeToString())
        except TypeError as error:
            raise InvalidSchemaError(f"the descriptor of {file.name} cannot be used: {error}") from None
    return pool


def without_extensions(file: descriptor_pb2.FileDescriptorProto) -> descriptor_pb2.FileDescriptorProto:
    """Return a file that defines no extensions: they have no columns, so they count as unknown fields."""
    kept = descriptor_pb2.FileDescriptorProto()
    kept.CopyFrom(file)
    kept.ClearField("extension")
    waiting = list(kept.message_type)
    while waiting:
        message = waiting.pop()
        message.ClearField("extension")
        waiting += message.nested_type
    return kept


def describe_messages(
    files: Iterable[descriptor_pb2.FileDescriptorProto], roots: Iterable[str]
) -> ProtobufVersion:
    """Describe these messages and all that they use."""
    given = list(files)
    pool = fill_pool(given)
    messages: dict[str, ProtobufMessage] = {}
    enums: dict[str, ProtobufEnum] = {}
    names = tuple(sorted(roots))
    checked = {file.name: _checks_text(file) for file in given}
    waiting = [pool.FindMessageTypeByName(name) for name in names]
    while waiting:
        message = waiting.pop()
        if message.full_name in messages:
            continue
        messages[message.full_name] = _message(message, checked[message.file.name])
        for field in message.fields:
            if field.message_type is not None:
                waiting.append(field.message_type)
            if field.enum_type is not None:
                enums[field.enum_type.full_name] = _enum(field.enum_type)
    lines = {path: where for file in given for path, where in _lines(file)}
    version = ProtobufVersion(names, messages, enums, lines)
    check_columns(version)
    return version


def _checks_text(file: descriptor_pb2.FileDescriptorProto) -> bool:
    """Whether strings of a file must be UTF-8, unless a field says otherwise."""
    if file.syntax == "editions":
        return bool(file.options.features.utf8_validation != _FEATURES.NONE)
    return bool(file.syntax == "proto3")


def _message(message: Descriptor, checks_text: bool) -> ProtobufMessage:  # noqa: FBT001 -- of its file
    raw = descriptor_pb2.DescriptorProto()
    message.CopyToProto(raw)
    own = {field.number: field.options.features.utf8_validation for field in raw.field}
    checked = {number: given == _FEATURES.VERIFY if given else checks_text for number, given in own.items()}
    fields = (_field(field, checked[field.number]) for field in message.fields)
    return ProtobufMessage(
        message.full_name,
        tuple(sorted(fields, key=lambda field: field.number)),
        message.GetOptions().map_entry,
        tuple(sorted((span.start, span.end - 1) for span in raw.reserved_range)),
        tuple(sorted(raw.reserved_name)),
        tuple(sorted((span.start, span.end - 1) for span in raw.extension_range)),
    )


def _field(field: FieldDescriptor, checks_text: bool) -> ProtobufField:  # noqa: FBT001 -- as above
    kind = field.message_type or field.enum_type
    oneof = field.containing_oneof
    synthetic = oneof is not None and len(oneof.fields) == 1 and oneof.name == f"_{field.name}"
    return ProtobufField(
        field.number,
        field.name,
        _TYPES[field.type],
        "" if kind is None else kind.full_name,
        repeated=field.is_repeated,
        presence=field.has_presence,
        required=field.is_required,
        oneof="" if oneof is None or synthetic else oneof.name,
        default=str(field.default_value) if field.has_default_value else None,
        any_bytes=_TYPES[field.type] == "string" and not checks_text,
    )


def _enum(enum: EnumDescriptor) -> ProtobufEnum:
    raw = descriptor_pb2.EnumDescriptorProto()
    enum.CopyToProto(raw)
    return ProtobufEnum(
        enum.full_name,
        tuple(sorted(((value.number, value.name) for value in enum.values), key=itemgetter(0))),
        enum.is_closed,
        tuple(sorted((span.start, min(span.end, _MAX_ENUM)) for span in raw.reserved_range)),
        tuple(sorted(raw.reserved_name)),
    )


def _lines(file: descriptor_pb2.FileDescriptorProto) -> Iterator[tuple[str, tuple[str, int]]]:
    """Yield the path of each message, field, enum and value with its file and line, counted from 1."""
    spans = {tuple(place.path): place.span[0] + 1 for place in file.source_code_info.location}

    def inside(
        message: descriptor_pb2.DescriptorProto, prefix: str, at: tuple[int, ...]
    ) -> Iterator[tuple[str, int]]:
        name = f"{prefix}{message.name}"
        yield name, spans.get(at, 1)
        for number, field in enumerate(message.field):
            yield f"{name}.{field.name}", spans.get((*at, 2, number), 1)
        for number, child in enumerate(message.nested_type):
            yield from inside(child, f"{name}.", (*at, 3, number))
        for number, enum in enumerate(message.enum_type):
            yield from values(enum, f"{name}.", (*at, 4, number))

    def values(
        enum: descriptor_pb2.EnumDescriptorProto, prefix: str, at: tuple[int, ...]
    ) -> Iterator[tuple[str, int]]:
        yield f"{prefix}{enum.name}", spans.get(at, 1)
        for number, value in enumerate(enum.value):
            yield f"{prefix}{enum.name}.{value.name}", spans.get((*at, 2, number), 1)

    package = f"{file.package}." if file.package else ""
    for number, message in enumerate(file.message_type):
        for path, line in inside(message, package, (4, number)):
            yield path, (file.name, line)
    for number, enum in enumerate(file.enum_type):
        for path, line in values(enum, package, (5, number)):
            yield path, (file.name, line)

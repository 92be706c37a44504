"""Versions of protobuf messages as plain values.

Only what bytes and columns depend on is kept: neither comments nor the order of declarations. So equal
values mean equal versions, however a descriptor was encoded. They are made in `descriptors.py`.
"""

from __future__ import annotations

import hashlib

import msgspec

__all__ = ["Encoding", "ProtobufEnum", "ProtobufField", "ProtobufMessage", "ProtobufVersion", "Ranges"]

Ranges = tuple[tuple[int, int], ...]
"""Reserved numbers, as first and last."""


class ProtobufField(msgspec.Struct, frozen=True, array_like=True):
    """A field of a message.

    `type` is protobuf's word for it; `type_name` says which message or enum. `presence`: whether a record
    can say that it has no value. `default` is the one declared, as text. `any_bytes`: whether a string may be
    other than UTF-8, which proto2 allows.
    """

    number: int
    name: str
    type: str
    type_name: str = ""
    repeated: bool = False
    presence: bool = False
    required: bool = False
    oneof: str = ""
    default: str | None = None
    any_bytes: bool = False


class ProtobufMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message: its fields by number, the numbers and names that no field may take, and those of others.

    `extensions` are numbers that other files may define fields for.
    """

    name: str
    fields: tuple[ProtobufField, ...]
    is_map_entry: bool = False
    reserved: Ranges = ()
    reserved_names: tuple[str, ...] = ()
    extensions: Ranges = ()


class ProtobufEnum(msgspec.Struct, frozen=True, array_like=True):
    """An enum: (number, name) of its values by number, as declared; a closed one knows no other numbers."""

    name: str
    values: tuple[tuple[int, str], ...]
    closed: bool = False
    reserved: Ranges = ()
    reserved_names: tuple[str, ...] = ()


class Encoding(msgspec.Struct, frozen=True):
    """How records are encoded: the descriptors of a version, imports first, and the message that they are.

    A plain value, so it can be stored beside a version and sent to executors.
    """

    descriptors: bytes
    message: str


class ProtobufVersion(msgspec.Struct, frozen=True, tag="protobuf"):
    """The messages whose records are kept (`roots`), and every message and enum that they use."""

    roots: tuple[str, ...]
    messages: dict[str, ProtobufMessage]
    enums: dict[str, ProtobufEnum]
    lines: dict[str, tuple[str, int]] = msgspec.field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """Identify what the version says; where it was written down is left out."""
        said = (self.roots, self.messages, self.enums)
        return hashlib.sha256(msgspec.json.encode(said, order="deterministic")).hexdigest()

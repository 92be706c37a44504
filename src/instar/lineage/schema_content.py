"""The content of a dataset's schema: which fields there are, by name, type and what is nested in them.

Order and descriptions are no part of it. A type may be unknown. Nothing here knows about databases.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import msgspec

__all__ = ["FieldContent", "SchemaContent", "decode_members"]


class FieldContent(NamedTuple):
    """A field: its members are sorted, and no two are equal."""

    name: str
    type: str | None
    members: tuple[FieldContent, ...] = ()

    def encode(self) -> str:
        """Return the canonical JSON."""
        return msgspec.json.encode(self).decode()

    def encode_members(self) -> str | None:
        """Return the canonical JSON of what is nested, or None."""
        return msgspec.json.encode(self.members).decode() if self.members else None


class SchemaContent(NamedTuple):
    """The fields of a schema: sorted, and no two are equal."""

    fields: tuple[FieldContent, ...]

    @staticmethod
    def of(fields: list[FieldContent]) -> SchemaContent:
        """Make the content of these fields, in whatever order they come."""
        return SchemaContent(_canonical(fields))

    @staticmethod
    def from_facet(fields: list[dict[str, Any]]) -> SchemaContent:
        """Read the fields of a schema facet that has been validated."""
        return SchemaContent(_read(fields))

    @staticmethod
    def decode(text: str) -> SchemaContent:
        """Read what `encode` wrote."""
        return SchemaContent(_revive(msgspec.json.decode(text)))

    def encode(self) -> str:
        """Return the canonical JSON: different contents never have the same text."""
        return msgspec.json.encode(self.fields).decode()

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the canonical JSON, in hex."""
        return hashlib.sha256(self.encode().encode()).hexdigest()

    def amended(self, seen: SchemaContent) -> SchemaContent:
        """Return this schema as seen by a reader that may have looked at only some of the fields.

        Of a field with the same name, what was seen is right; fields that were not seen stay.
        """
        names = {field.name for field in seen.fields}
        kept = [field for field in self.fields if field.name not in names]
        return SchemaContent.of([*kept, *seen.fields])


def decode_members(text: str | None) -> tuple[FieldContent, ...]:
    """Read what `FieldContent.encode_members` wrote."""
    return _revive(msgspec.json.decode(text)) if text else ()


def _canonical(fields: list[FieldContent]) -> tuple[FieldContent, ...]:
    return tuple(sorted(set(fields), key=FieldContent.encode))


def _read(fields: list[dict[str, Any]]) -> tuple[FieldContent, ...]:
    return _canonical(
        [FieldContent(field["name"], field.get("type"), _read(field.get("fields") or [])) for field in fields]
    )


def _revive(fields: list[Any]) -> tuple[FieldContent, ...]:
    return tuple(FieldContent(name, type_, _revive(members)) for name, type_, members in fields)

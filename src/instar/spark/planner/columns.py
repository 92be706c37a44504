"""The columns of a planned scan: what Spark calls them, and what they are in files.

Spark prunes columns and members of structs by name, and forgets the ids of those inside. The reader of files
needs these at every level, or it would give nulls.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from instar.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Columns"]


class Columns:
    """The columns of a table as Spark is told them, and the same, in the same order, as files have them.

    Both are fields of Spark's JSON that differ only in names and metadata.
    """

    def __init__(self, shown: Sequence[dict[str, Any]], stored: Sequence[dict[str, Any]]) -> None:
        self.shown = list(shown)
        self.stored = list(stored)
        self.is_physical = shown is stored
        """Whether Spark knows the columns as files do."""

    @property
    def shown_json(self) -> str:
        """The schema that Spark knows."""
        return _struct(self.shown)

    @property
    def stored_json(self) -> str:
        """The schema that the reader of files needs."""
        return _struct(self.stored)

    def narrowed(self, pruned: str) -> Columns:
        """Return what is left of the columns when Spark has pruned them."""
        wanted = json.loads(pruned)["fields"]
        pairs = [_narrow_field(field, self.shown, self.stored) for field in wanted]
        stored = [own for _, own in pairs]
        return Columns(stored if self.is_physical else [shown for shown, _ in pairs], stored)


def _struct(fields: Sequence[dict[str, Any]]) -> str:
    return json.dumps({"type": "struct", "fields": list(fields)})


def _narrow_field(
    wanted: dict[str, Any], shown: Sequence[dict[str, Any]], stored: Sequence[dict[str, Any]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    names = [field["name"] for field in shown]
    if wanted["name"] not in names:
        raise UsageError(f"Spark asks for a column {wanted['name']!r}, which is not one of {names}")
    at = names.index(wanted["name"])
    types = _narrow_type(wanted["type"], shown[at]["type"], stored[at]["type"])
    return {**shown[at], "type": types[0]}, {**stored[at], "type": types[1]}


def _narrow_type(wanted: Any, shown: Any, stored: Any) -> tuple[Any, Any]:  # noqa: ANN401 -- types as JSON
    """Return both forms of a type with only the members that are wanted."""
    if not isinstance(wanted, dict) or not isinstance(shown, dict):
        return shown, stored
    if wanted["type"] == "struct":
        pairs = [_narrow_field(field, shown["fields"], stored["fields"]) for field in wanted["fields"]]
        return (
            {**shown, "fields": [one for one, _ in pairs]},
            {**stored, "fields": [other for _, other in pairs]},
        )
    inner = ("elementType",) if wanted["type"] == "array" else ("keyType", "valueType")
    narrow = {key: _narrow_type(wanted[key], shown[key], stored[key]) for key in inner}
    return (
        {**shown, **{key: one for key, (one, _) in narrow.items()}},
        {**stored, **{key: other for key, (_, other) in narrow.items()}},
    )

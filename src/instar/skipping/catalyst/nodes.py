"""The JSON of a Catalyst expression as a tree: nodes in preorder, each with the number of its children.

Spark leaves out what it cannot print: modes, escape characters, the members of a set, bytes. A caller with
the live expression can supply these as `lost`, by the position of the node in the JSON.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from instar.errors import InstarError
from instar.schema import Primitive, Type, schema_from_spark
from instar.schema.primitives import PRIMITIVES, SPARK_NAMES
from instar.skipping.functions import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Node", "find_type", "read_nodes"]


@dataclass(frozen=True, slots=True)
class Node:
    """One expression: the name of its class, what it says of itself, and its children."""

    name: str
    fields: Mapping[str, Any]
    children: tuple[Node, ...]

    def child(self, field: str) -> Node | None:
        """Return the child that a field refers to by its position."""
        position = self.fields.get(field)
        if isinstance(position, int) and 0 <= position < len(self.children):
            return self.children[position]
        return None

    @property
    def zone(self) -> str | None:
        """The time zone that the expression was resolved in."""
        zone = self.fields.get("timeZoneId")
        return zone if isinstance(zone, str) else None

    @property
    def mode(self) -> Mode:
        """The mode of the expression; Spark does not print it."""
        given = self.fields.get("evalMode")
        return Mode[given] if isinstance(given, str) and given in Mode.__members__ else Mode.UNKNOWN


def read_nodes(text: str, lost: Mapping[int, Mapping[str, Any]] | None = None) -> Node:
    """Read the JSON that `toJSON` gives for one expression."""
    given = json.loads(text)
    if not isinstance(given, list) or not given:
        raise ValueError("not the JSON of an expression")
    # From the end, so that children are there before their parent, however deep they are.
    read: list[Node] = []
    for at in reversed(range(len(given))):
        fields = {**given[at], **(lost or {}).get(at, {})}
        count = int(fields["num-children"])
        if count > len(read):
            raise ValueError("children are missing")
        children = tuple(read.pop() for _ in range(count))
        read.append(Node(str(fields["class"]).rpartition(".")[2], fields, children))
    if len(read) != 1:
        raise ValueError("more than one expression")
    return read[0]


def find_type(value: object) -> Type | None:
    """Return a Spark type as printed in JSON, or None if it is not one that values are compared in."""
    if isinstance(value, str) and SPARK_NAMES.get(value, value) in PRIMITIVES:
        return Primitive(SPARK_NAMES.get(value, value))
    try:
        field = {"name": "x", "type": value, "nullable": True, "metadata": {}}
        return schema_from_spark({"type": "struct", "fields": [field]}).fields[0].type
    except (InstarError, TypeError, KeyError, AttributeError):
        return None

"""Tables as Spark's SQL describes them: columns with comments, and properties, there and back.

A property is an option of the table, or says what it is sorted and identified by.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from instar.errors import UsageError
from instar.parts.layout import path_to
from instar.schema import format_path
from instar.schema.paths import ELEMENT, KEY, VALUE
from instar.schema.spark import spark_json
from instar.state.options import CLUSTER_BY, OPTIONS, STATS, Fields, Number, parse_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from instar.state import ConfigValue, TableState

__all__ = ["Definition", "option_value", "read_definition", "schema_text", "table_properties"]

PROVIDER: Final = "instar"
_SORTED_BY: Final = "order_by"
_IDENTIFIED_BY: Final = "key"
_OF_SPARK: Final = frozenset(["owner", "is_managed_location", "external", "table_type", "collation"])
"""What Spark says by itself, and nobody asked for."""


class Definition(NamedTuple):
    """What a statement says about a new table beside its columns."""

    order_by: Sequence[str]
    key: Sequence[str]
    options: Mapping[str, ConfigValue | Sequence[str]]
    comments: Mapping[str | None, str]


def schema_text(state: TableState) -> str:
    """Return the columns of a table as the JSON of a Spark schema, with what is said about them."""
    schema = spark_json(state.history.latest)
    said = {path: text for path, text in state.comments.items() if path is not None}
    for path, field in _walk(schema, ()):
        text = said.get(format_path(path))
        if text is not None:
            field["metadata"] = {"comment": text}
    return json.dumps(schema)


def table_properties(state: TableState, location: str) -> dict[str, str]:
    """Return what Spark shows as the properties of a table."""
    fields = state.history.latest.fields
    found = {name: str(value) for name, value in state.options.items() if name not in {CLUSTER_BY, STATS}}
    for name, ids in (
        (_SORTED_BY, state.order_by),
        (_IDENTIFIED_BY, state.key),
        (CLUSTER_BY, state.cluster_by),
        (STATS, parse_fields(state.options.get(STATS, ""))),
    ):
        paths = [path_to(fields, field_id) for field_id in ids]
        if paths:
            found[name] = ", ".join(format_path(path) for path in paths if path)
    if None in state.comments:
        found["comment"] = state.comments[None]
    return {**found, "provider": PROVIDER, "location": location}


def read_definition(schema: Mapping[str, Any], properties: Mapping[str, str]) -> Definition:
    """Read what a statement says about a new table; what a table cannot have is refused."""
    comments: dict[str | None, str] = {
        format_path(path): field["metadata"]["comment"]
        for path, field in _walk(schema, ())
        if (field.get("metadata") or {}).get("comment")
    }
    named = {name: value for name, value in properties.items() if not name.startswith("option.")}
    provider = named.pop("provider", PROVIDER)
    if provider.lower() != PROVIDER:
        raise UsageError(
            f"a table of this catalog cannot be `USING {provider}`: leave that out. "
            "With saveAsTable, add format('instar')"
        )
    if "location" in named:
        raise UsageError("a table of this catalog is stored where its store is: leave LOCATION out")
    text = named.pop("comment", None)
    if text is not None:
        comments[None] = text
    order_by, key = (_columns(named.pop(name, "")) for name in (_SORTED_BY, _IDENTIFIED_BY))
    options = {name: option_value(name, value) for name, value in named.items() if name not in _OF_SPARK}
    return Definition(order_by, key, options, comments)


def option_value(name: str, value: str) -> ConfigValue | Sequence[str]:
    """Return the value of an option that a property says in words."""
    match OPTIONS.get(name):
        case Fields():
            return _columns(value)
        case Number():
            try:
                return int(value)
            except ValueError:
                pass
            try:
                return float(value)
            except ValueError:
                return value
        case None if name in {_SORTED_BY, _IDENTIFIED_BY}:
            raise UsageError(f"`{name}` is chosen when a table is created, and stays")
        case None:
            known = ", ".join([_SORTED_BY, _IDENTIFIED_BY, *OPTIONS])
            raise UsageError(f"there is no table property {name!r}: the properties are {known}")
        case _:
            return value


def _columns(text: str) -> list[str]:
    return [column.strip() for column in text.split(",") if column.strip()]


def _walk(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:  # noqa: ANN401
    """Yield every field of the JSON of a Spark type, with its path."""
    if not isinstance(value, dict):
        return
    match value["type"]:
        case "struct":
            for field in value["fields"]:
                yield (*path, field["name"]), field
                yield from _walk(field["type"], (*path, field["name"]))
        case "array":
            yield from _walk(value["elementType"], (*path, ELEMENT))
        case "map":
            yield from _walk(value["keyType"], (*path, KEY))
            yield from _walk(value["valueType"], (*path, VALUE))

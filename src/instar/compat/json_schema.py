"""JSON Schema: whether every document of one version is a document of the other, and the columns they become.

Deciding that in general is out of reach; here each keyword is compared with itself, and what cannot be
decided so is *conditional*, with the keyword as the reason.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

import msgspec

from instar.compat.columns import compare_columns, may_go_on
from instar.compat.judgement import Difference, conditional, safe, unsafe
from instar.compat.size import ColumnCount, check_json_depth
from instar.errors import InvalidSchemaError
from instar.schema import Field, List, Map, Primitive, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["JsonSchemaVersion", "compare_json_schema", "parse_json_schema"]

_ANNOTATIONS: Final = frozenset(
    """
    $schema $id $comment $defs definitions title description default examples deprecated readOnly writeOnly
    """.split()  # noqa: SIM905 -- a list of words
)
_LOWER: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_COMPARED: Final = frozenset(
    [
        *_LOWER,
        *_UPPER,
        "type",
        "enum",
        "const",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "$ref",
    ]
)
_EVERY_TYPE: Final = frozenset(["null", "boolean", "integer", "number", "string", "array", "object"])
_COLUMNS: Final = {"boolean": "boolean", "integer": "bigint", "number": "double", "string": "string"}
_FORMATS: Final = {"date-time": "timestamp", "date": "date"}
_MAX_DEPTH: Final = 64


class JsonSchemaVersion(msgspec.Struct, frozen=True, tag="json-schema"):
    """A version given as a JSON Schema of objects; `text` is its JSON in one fixed form."""

    text: str

    @property
    def fingerprint(self) -> str:
        """Identify what the version says."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def tables(self) -> dict[str, tuple[Field, ...]]:
        """Return the columns that a document becomes."""
        root = json.loads(self.text)
        type_ = _Columns(root).column(root, ())[0]
        return {"": type_.fields if isinstance(type_, Struct) else (Field(1, "value", type_),)}


def parse_json_schema(text: str, source: str = "the schema") -> JsonSchemaVersion:
    """Read a JSON Schema."""
    try:
        schema = json.loads(text)
        check_json_depth(schema, source)
        fixed = json.dumps(schema, sort_keys=True)
    except json.JSONDecodeError as error:
        raise InvalidSchemaError(
            f"{source} is not JSON: {error.msg}", text=text, position=error.pos
        ) from None
    except RecursionError:
        raise InvalidSchemaError(f"{source} is nested too deep") from None
    if not isinstance(schema, dict):
        raise InvalidSchemaError(f"{source} is not a JSON Schema: expected an object")
    version = JsonSchemaVersion(fixed)
    version.tables()  # what cannot be read is refused now
    return version


def compare_json_schema(old: JsonSchemaVersion, new: JsonSchemaVersion) -> tuple[Difference, ...]:
    """Name every difference: those of documents by keyword, those of columns by name."""
    before, after = json.loads(old.text), json.loads(new.text)
    wire = tuple(_Inclusion(before, after).compare(before, after, ()))
    [columns], [others] = old.tables().values(), new.tables().values()
    return (*wire, *compare_columns(columns, others))


def _resolve(schema: Any, root: Any) -> Any:  # noqa: ANN401 -- JSON
    """Follow references inside the document; True and False are schemas too."""
    for _ in range(_MAX_DEPTH):
        if schema is True:
            return {}
        if not isinstance(schema, dict) or "$ref" not in schema:
            return _check_keywords(schema)
        target = schema["$ref"]
        if not isinstance(target, str) or not target.startswith("#"):
            raise InvalidSchemaError(
                f"reference {target!r} leads out of the document: bundle the schema first"
            )
        found = root
        for step in target[1:].strip("/").split("/") if target != "#" else ():
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or name not in found:
                raise InvalidSchemaError(f"reference {target!r} leads nowhere")
            found = found[name]
        schema = found
    raise InvalidSchemaError("references lead to one another forever")


def _check_keywords(schema: Any) -> Any:  # noqa: ANN401 -- JSON
    """Return a schema whose keywords have values as they should, or raise."""
    if schema is False:
        return schema
    if not isinstance(schema, dict):
        raise InvalidSchemaError(f"{_short(schema)} is not a JSON Schema: expected an object, true or false")
    for keyword, (expected, fits) in _KEYWORDS.items():
        if keyword in schema and not fits(schema[keyword]):
            raise InvalidSchemaError(
                f"`{keyword}` of a JSON Schema is {_short(schema[keyword])}: expected {expected}"
            )
    return schema


def _short(value: Any) -> str:  # noqa: ANN401 -- JSON
    text = json.dumps(value)
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}…"


def _is_type(value: object) -> bool:
    given = value if isinstance(value, list) else [value]
    return bool(given) and all(isinstance(it, str) and it in _EVERY_TYPE for it in given)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(it, str) for it in value)


_SHORT: Final = 60
_KEYWORDS: Final[dict[str, tuple[str, Callable[[object], bool]]]] = {
    "type": ("one or more of " + ", ".join(sorted(_EVERY_TYPE)), _is_type),
    "properties": ("an object", lambda value: isinstance(value, dict)),
    "required": ("a list of names", _is_names),
    "format": ("a text", lambda value: isinstance(value, str)),
    **dict.fromkeys(("enum", "anyOf", "oneOf"), ("a list", lambda value: isinstance(value, list))),
    **dict.fromkeys((*_LOWER, *_UPPER), ("a number", _is_number)),
}


def _types(schema: dict[str, Any]) -> frozenset[str]:
    given = schema.get("type")
    if given is None:
        return _EVERY_TYPE
    found = frozenset([given] if isinstance(given, str) else given)
    return found | {"integer"} if "number" in found else found


class _Inclusion:
    """One walk over two schemas: is every document of the old one a document of the new one?"""

    def __init__(self, old: Any, new: Any) -> None:  # noqa: ANN401 -- JSON
        self.old = old
        self.new = new
        self.seen: set[tuple[str, str]] = set()

    def compare(self, old: Any, new: Any, path: tuple[str, ...]) -> Iterator[Difference]:  # noqa: ANN401 -- JSON
        where = ".".join(path) or "(document)"
        old, new = _resolve(old, self.old), _resolve(new, self.new)
        key = json.dumps(old, sort_keys=True), json.dumps(new, sort_keys=True)
        if key in self.seen or old is False or (new == {}):
            return
        self.seen.add(key)
        if new is False:
            yield Difference(where, "forbidden", wire=unsafe("old documents may have it"))
            return
        yield from self.values(old, new, where)
        yield from self.bounds(old, new, where)
        yield from self.objects(old, new, path)
        if "items" in new and "array" in _types(old):
            yield from self.compare(old.get("items", True), new["items"], (*path, "element"))
        for keyword in sorted((old.keys() | new.keys()) - _COMPARED - _ANNOTATIONS):
            if keyword in new and old.get(keyword) != new[keyword]:
                why = f"instar cannot decide whether {keyword!r} still takes every old document"
                yield Difference(where, f"{keyword} changed", wire=conditional(why))
            elif keyword not in new:
                yield Difference(
                    where, f"{keyword} removed", wire=safe("fewer conditions take more documents")
                )

    def values(self, old: dict[str, Any], new: dict[str, Any], where: str) -> Iterator[Difference]:
        lost = _types(old) - _types(new)
        if lost:
            what = f"type changed: {_text(old)} → {_text(new)}"
            yield Difference(where, what, wire=unsafe(f"old documents may hold {', '.join(sorted(lost))}"))
        elif _types(old) != _types(new):
            what = f"type changed: {_text(old)} → {_text(new)}"
            yield Difference(where, what, wire=safe("the new types take every old value"))
        before, after = _listed(old), _listed(new)
        if after is None:
            return
        if before is None:
            why = "old documents may hold values that are not listed"
            yield Difference(where, "values listed", wire=unsafe(why))
            return
        for value in before:
            if value not in after:
                yield Difference(where, f"value deleted: {value}", wire=unsafe("old documents may hold it"))
        gone = [value for value in before if value not in after]
        for value in after:
            if value not in before:
                wire, taken = safe("old documents do not hold it"), safe("a column of names takes any name")
                meaning = may_go_on(gone, value)
                yield Difference(where, f"value added: {value}", wire=wire, query=taken, semantic=meaning)

    def bounds(self, old: dict[str, Any], new: dict[str, Any], where: str) -> Iterator[Difference]:
        for keyword in (*_LOWER, *_UPPER):
            before, after = old.get(keyword), new.get(keyword)
            if before == after or after is None:
                continue
            wider = before is not None and (after <= before if keyword in _LOWER else after >= before)
            what = f"{keyword} changed: {'none' if before is None else before} → {after}"
            ruling = (
                safe("the new bound is wider")
                if wider
                else unsafe("old documents may be beyond the new bound")
            )
            yield Difference(where, what, wire=ruling)

    def objects(
        self, old: dict[str, Any], new: dict[str, Any], path: tuple[str, ...]
    ) -> Iterator[Difference]:
        if "object" not in _types(old):
            return
        for name in sorted({*new.get("required", ())} - {*old.get("required", ())}):
            why = "old documents may lack it"
            yield Difference(".".join((*path, name)), "made required", wire=unsafe(why))
        before, after = old.get("properties", {}), new.get("properties", {})
        rest, others = old.get("additionalProperties", True), new.get("additionalProperties", True)
        for name in sorted(before.keys() | after.keys()):
            where = ".".join((*path, name))
            if name in before and name in after:
                yield from self.compare(before[name], after[name], (*path, name))
            elif name in after and rest is False:
                yield Difference(where, "property added", wire=safe("old documents cannot have it"))
            elif name in after:
                inner = [*self.compare(rest, after[name], (*path, name))]
                why = "old documents may have it, with any value: additionalProperties is not false"
                doubt = any(it.wire is not None and it.wire.level.value != "safe" for it in inner)
                ruling = conditional(why) if doubt else safe("it takes whatever old documents have there")
                yield Difference(where, "property added", wire=ruling)
            elif others is False:
                why = "old documents have it, and new ones may not"
                yield Difference(where, "property deleted", wire=unsafe(why))
            else:
                yield Difference(where, "property deleted", wire=safe("documents may still have it"))
                yield from self.compare(before[name], others, (*path, name))
        if rest is not False:
            yield from self.compare(rest, others, (*path, "value"))


def _listed(schema: dict[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    return schema.get("enum")


def _text(schema: dict[str, Any]) -> str:
    given = schema.get("type", "any")
    return given if isinstance(given, str) else " or ".join(given)


class _Columns:
    """What documents of a schema become."""

    def __init__(self, root: Any) -> None:  # noqa: ANN401 -- JSON
        self.root = root
        self.count = ColumnCount()

    def column(self, schema: Any, above: tuple[str, ...]) -> tuple[Type, bool]:  # noqa: ANN401 -- JSON
        """Return the type of a column, and whether it can be null; what has no one type is JSON text."""
        schema = _resolve(schema, self.root)
        key = json.dumps(schema, sort_keys=True)
        text = Primitive("string")
        if not isinstance(schema, dict) or key in above or len(above) > _MAX_DEPTH:
            return text, True
        above = (*above, key)
        for several in ("anyOf", "oneOf"):
            if several in schema and "type" not in schema:
                branches = [_resolve(it, self.root) for it in schema[several]]
                rest = [it for it in branches if not (isinstance(it, dict) and it.get("type") == "null")]
                return (self.column(rest[0], above)[0] if len(rest) == 1 else text), True
        types = _types(schema) - {"null"}
        nullable = "null" in _types(schema)
        if types == {"number", "integer"}:
            return Primitive("double"), nullable
        if len(types) != 1:
            return text, True
        [kind] = types
        if kind == "array":
            with self.count.inside(0):
                return List(*self.column(schema.get("items", True), above)), nullable
        if kind == "object":
            return self.object(schema, above), nullable
        if kind == "string":
            return Primitive(_FORMATS.get(schema.get("format", ""), "string")), nullable
        return Primitive(_COLUMNS[kind]), nullable

    def object(self, schema: dict[str, Any], above: tuple[str, ...]) -> Type:
        properties = schema.get("properties", {})
        required = {*schema.get("required", ())}
        with self.count.inside(len(properties)):
            if not properties:
                rest = schema.get("additionalProperties", True)
                return (
                    Map(Primitive("string"), *self.column(rest, above))
                    if isinstance(rest, dict)
                    else Primitive("string")
                )
            members = []
            for number, (name, inner) in enumerate(properties.items(), 1):
                type_, nullable = self.column(inner, above)
                members.append(Field(number, name, type_, nullable or name not in required))
        return Struct(tuple(members))

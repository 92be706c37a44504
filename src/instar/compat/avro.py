"""Avro: whether data written under one schema is resolved under another, and the columns that records become.

The rules are Avro's own for resolving a writer's schema against a reader's. Where the specification lets a
value change silently, such as the scale of a decimal, the answer is not *safe*.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

from instar.compat.columns import RENAMED, compare_columns, goes_on, may_go_on
from instar.compat.judgement import Difference, Ruling, conditional, safe, unsafe
from instar.compat.size import ColumnCount, check_json_depth
from instar.errors import InvalidSchemaError, UsageError
from instar.schema import Decimal, Field, List, Map, Primitive, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["AvroVersion", "compare_avro", "parse_avro"]

_PRIMITIVES: Final = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
    "fixed": "binary",
    "enum": "string",
}
_LOGICAL: Final = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
}
_PROMOTED: Final = {
    ("int", "long"): safe("Avro promotes int to long"),
    ("int", "double"): safe("Avro promotes int to double"),
    ("int", "float"): conditional("Avro promotes int to float, and numbers beyond 2^24 are rounded"),
    ("long", "float"): conditional("Avro promotes long to float, and numbers beyond 2^24 are rounded"),
    ("long", "double"): conditional("Avro promotes long to double, and numbers beyond 2^53 are rounded"),
    ("float", "double"): safe("Avro promotes float to double"),
    ("string", "bytes"): safe("Avro reads the bytes of a string"),
    ("bytes", "string"): conditional(
        "only bytes that are UTF-8 can be read as a string; a record with others fails"
    ),
}
_MOST_TRIED: Final = 20_000
_MEANING: Final = ("logicalType", "precision", "scale")


class AvroVersion(msgspec.Struct, frozen=True, tag="avro"):
    """A version given as an Avro schema; `text` is its JSON in one fixed form."""

    text: str

    @property
    def fingerprint(self) -> str:
        """Identify what the version says."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def tables(self) -> dict[str, tuple[Field, ...]]:
        """Return the columns of the record."""
        names: dict[str, Any] = {}
        schema = json.loads(self.text)
        _collect(schema, names)
        return {"": _Columns(names).members(schema, ())}


def parse_avro(text: str, source: str = "the schema") -> AvroVersion:
    """Read an Avro schema, which must be a record."""
    try:
        from fastavro.schema import SchemaParseException, UnknownType, parse_schema  # noqa: PLC0415 -- an extra
    except ModuleNotFoundError:
        raise UsageError("Avro needs a library of its own: install instar[stream]") from None

    def fail(why: object) -> NoReturn:
        raise InvalidSchemaError(f"{source} is not an Avro schema of a record: {why}") from None

    try:
        schema = json.loads(text)
        check_json_depth(schema, source)
        parsed = parse_schema(schema)
    except json.JSONDecodeError as error:
        raise InvalidSchemaError(
            f"{source} is not JSON: {error.msg}", text=text, position=error.pos
        ) from None
    except UnknownType as error:
        fail(f"it does not define `{error.name}`")
    except RecursionError:
        fail("it is nested too deep")
    except (SchemaParseException, KeyError, TypeError, ValueError, AttributeError) as error:
        fail(error)
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        fail("the outermost type is another")
    kept = {key: value for key, value in parsed.items() if not key.startswith("__")}
    version = AvroVersion(json.dumps(_undocumented(kept), sort_keys=True))
    version.tables()  # what cannot be columns is refused now
    return version


def _undocumented(value: Any) -> Any:  # noqa: ANN401 -- JSON
    if isinstance(value, dict):
        return {
            key: _undocumented(inner) if key != "default" else inner
            for key, inner in value.items()
            if key != "doc"
        }
    return [_undocumented(inner) for inner in value] if isinstance(value, list) else value


def compare_avro(old: AvroVersion, new: AvroVersion) -> tuple[Difference, ...]:
    """Name every difference: those of the encoding by resolution, those of columns by name."""
    if old == new:
        return ()
    writer, reader = json.loads(old.text), json.loads(new.text)
    wire = tuple(_Resolution(writer, reader).resolve(writer, reader, ""))
    [before], [after] = old.tables().values(), new.tables().values()
    return (*wire, *compare_columns(before, after))


def _collect(schema: Any, names: dict[str, Any]) -> None:  # noqa: ANN401 -- JSON
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, names)
    elif isinstance(schema, dict):
        if schema["type"] in {"record", "enum", "fixed"} and schema["name"] not in names:
            names[schema["name"]] = schema
        for field in schema.get("fields", ()):
            _collect(field["type"], names)
        for inner in ("items", "values"):
            if inner in schema:
                _collect(schema[inner], names)
        if isinstance(schema["type"], dict | list):
            _collect(schema["type"], names)


def _kind(schema: Any) -> str:  # noqa: ANN401 -- JSON
    if isinstance(schema, list):
        return "union"
    if isinstance(schema, dict):
        return _kind(schema["type"])
    return str(schema)


class _Resolution:
    """One walk over a writer's and a reader's schema."""

    def __init__(self, writer: Any, reader: Any) -> None:  # noqa: ANN401 -- JSON
        self.writers: dict[str, Any] = {}
        self.readers: dict[str, Any] = {}
        _collect(writer, self.writers)
        _collect(reader, self.readers)
        self.seen: set[tuple[str, str]] = set()
        self.tried = [0]

    def resolve(self, old: Any, new: Any, path: str) -> Iterator[Difference]:  # noqa: ANN401 -- JSON; by kind
        old = self.writers.get(old, old) if isinstance(old, str) else old
        new = self.readers.get(new, new) if isinstance(new, str) else new
        before, after = _kind(old), _kind(new)
        self.tried[0] += 1
        if self.tried[0] > _MOST_TRIED:
            why = "unions inside unions have more combinations than can be tried"
            yield Difference(path, "not compared", wire=conditional(why))
        elif before == "union" or after == "union":
            yield from self.union(old, new, path)
        elif before != after:
            ruling = _PROMOTED.get((before, after)) or unsafe(f"Avro does not resolve {before} to {after}")
            yield Difference(path, f"encoding changed: {before} → {after}", wire=ruling)
        elif before == "record":
            yield from self.record(old, new, path)
        elif before == "enum":
            yield from self.enum(old, new, path)
        elif before == "fixed" and (old["size"], _short(old)) != (new["size"], _short(new)):
            what = f"fixed changed: {old['name']}({old['size']}) → {new['name']}({new['size']})"
            yield Difference(path, what, wire=unsafe("Avro resolves fixed only with the same name and size"))
        elif before == "array":
            yield from self.resolve(old["items"], new["items"], f"{path}.element".lstrip("."))
        elif before == "map":
            yield from self.resolve(old["values"], new["values"], f"{path}.value".lstrip("."))
        meanings = [
            {key: it.get(key) for key in _MEANING} if isinstance(it, dict) else {} for it in (old, new)
        ]
        if before in _PRIMITIVES and any(meanings[0].get(key) != meanings[1].get(key) for key in _MEANING):
            texts = [str(it.get("logicalType") or "plain") for it in meanings]
            why = "Avro does not convert between logical types: the same number would mean something else"
            yield Difference(path, f"logical type changed: {texts[0]} → {texts[1]}", wire=unsafe(why))

    def union(self, old: Any, new: Any, path: str) -> Iterator[Difference]:  # noqa: ANN401 -- JSON
        readers = new if isinstance(new, list) else [new]
        for branch in old if isinstance(old, list) else [old]:
            tries = [[*_Resolution(None, None).with_names(self).resolve(branch, it, path)] for it in readers]
            best = min(tries, key=_worst)
            # Libraries differ: some take the first branch that may fit, others the one that fits exactly.
            first = next((found for found in tries if _worst(found) < _UNSAFE), best)
            best = first if _worst(first) > _worst(best) else best
            if _worst(best) == _UNSAFE and len(readers) > 1:
                name = branch if isinstance(branch, str) else branch.get("name", branch["type"])
                why = f"no branch of the new union takes {name}"
                best = [Difference(path, f"branch lost: {name}", wire=unsafe(why))]
            yield from best

    def with_names(self, other: _Resolution) -> _Resolution:
        self.writers, self.readers, self.seen = other.writers, other.readers, set(other.seen)
        self.tried = other.tried
        return self

    def record(self, old: Any, new: Any, path: str) -> Iterator[Difference]:  # noqa: ANN401 -- JSON
        if (old["name"], new["name"]) in self.seen:
            return
        self.seen.add((old["name"], new["name"]))
        if _short(old) != _short(new) and not {old["name"], _short(old)} & {*new.get("aliases", ())}:
            why = "Avro resolves records only under the same name or an alias"
            yield Difference(
                path or new["name"], f"record renamed: {old['name']} → {new['name']}", wire=unsafe(why)
            )
        writers = {field["name"]: field for field in old["fields"]}
        used = set()
        for field in new["fields"]:
            where = f"{path}.{field['name']}".lstrip(".")
            name = next((it for it in (field["name"], *field.get("aliases", ())) if it in writers), None)
            if name is None and "default" not in field:
                why = "old records have no value for it, and it has no default"
                yield Difference(where, "added without a default", wire=unsafe(why))
            elif name is None:
                yield Difference(where, "added with a default", wire=safe("old records read as its default"))
            else:
                used.add(name)
                if name != field["name"]:
                    meaning = goes_on(name, field["name"])
                    alias = safe("the alias finds the old values")

                    what = f"renamed: {name} → {field['name']}"
                    yield Difference(where, what, wire=alias, query=RENAMED, semantic=meaning)
                yield from self.resolve(writers[name]["type"], field["type"], where)
        for name in writers.keys() - used:
            yield Difference(
                f"{path}.{name}".lstrip("."),
                "no longer read",
                wire=safe("a reader skips what it does not know"),
            )

    def enum(self, old: Any, new: Any, path: str) -> Iterator[Difference]:  # noqa: ANN401 -- JSON
        if _short(old) != _short(new) and not {old["name"], _short(old)} & {*new.get("aliases", ())}:
            why = "Avro resolves enums only under the same name or an alias"
            yield Difference(path, f"enum renamed: {old['name']} → {new['name']}", wire=unsafe(why))
        for symbol in old["symbols"]:
            if symbol not in new["symbols"]:
                what = f"symbol deleted: {symbol}"
                if "default" in new:
                    yield Difference(
                        path, what, wire=conditional(f"old records with it read as {new['default']}")
                    )
                else:
                    yield Difference(
                        path, what, wire=unsafe("old records with it fail: the enum has no default")
                    )
        lost = [symbol for symbol in old["symbols"] if symbol not in new["symbols"]]
        for symbol in new["symbols"]:
            if symbol not in old["symbols"]:
                wire, query = safe("old records do not hold it"), safe("a column of names takes any name")
                meaning = may_go_on(lost, symbol)
                yield Difference(path, f"symbol added: {symbol}", wire=wire, query=query, semantic=meaning)


_UNSAFE: Final = 2


def _worst(found: list[Difference]) -> int:
    return max((_rank(it.wire) for it in found), default=0)


def _rank(ruling: Ruling | None) -> int:
    return 0 if ruling is None else ["safe", "conditional", "unsafe"].index(ruling.level.value)


def _short(schema: Any) -> str:  # noqa: ANN401 -- JSON
    return str(schema["name"]).rpartition(".")[2]


class _Columns:
    """What records become, given all types that have names."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.count = ColumnCount()

    def members(self, record: Any, above: tuple[str, ...]) -> tuple[Field, ...]:  # noqa: ANN401 -- JSON
        above = (*above, record["name"])
        with self.count.inside(len(record["fields"])):
            fields = [(field["name"], *self.column(field["type"], above)) for field in record["fields"]]
        if not fields:
            return (Field(0, "_present", Primitive("boolean")),)
        return tuple(
            Field(number, name, type_, nullable) for number, (name, type_, nullable) in enumerate(fields, 1)
        )

    def column(self, schema: Any, above: tuple[str, ...]) -> tuple[Type, bool]:  # noqa: ANN401 -- JSON
        """Return the type of a column, and whether it can be null."""
        schema = self.names.get(schema, schema) if isinstance(schema, str) else schema
        if isinstance(schema, list):
            if not schema:
                raise InvalidSchemaError("a union without any branch holds nothing: give it a type")
            branches = [it for it in schema if _kind(it) != "null"]
            return self.union(branches, above), len(branches) < len(schema)
        kind = _kind(schema)
        logical = schema.get("logicalType") if isinstance(schema, dict) else None
        if logical == "decimal":
            return _decimal(schema), False
        if isinstance(logical, str) and logical in _LOGICAL:
            return Primitive(_LOGICAL[logical]), False
        match kind:
            case "record":
                # A record inside itself would have no end: it is stored as JSON text.
                recursive = schema["name"] in above
                return (Primitive("string") if recursive else Struct(self.members(schema, above))), False
            case "array":
                with self.count.inside(0):
                    return List(*self.column(schema["items"], above)), False
            case "map":
                with self.count.inside(0):
                    return Map(Primitive("string"), *self.column(schema["values"], above)), False
            case "null":
                return Primitive("string"), True
        if kind not in _PRIMITIVES:
            raise InvalidSchemaError(f"`{kind}` is not a type of Avro that a column can have")
        return Primitive(_PRIMITIVES[kind]), False

    def union(self, branches: list[Any], above: tuple[str, ...]) -> Type:
        kinds = {_kind(it) for it in branches}
        if len(branches) == 1:
            return self.column(branches[0], above)[0]
        if kinds == {"int", "long"}:
            return Primitive("bigint")
        if kinds == {"float", "double"}:
            return Primitive("double")
        if not branches:
            return Primitive("string")
        with self.count.inside(len(branches)):
            members = [self.column(it, above)[0] for it in branches]
        return Struct(tuple(Field(at, f"member{at - 1}", type_) for at, type_ in enumerate(members, 1)))


def _decimal(schema: Any) -> Type:  # noqa: ANN401 -- JSON
    """Return a decimal, or the bytes that it is in if its digits make no sense: readers ignore it then."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    sizes = isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision
    return Decimal(precision, scale) if sizes and precision else Primitive("binary")

"""The kinds of change as Avro, JSON Schema and DDL have them: old and new, answers, and old values.

A record and an object have the one field `a`, unless a row says more; a table has the columns given.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

__all__ = ["AVRO", "DDL", "JSON", "Change", "avro_text", "json_text"]

S, C, U = "safe", "conditional", "unsafe"
JSON_VALUE = Any  # what JSON can say


class Change(NamedTuple):
    """One kind of change. `values` are of old records: all are read the same if and only if it is safe."""

    name: str
    old: JSON_VALUE
    new: JSON_VALUE
    wire: str
    query: str
    semantic: str
    values: tuple[Any, ...] = ()


def _enum(*symbols: str, **more: str) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def _record(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "P",
        "fields": [{"name": name, "type": type_} for name, type_ in fields],
    }


def _logical(kind: str, logical: str, **more: int) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical, **more}


A_INT = {"name": "a", "type": "int"}
MONEY = _logical("bytes", "decimal", precision=9, scale=2)
FINER = _logical("bytes", "decimal", precision=9, scale=3)

AVRO = [
    Change(
        "add, with a default", [A_INT], [A_INT, {"name": "b", "type": "int", "default": 0}], S, U, S, (1,)
    ),
    Change(
        "add, nullable",
        [A_INT],
        [A_INT, {"name": "b", "type": ["null", "int"], "default": None}],
        S,
        S,
        S,
        (1,),
    ),
    Change("add, without a default", [A_INT], [A_INT, {"name": "b", "type": ["null", "int"]}], U, S, S, (1,)),
    Change("delete", [A_INT, {"name": "b", "type": "int"}], [A_INT], S, S, S),
    Change("rename", [A_INT], [{"name": "b", "type": "int"}], U, U, C, (1,)),
    Change("rename, with an alias", [A_INT], [{"name": "b", "type": "int", "aliases": ["a"]}], S, U, U),
    Change("int to long", "int", "long", S, S, S, (1, -(2**31))),
    Change("long to int", "long", "int", U, U, S, (2**40,)),
    Change("int to float", "int", "float", C, U, S),
    Change("int to double", "int", "double", S, S, S, (2**31 - 1,)),
    Change("long to double", "long", "double", C, U, S, (2**53 + 1,)),
    Change("float to double", "float", "double", S, S, S, (0.5,)),
    Change("boolean to int", "boolean", "int", U, U, S, (True,)),
    Change("string to bytes", "string", "bytes", S, C, S),
    Change("bytes to string", "bytes", "string", C, C, S, (b"\xff",)),
    Change("int to string", "int", "string", U, U, S, (1,)),
    Change("single to array", "int", {"type": "array", "items": "int"}, U, U, S, (1,)),
    Change("array to single", {"type": "array", "items": "int"}, "int", U, U, S, ([1],)),
    Change("made nullable", "int", ["null", "int"], S, S, S, (1,)),
    Change("made not null", ["null", "int"], "int", U, U, S, (None,)),
    Change("union: add a branch", ["null", "int"], ["null", "int", "string"], S, U, S, (1, None)),
    Change("union: delete a branch", ["null", "int", "string"], ["null", "int"], U, U, S, ("x",)),
    Change("enum: add a symbol", _enum("A", "B"), _enum("A", "B", "C"), S, S, S, ("A", "B")),
    Change("enum: delete a symbol", _enum("A", "B"), _enum("A"), U, S, S, ("B",)),
    Change(
        "enum: delete a symbol, with a default", _enum("A", "B"), _enum("A", default="A"), C, S, S, ("B",)
    ),
    Change("enum: rename a symbol", _enum("A", "B"), _enum("A", "C"), U, S, C, ("B",)),
    Change("enum: reorder symbols", _enum("A", "B"), _enum("B", "A"), S, S, S, ("A", "B")),
    Change("enum to string", _enum("A", "B"), "string", U, S, S, ("A",)),
    Change("enum to int", _enum("A", "B"), "int", U, U, S, ("A",)),
    Change("record to bytes", _record(("x", "int")), "bytes", U, U, S, ({"x": 1},)),
    Change(
        "map to array",
        {"type": "map", "values": "int"},
        {"type": "array", "items": _record(("key", "string"), ("value", "int"))},
        U,
        U,
        S,
        ({"k": 1},),
    ),
    Change(
        "logical type changed",
        _logical("long", "timestamp-millis"),
        _logical("long", "timestamp-micros"),
        U,
        S,
        S,
    ),
    Change("scale of a decimal changed", MONEY, FINER, U, U, S),
    Change(
        "size of a fixed changed",
        {"type": "fixed", "name": "F", "size": 2},
        {"type": "fixed", "name": "F", "size": 3},
        U,
        S,
        S,
        (b"ab",),
    ),
    Change(
        "a default changed",
        [{"name": "a", "type": "int", "default": 1}],
        [{"name": "a", "type": "int", "default": 2}],
        S,
        S,
        S,
        (7,),
    ),
    Change(
        "fields reordered",
        [A_INT, {"name": "b", "type": "int"}],
        [{"name": "b", "type": "int"}, A_INT],
        S,
        C,
        S,
    ),
    Change(
        "a member added inside, without a default",
        _record(("x", "int")),
        _record(("x", "int"), ("y", ["null", "int"])),
        U,
        S,
        S,
        ({"x": 1},),
    ),
    Change("a member deleted inside", _record(("x", "int"), ("y", "int")), _record(("x", "int")), S, S, S),
    Change("a member renamed inside", _record(("x", "int")), _record(("z", "int")), U, U, C, ({"x": 1},)),
    Change("same name, new type", "int", _record(("x", "int")), U, U, S, (1,)),
]


def avro_text(given: JSON_VALUE) -> str:
    """Return an Avro record: of some fields, or of one field `a` with a type."""
    fields = (
        given if isinstance(given, list) and given and "name" in given[0] else [{"name": "a", "type": given}]
    )
    return json.dumps({"type": "record", "name": "R", "fields": fields})


INTEGER = {"type": "integer"}
CLOSED = {"additionalProperties": False}

JSON = [
    Change("add, where others are forbidden", {**CLOSED}, {"b": INTEGER, **CLOSED}, S, S, S, ({"a": 1},)),
    Change("add, where others are allowed", {}, {"b": INTEGER}, C, S, S, ({"a": 1, "b": "x"},)),
    Change("delete, where others are allowed", {"b": INTEGER}, {}, S, S, S, ({"a": 1, "b": 2},)),
    Change("delete, where others are forbidden", {"b": INTEGER, **CLOSED}, {**CLOSED}, U, S, S, ({"b": 2},)),
    Change(
        "rename, where others are allowed", {"a": INTEGER}, {"a": None, "b": INTEGER}, C, S, C, ({"b": "x"},)
    ),
    Change("made required", {}, {"required": ["a"]}, U, U, S, ({},)),
    Change("no longer required", {"required": ["a"]}, {}, S, S, S, ({"a": 1},)),
    Change("integer to number", INTEGER, {"type": "number"}, S, U, S, (1, 2**60)),
    Change("number to integer", {"type": "number"}, INTEGER, U, U, S, (0.5,)),
    Change("integer to string", INTEGER, {"type": "string"}, U, U, S, (1,)),
    Change("boolean to integer", {"type": "boolean"}, INTEGER, U, U, S, (True,)),
    Change("made nullable", INTEGER, {"type": ["integer", "null"]}, S, S, S, (1,)),
    Change("no longer nullable", {"type": ["integer", "null"]}, INTEGER, U, S, S, (None,)),
    Change("one more type", INTEGER, {"type": ["integer", "string"]}, S, U, S, (1,)),
    Change("single to array", INTEGER, {"type": "array", "items": INTEGER}, U, U, S, (1,)),
    Change("array to single", {"type": "array", "items": INTEGER}, INTEGER, U, U, S, ([1],)),
    Change(
        "enum: add a value",
        {"enum": ["A"], "type": "string"},
        {"enum": ["A", "B"], "type": "string"},
        S,
        S,
        S,
        ("A",),
    ),
    Change(
        "enum: delete a value",
        {"enum": ["A", "B"], "type": "string"},
        {"enum": ["A"], "type": "string"},
        U,
        S,
        S,
        ("B",),
    ),
    Change(
        "enum: rename a value",
        {"enum": ["A", "B"], "type": "string"},
        {"enum": ["A", "C"], "type": "string"},
        U,
        S,
        C,
        ("B",),
    ),
    Change(
        "values listed for the first time",
        {"type": "string"},
        {"type": "string", "enum": ["A"]},
        U,
        S,
        S,
        ("B",),
    ),
    Change("a bound tightened", {**INTEGER, "maximum": 9}, {**INTEGER, "maximum": 5}, U, S, S, (7,)),
    Change("a bound widened", {**INTEGER, "maximum": 5}, {**INTEGER, "maximum": 9}, S, S, S, (5,)),
    Change(
        "a pattern changed",
        {"type": "string", "pattern": "a"},
        {"type": "string", "pattern": "b"},
        C,
        S,
        S,
        ("a",),
    ),
    Change("a text becomes a date", {"type": "string"}, {"type": "string", "format": "date"}, C, U, S),
    Change(
        "object to text",
        {"type": "object", "properties": {"x": INTEGER}},
        {"type": "string"},
        U,
        U,
        S,
        ({"x": 1},),
    ),
    Change("closed", {}, {**CLOSED}, U, S, S, ({"z": 1},)),
    Change(
        "elements changed",
        {"type": "array", "items": INTEGER},
        {"type": "array", "items": {"type": "string"}},
        U,
        U,
        S,
        ([1],),
    ),
    Change(
        "a member added inside, where others are allowed",
        {"type": "object", "properties": {"x": INTEGER}},
        {"type": "object", "properties": {"x": INTEGER, "y": INTEGER}},
        C,
        S,
        S,
        ({"x": 1, "y": "no"},),
    ),
    Change("same name, new type", INTEGER, {"type": "object", "properties": {"x": INTEGER}}, U, U, S, (1,)),
]


def json_text(given: dict[str, Any]) -> str:
    """Return a JSON Schema: of the property `a` with a schema, or with more keywords and properties."""
    if "type" in given or "enum" in given:
        return json.dumps({"type": "object", "properties": {"a": given}})
    keywords = {key: value for key, value in given.items() if key in {"additionalProperties", "required"}}
    own = {"a": INTEGER, **{key: value for key, value in given.items() if key not in keywords}}
    properties = {key: value for key, value in own.items() if value is not None}
    return json.dumps({"type": "object", "properties": properties, **keywords})


DDL = [
    Change("add, nullable", "a int", "a int, b string", "-", S, S),
    Change("add, not null", "a int", "a int, b string not null", "-", U, S),
    Change("delete", "a int, b string", "a int", "-", S, S),
    Change("rename", "a int", "b int", "-", S, C),
    Change("case of a name", "a int", "A int", "-", S, S),
    Change("int to bigint", "a int", "a bigint", "-", S, S),
    Change("bigint to int", "a bigint", "a int", "-", U, S),
    Change("int to double", "a int", "a double", "-", S, S),
    Change("float to double", "a float", "a double", "-", S, S),
    Change("double to float", "a double", "a float", "-", U, S),
    Change("boolean to int", "a boolean", "a int", "-", U, S),
    Change("int to string", "a int", "a string", "-", U, S),
    Change("string to binary", "a string", "a binary", "-", C, S),
    Change("binary to string", "a binary", "a string", "-", C, S),
    Change("decimal, more digits", "a decimal(9, 2)", "a decimal(12, 3)", "-", S, S),
    Change("decimal, fewer digits", "a decimal(9, 2)", "a decimal(9, 3)", "-", U, S),
    Change("date to timestamp", "a date", "a timestamp", "-", U, S),
    Change("timestamp without its zone", "a timestamp", "a timestamp_ntz", "-", U, S),
    Change("single to array", "a int", "a array<int>", "-", U, S),
    Change("array to single", "a array<int>", "a int", "-", U, S),
    Change("struct to binary", "a struct<x: int>", "a binary", "-", U, S),
    Change("map to array", "a map<string, int>", "a array<struct<key: string, value: int>>", "-", U, S),
    Change("array to map", "a array<struct<key: string, value: int>>", "a map<string, int>", "-", U, S),
    Change("map key", "a map<int, int>", "a map<bigint, int>", "-", U, S),
    Change("map value", "a map<int, int>", "a map<int, bigint>", "-", S, S),
    Change("made nullable", "a int not null", "a int", "-", S, S),
    Change("made not null", "a int", "a int not null", "-", U, S),
    Change("columns reordered", "a int, b int", "b int, a int", "-", C, S),
    Change("members reordered", "a struct<x: int, y: int>", "a struct<y: int, x: int>", "-", C, S),
    Change("a member added inside", "a struct<x: int>", "a struct<x: int, y: int>", "-", S, S),
    Change("a member deleted inside", "a struct<x: int, y: int>", "a struct<x: int>", "-", S, S),
    Change("a member renamed inside", "a struct<x: int>", "a struct<z: int>", "-", S, C),
    Change("same name, new type", "a int", "a struct<x: int>", "-", U, S),
]

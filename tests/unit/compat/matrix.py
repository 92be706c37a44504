"""The kinds of change that are known to go wrong somewhere, each as two bodies of a message `Event`.

For each: the answers about the wire, queries and meaning, and what Buf says under WIRE and WIRE_JSON.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["MATRIX", "Row", "proto_text"]

S, C, U = "safe", "conditional", "unsafe"


class Row(NamedTuple):
    """One kind of change and every answer to it; Buf's are whether it accepts."""

    name: str
    old: str
    new: str
    wire: str
    query: str
    semantic: str
    buf_wire: bool
    buf_json: bool
    syntax: str = "proto3"


COLOURS = "enum Colour { NONE = 0; RED = 1; BLUE = 2; }"
PAIR = "message Pair { string key = 1; int32 value = 2; }"
POINT = "message Point { int32 x = 1; int32 y = 2; }"

MATRIX = [
    Row("add a field", "int32 a = 1;", "int32 a = 1; string b = 2;", S, S, S, True, True),
    Row(
        "delete, reserved",
        "int32 a = 1; int32 b = 2;",
        'int32 a = 1; reserved 2; reserved "b";',
        S,
        S,
        S,
        True,
        True,
    ),
    Row("delete, unreserved", "int32 a = 1; int32 b = 2;", "int32 a = 1;", C, S, S, False, False),
    Row("rename", "int32 a = 1;", "int32 b = 1;", S, U, U, True, False),
    Row("renumber", "int32 a = 1;", "int32 a = 2;", U, S, S, False, False),
    Row("int32 to int64", "int32 a = 1;", "int64 a = 1;", S, S, S, True, False),
    Row("int64 to int32", "int64 a = 1;", "int32 a = 1;", C, U, S, True, False),
    Row("int32 to uint32", "int32 a = 1;", "uint32 a = 1;", C, S, S, True, True),
    Row("int32 to sint32", "int32 a = 1;", "sint32 a = 1;", U, S, S, False, False),
    Row("float to double", "float a = 1;", "double a = 1;", U, S, S, False, False),
    Row("bool to int32", "bool a = 1;", "int32 a = 1;", S, U, S, True, False),
    Row("int32 to bool", "int32 a = 1;", "bool a = 1;", C, U, S, True, False),
    Row("string to bytes", "string a = 1;", "bytes a = 1;", S, C, S, True, False),
    Row("bytes to string", "bytes a = 1;", "string a = 1;", C, C, S, False, False),
    Row("single to repeated", "int32 a = 1;", "repeated int32 a = 1;", S, U, S, False, False),
    Row("repeated to single", "repeated int32 a = 1;", "int32 a = 1;", U, U, S, False, False),
    Row("repeated to single, strings", "repeated string a = 1;", "string a = 1;", C, U, S, False, False),
    Row(
        "enum: add a value",
        COLOURS + "Colour a = 1;",
        "enum Colour { NONE = 0; RED = 1; BLUE = 2; GREEN = 3; } Colour a = 1;",
        S,
        S,
        S,
        True,
        True,
    ),
    Row(
        "enum: delete a value, reserved",
        COLOURS + "Colour a = 1;",
        'enum Colour { NONE = 0; RED = 1; reserved 2; reserved "BLUE"; } Colour a = 1;',
        S,
        S,
        S,
        True,
        True,
    ),
    Row(
        "enum: delete a value, unreserved",
        COLOURS + "Colour a = 1;",
        "enum Colour { NONE = 0; RED = 1; } Colour a = 1;",
        C,
        S,
        S,
        False,
        False,
    ),
    Row(
        "enum: rename a value",
        COLOURS + "Colour a = 1;",
        "enum Colour { NONE = 0; RED = 1; AZURE = 2; } Colour a = 1;",
        S,
        U,
        U,
        True,
        False,
    ),
    Row(
        "enum: renumber a value",
        COLOURS + "Colour a = 1;",
        "enum Colour { NONE = 0; RED = 1; BLUE = 3; } Colour a = 1;",
        U,
        C,
        S,
        False,
        False,
    ),
    Row("enum to int32", COLOURS + "Colour a = 1;", COLOURS + "int32 a = 1;", S, U, S, False, False),
    Row("message to bytes", POINT + "Point a = 1;", POINT + "bytes a = 1;", S, U, C, False, False),
    Row("message to string", POINT + "Point a = 1;", POINT + "string a = 1;", C, U, C, False, False),
    Row(
        "map to entries",
        PAIR + "map<string, int32> a = 1;",
        PAIR + "repeated Pair a = 1;",
        S,
        U,
        S,
        False,
        False,
    ),
    Row(
        "entries to map",
        PAIR + "repeated Pair a = 1;",
        PAIR + "map<string, int32> a = 1;",
        C,
        U,
        S,
        False,
        False,
    ),
    Row("map key", "map<int32, int32> a = 1;", "map<int64, int32> a = 1;", S, U, S, True, False),
    Row("rename a map", "map<string, int32> a = 1;", "map<string, int32> b = 1;", S, U, U, False, False),
    Row("one field to a new oneof", "int32 a = 1;", "oneof o { int32 a = 1; }", S, S, C, False, False),
    Row(
        "two fields to a oneof",
        "int32 a = 1; int32 b = 2;",
        "oneof o { int32 a = 1; int32 b = 2; }",
        U,
        S,
        C,
        False,
        False,
    ),
    Row(
        "a field to an existing oneof",
        "oneof o { int32 a = 1; } int32 b = 2;",
        "oneof o { int32 a = 1; int32 b = 2; }",
        U,
        S,
        C,
        False,
        False,
    ),
    Row("out of a oneof", "oneof o { int32 a = 1; }", "optional int32 a = 1;", S, S, S, False, False),
    Row("implicit to optional", "int32 a = 1;", "optional int32 a = 1;", S, S, C, True, True),
    Row("optional to implicit", "optional int32 a = 1;", "int32 a = 1;", S, S, C, True, True),
    Row(
        "default changed",
        "optional int32 a = 1 [default = 1];",
        "optional int32 a = 1 [default = 2];",
        U,
        S,
        C,
        False,
        False,
        "proto2",
    ),
    Row(
        "add a required field",
        "optional int32 a = 1;",
        "optional int32 a = 1; required int32 b = 2;",
        U,
        S,
        S,
        False,
        False,
        "proto2",
    ),
    Row("same number, new type", "int32 a = 1;", "string b = 1;", U, U, U, False, False),
    Row(
        "a reserved number taken",
        "reserved 2; int32 a = 1;",
        "int32 a = 1; string b = 2;",
        U,
        S,
        S,
        False,
        False,
    ),
    Row(
        "same name, new number and type",
        "int32 a = 1; int32 x = 9;",
        "reserved 1; string a = 2; int32 x = 9;",
        S,
        U,
        U,
        True,
        False,
    ),
    Row(
        "two numbers swapped", "int32 a = 1; int32 b = 2;", "int32 b = 1; int32 a = 2;", U, S, U, True, False
    ),
    Row(
        "declarations reordered",
        POINT + "Point a = 1; int32 b = 2;",
        POINT.replace("int32 x = 1; int32 y = 2;", "int32 y = 2; int32 x = 1;") + "int32 b = 2; Point a = 1;",
        S,
        S,
        S,
        True,
        True,
    ),
    Row(
        "a member added inside",
        POINT + "Point a = 1;",
        POINT.replace("}", "int32 z = 3; }") + "Point a = 1;",
        S,
        S,
        S,
        True,
        True,
    ),
    Row(
        "enum: another name comes first",
        "enum E { option allow_alias = true; X = 0; Y = 0; } E a = 1;",
        "enum E { option allow_alias = true; Y = 0; X = 0; } E a = 1;",
        S,
        U,
        U,
        True,
        True,
    ),
    Row(
        "enum: the second of two names deleted",
        "enum E { option allow_alias = true; X = 0; Y = 0; } E a = 1;",
        "enum E { X = 0; } E a = 1;",
        S,
        S,
        S,
        True,
        False,
    ),
    Row(
        "enum: the first of two names deleted",
        "enum E { option allow_alias = true; X = 0; Y = 0; } E a = 1;",
        "enum E { Y = 0; } E a = 1;",
        S,
        U,
        U,
        True,
        False,
    ),
    Row(
        "a number of extensions taken",
        "optional int32 a = 1; extensions 100 to 199;",
        "optional int32 a = 1; optional int32 b = 100;",
        C,
        S,
        S,
        True,
        True,
        "proto2",
    ),
    Row(
        "a member renamed inside",
        POINT + "repeated Point a = 1;",
        POINT.replace("int32 y", "int32 z") + "repeated Point a = 1;",
        S,
        U,
        U,
        True,
        False,
    ),
    Row(
        "a type of a member renamed",
        POINT + "Point a = 1;",
        POINT.replace("Point", "Spot") + "Spot a = 1;",
        S,
        S,
        S,
        False,
        False,
    ),
]


def proto_text(row: Row, body: str, package: str) -> str:
    """Return a file with one version of the message."""
    return f'syntax = "{row.syntax}";\npackage {package};\nmessage Event {{ {body} }}\n'

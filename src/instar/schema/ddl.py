"""Schemas as Spark DDL text: `user string not null, tags array<string>, addr struct<city: string>`.

The parser takes what Spark's does, and `not null` where Spark cannot say it: `array<int not null>` and
`map<string not null, int not null>`. Printing is in `text.py`.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final, NamedTuple, NoReturn

from instar.errors import InvalidSchemaError, UnsupportedTypeError
from instar.schema.primitives import PRIMITIVE_ROWS, PRIMITIVES
from instar.schema.schema import Schema
from instar.schema.types import (
    INTERVAL_DAY_TIME,
    INTERVAL_YEAR_MONTH,
    Decimal,
    Field,
    List,
    Map,
    Primitive,
    Struct,
    Type,
)
from instar.schema.wellformed import MAX_DEPTH, TOO_DEEP, find_problem

__all__ = ["UNSUPPORTED", "parse_schema_ddl", "parse_type_ddl"]

_SYNONYMS: Final = {synonym: row.name for row in PRIMITIVE_ROWS.values() for synonym in row.synonyms}

UNSUPPORTED: Final = {
    "char": "its padding is not kept; use string",
    "character": "its padding is not kept; use string",
    "varchar": "its length is not enforced; use string",
    "void": "a column of nulls has no type; choose the type it will have",
    "null": "a column of nulls has no type; choose the type it will have",
    "variant": "its values have no columns; use string, or name the members in a struct",
    "time": "Spark has no times of day by default; use `interval day to second`, or string",
    "uuid": "Spark has no such type; use string, or binary for its 16 bytes",
    "object": "it exists only inside a running Spark job",
    "geometry": "use binary (WKB)",
    "geography": "use binary (WKB)",
    "calendar interval": "months and days have no order; use `interval year to month` or `day to second`",
}
"""Spark types that a table does not hold, and what to do instead."""

_MEANT: Final = {
    "text": "string",
    "str": "string",
    "nvarchar": "string",
    "json": "string",
    "jsonb": "string",
    "bool": "boolean",
    "datetime": "timestamp",
    "timestamptz": "timestamp",
    "int8": "tinyint (or bigint, for PostgreSQL's int8)",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float32": "float",
    "float64": "double",
    "number": "decimal(p, s)",
    "bytes": "binary",
    "blob": "binary",
    "list": "array<…>",
    "dict": "map<…, …>",
}
"""What other systems call types, and what they are called here."""

_TOKEN = re.compile(
    r"(?P<space>\s+|--[^\n]*|/\*(?s:.*?)\*/)"
    r"|(?P<quoted>`(?:[^`]|``)*`)"
    r"|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<number>\d+(?![\w]))"
    r"|(?P<word>\w+)"
    r"|(?P<mark>[<>(),:])",
)

# What Spark takes for a name without backticks: not what its lexer takes for a number, such as 1e5 or 1L.
_BARE_NAME = re.compile(r"(?!\d+(?:[lsy]|(?:e\d+)?(?:f|d|bd)?)\Z)[a-z0-9_]+", re.IGNORECASE | re.ASCII)


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


class _Parser:
    """One pass of recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._tokenize()
        self.at = 0
        self.depth = 0
        self.positions: dict[int, int] = {}

    def _tokenize(self) -> list[_Token]:
        tokens = []
        position = 0
        while position < len(self.text):
            match = _TOKEN.match(self.text, position)
            if match is None:
                self.fail(f"unexpected character {self.text[position]!r}", position)
            kind = match.lastgroup or ""
            if kind != "space":
                tokens.append(_Token(kind, match.group(), position))
            position = match.end()
        tokens.append(_Token("end", "the end", len(self.text)))
        return tokens

    def fail(self, problem: str, position: int) -> NoReturn:
        raise InvalidSchemaError(problem, text=self.text, position=position)

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    def advance(self) -> _Token:
        token = self.token
        self.at += 1
        return token

    def accept(self, *words: str) -> bool:
        """Step over these words or marks if all of them come next."""
        ahead = self.tokens[self.at : self.at + len(words)]
        if [token.text.lower() for token in ahead if token.kind in {"word", "mark"}] != list(words):
            return False
        self.at += len(words)
        return True

    def expect(self, mark: str, where: str) -> None:
        if not self.accept(mark):
            self.fail(f"expected {mark!r} {where}, found {self.token.text!r}", self.token.position)

    def schema(self) -> Schema:
        if self.token.kind == "end":
            self.fail("a schema needs at least one column", 0)
        fields = self.fields(closing=None)
        if self.token.kind != "end":
            self.fail(f"expected ',' between columns, found {self.token.text!r}", self.token.position)
        problem = find_problem(fields)
        if problem is not None:
            self.fail(problem.message, self.positions[problem.field.id] if problem.field is not None else 0)
        return Schema(fields)

    def fields(self, closing: str | None) -> tuple[Field, ...]:
        """Read columns up to the end of the text, or up to a closing mark."""
        fields = [self.field()]
        while self.accept(","):
            if self.token.kind == "end" or self.token.text == closing:
                self.fail("expected a column after ','", self.token.position)
            fields.append(self.field())
        return tuple(fields)

    def field(self) -> Field:
        token = self.advance()
        if token.kind == "quoted":
            name = token.text[1:-1].replace("``", "`")
        elif token.kind in {"word", "number"}:
            name = token.text
            if not _BARE_NAME.fullmatch(name):
                self.fail(f"column name {name!r} needs backticks around it", token.position)
        else:
            self.fail(f"expected a column name, found {token.text!r}", token.position)
        field_id = len(self.positions) + 1
        self.positions[field_id] = token.position
        self.accept(":")
        type_ = self.type()
        nullable = not self.accept("not", "null")
        if self.token.kind == "word" and self.token.text.lower() in {"comment", "default", "generated"}:
            self.fail(
                f"a table does not keep {self.token.text.upper()} clauses; remove it", self.token.position
            )
        return Field(field_id, name, type_, nullable)

    def type(self) -> Type:
        self.depth += 1
        if self.depth > 2 * MAX_DEPTH:
            self.fail(TOO_DEEP, self.token.position)
        try:
            return self._type()
        finally:
            self.depth -= 1

    def _type(self) -> Type:
        token = self.advance()
        word = token.text.lower()
        if token.kind != "word":
            self.fail(f"expected a type, found {token.text!r}", token.position)
        if self.token.text.lower() == "collate":
            raise UnsupportedTypeError(
                f"{word} collate …", "strings compare by their bytes", text=self.text, position=token.position
            )
        match word:
            case "array":
                return self.list(token)
            case "map":
                return self.map(token)
            case "struct":
                return self.struct(token)
            case "decimal" | "dec" | "numeric":
                return self.decimal(token)
            case "interval":
                return self.interval(token)
            case _:
                return self.primitive(token)

    def primitive(self, token: _Token) -> Primitive:
        word = token.text.lower()
        name = _SYNONYMS.get(word, word)
        if word in UNSUPPORTED:
            raise UnsupportedTypeError(word, UNSUPPORTED[word], text=self.text, position=token.position)
        if name not in PRIMITIVES:
            meant = _MEANT.get(word) or next(
                iter(get_close_matches(word, {*_SYNONYMS, *PRIMITIVES}, 1)), None
            )
            remedy = "" if meant is None else f": write {_SYNONYMS.get(meant, meant)}"
            self.fail(f"unknown type {token.text!r}{remedy}", token.position)
        return Primitive(name)

    def list(self, token: _Token) -> List:
        self.expect("<", f"after {token.text}")
        element = self.type()
        nullable = not self.accept("not", "null")
        self.expect(">", "to close the array")
        return List(element, nullable)

    def map(self, token: _Token) -> Map:
        self.expect("<", f"after {token.text}")
        key = self.type()
        self.accept("not", "null")
        self.expect(",", "between the key and the value of a map")
        value = self.type()
        nullable = not self.accept("not", "null")
        self.expect(">", "to close the map")
        return Map(key, value, nullable)

    def struct(self, token: _Token) -> Struct:
        self.expect("<", f"after {token.text}")
        if self.token.text == ">":
            self.fail("a struct needs at least one member", token.position)
        members = self.fields(closing=">")
        self.expect(">", "to close the struct")
        return Struct(members)

    def decimal(self, token: _Token) -> Decimal:
        precision, scale = 10, 0
        if self.accept("("):
            precision = self.number("the precision of a decimal")
            scale = self.number("the scale of a decimal") if self.accept(",") else 0
            self.expect(")", "to close the decimal")
        try:
            return Decimal(precision, scale)
        except ValueError as error:
            self.fail(str(error), token.position)

    def number(self, what: str) -> int:
        token = self.advance()
        if token.kind != "number":
            self.fail(f"expected {what}, found {token.text!r}", token.position)
        return int(token.text[:9])

    def interval(self, token: _Token) -> Primitive:
        units = {unit for name in INTERVAL_DAY_TIME | INTERVAL_YEAR_MONTH for unit in name.split()[1::2]}
        if self.token.kind != "word" or self.token.text.lower() not in units:
            raise UnsupportedTypeError(
                "interval", UNSUPPORTED["calendar interval"], text=self.text, position=token.position
            )
        name = f"interval {self.advance().text.lower()}"
        if self.accept("to"):
            name += f" to {self.advance().text.lower()}"
        if name not in PRIMITIVES:
            self.fail(f"{name!r} is not an interval type", token.position)
        return Primitive(name)


def parse_schema_ddl(text: str) -> Schema:
    """Read columns; their ids count up from 1, parents before children."""
    return _Parser(text).schema()


def parse_type_ddl(text: str) -> tuple[Type, bool]:
    """Read one type, optionally `not null`; answer with the type and whether it may be null."""
    parser = _Parser(text)
    type_ = parser.type()
    nullable = not parser.accept("not", "null")
    if parser.token.kind != "end":
        parser.fail(f"expected a single type, found {parser.token.text!r} after it", parser.token.position)
    return type_, nullable

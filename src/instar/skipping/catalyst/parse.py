"""From Catalyst's JSON to an expression: columns, literals, casts, logic and branches.

Functions are found in the registry by the names of their classes; here are only those whose nodes have more
to them than arguments. What is not known becomes `Anything`, and only that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from instar.schema import Field, Struct, Type, field_name
from instar.skipping.catalyst.literals import held_literal, read_literal
from instar.skipping.catalyst.nodes import Node, find_type, read_nodes
from instar.skipping.coercion import DATE, DAY_TIME, LONG, STRING, TIMESTAMP, YEAR_MONTH, cast
from instar.skipping.expression import (
    BOOLEAN,
    DEEPEST,
    TOO_DEEP,
    Anything,
    Call,
    Column,
    Expression,
    Literal,
    Now,
)
from instar.skipping.functions import Function, Mode
from instar.skipping.kernels.compare import NEGATED
from instar.skipping.registry import BY_CLASS, Row, load_row
from instar.skipping.representation import comparable, limits, name_of
from instar.skipping.zones import DAY, HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["parse_catalyst"]

_WRAPPERS: Final = frozenset(
    [
        *("KnownNotNull", "KnownNullable", "KnownFloatingPointNormalized", "NormalizeNaNAndZero"),
        *("PromotePrecision", "UnaryPositive", "Alias", "CommonExpressionDef"),
    ]
)
"""Nodes that have the value of their child."""
_TESTS: Final = frozenset([Function.IN, Function.EQUAL, Function.EQUAL_NULL_SAFE, *NEGATED])
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_DAYS: Final = {"DAY": DAY, "WEEK": 7 * DAY}
_TIMES: Final = {"HOUR": HOUR, "MINUTE": MINUTE, "SECOND": SECOND}


def parse_catalyst(
    text: str,
    fields: Mapping[str, Field],
    zone: str,
    lost: Mapping[int, Mapping[str, Any]] | None = None,
) -> Expression:
    """Read the JSON that `toJSON` gives for an expression.

    `fields` are the table's fields by the names that attributes have; members of structs are found by
    their own names, or as `f<id>`. `zone` is the session's time zone, in which timestamps are printed.
    `lost` has what Spark does not print, by the position of the node: `evalMode` ("ANSI", "LEGACY" or
    "TRY"), `resultType` of arithmetic (if it is not the expected one, the node is not understood),
    `escapeChar`, `hset` (members as Spark holds them: dates are days, timestamps microseconds) or `ranges`
    (pairs of integers, one of which every member is within), and `value` of binary literals (bytes).
    """
    try:
        node = read_nodes(text, lost)
    except (ValueError, KeyError, TypeError, IndexError):
        return Anything("an expression that cannot be read", BOOLEAN)
    return CatalystReader(fields, zone).read(node)


class CatalystReader:
    """Reads nodes over the fields of one table in one session."""

    def __init__(self, fields: Mapping[str, Field], zone: str) -> None:
        self.fields = {name.lower(): field for name, field in fields.items()}
        self.zone = zone
        self.shared: list[Expression] = []
        """Expressions that others refer to; only the innermost is known for sure."""
        self._depth = 0

    def read(self, node: Node) -> Expression:
        """Read one node and everything below it, but not deeper than an expression may be."""
        if self._depth >= DEEPEST:
            return TOO_DEEP
        self._depth += 1
        try:
            return self._read(node)
        finally:
            self._depth -= 1

    def _read(self, node: Node) -> Expression:
        if "replacement" in node.fields and len(node.children) == 1:
            return self.read(node.children[0])
        if node.name in _WRAPPERS and len(node.children) == 1:
            return self.read(node.children[0])
        special = _SPECIAL.get(node.name)
        if special is not None:
            return special(self, node) or _unknown(node)
        if node.name in BY_CLASS:
            return self._call(node, *BY_CLASS[node.name])
        return _unknown(node)

    def _call(self, node: Node, row: Row, fields: tuple[str, ...]) -> Expression:
        """Read a call of a function of the registry."""
        nodes = [node.child(field) for field in fields] if fields else list(node.children)
        args = tuple(self.read(child) for child in nodes if child is not None)
        call = row.bind(args, _mode(node), node.zone) if len(args) == len(nodes) else None
        given = node.fields.get("resultType")
        if call is not None and (given is None or find_type(given) == call.type):
            return call
        if row.name not in _TESTS:
            return _unknown(node)
        # What is asked is shown, though nothing follows from it.
        return Anything(row.show([str(arg) for arg in args], Mode.UNKNOWN), BOOLEAN)

    def read_all(self, nodes: Sequence[Node]) -> tuple[Expression, ...]:
        """Read several nodes."""
        return tuple(self.read(node) for node in nodes)


def _mode(node: Node) -> Mode:
    fails = node.fields.get("failOnError")
    if isinstance(fails, bool):
        return Mode.ANSI if fails else Mode.LEGACY
    return node.mode


def _unknown(node: Node) -> Anything:
    return Anything(node.name, find_type(node.fields.get("dataType")))


def _attribute(reader: CatalystReader, node: Node) -> Expression | None:
    found = reader.fields.get(str(node.fields.get("name")).lower())
    type_ = find_type(node.fields.get("dataType"))
    return None if found is None or type_ is None else _column(found, type_)


def _column(found: Field, type_: Type) -> Expression:
    if isinstance(type_, Struct):
        return Anything(found.name, type_)
    return Column(found.id, type_, found.name)


def _member(reader: CatalystReader, node: Node) -> Expression | None:
    """Follow members of structs down to a leaf. What Spark prints of the struct may be only a part of it."""
    names: list[str] = []
    inner = node
    while inner.name == "GetStructField":
        names.append(str(inner.fields.get("name") or inner.fields.get("ordinal")))
        inner = inner.children[0]
    if inner.name != "AttributeReference":
        return None
    found = reader.fields.get(str(inner.fields.get("name")).lower())
    shown: Type | None = find_type(inner.fields.get("dataType"))
    for name in reversed(names):
        if found is None or not isinstance(found.type, Struct) or not isinstance(shown, Struct):
            return None
        position = int(name) if name.isdigit() and int(name) < len(shown.fields) else None
        spelled = shown.fields[position].name if position is not None else name
        shown = next((own.type for own in shown.fields if own.name == spelled), None)
        found = _find_member(found.type, spelled)
    return None if found is None or shown is None else _column(found, shown)


def _find_member(struct: Struct, name: str) -> Field | None:
    wanted = name.lower()
    return next(
        (own for own in struct.fields if wanted == field_name(own.id)),
        next((own for own in struct.fields if own.name.lower() == wanted), None),
    )


def _literal(reader: CatalystReader, node: Node) -> Expression:
    return read_literal(node.fields.get("value"), node.fields.get("dataType"), reader.zone)


def _cast(reader: CatalystReader, node: Node) -> Expression | None:
    type_ = find_type(node.fields.get("dataType"))
    if type_ is None or len(node.children) != 1:
        return None
    return cast(reader.read(node.children[0]), type_, node.mode, node.zone or reader.zone)


def _logic(reader: CatalystReader, node: Node) -> Expression | None:
    function = Function.AND if node.name == "And" else Function.OR
    flat: list[Node] = []
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.name == node.name:
            waiting += reversed(one.children)
        else:
            flat.append(one)
    args = reader.read_all(flat)
    return Call(function, args, BOOLEAN) if all(arg.type in (BOOLEAN, None) for arg in args) else None


def _subquery(_: CatalystReader, __: Node) -> Expression:
    return Anything("(a subquery)")


def _in_set(reader: CatalystReader, node: Node) -> Expression:
    members = node.fields.get("hset")
    value = reader.read(node.children[0])
    ranges = node.fields.get("ranges")
    if ranges and value.type is not None:
        given = [Literal(first, value.type, last) for first, last in ranges]
        return Call(Function.IN, (value, *given), BOOLEAN)
    if not isinstance(members, list | tuple | set | frozenset) or value.type is None:
        return Anything("InSet", BOOLEAN)
    args = [value, *(held_literal(str(member), value.type, reader.zone) for member in members)]
    if not comparable(arg.type for arg in args):
        return Anything("InSet", BOOLEAN)
    return Call(Function.IN, tuple(args), BOOLEAN)


def _case(reader: CatalystReader, node: Node) -> Expression | None:
    args = list(reader.read_all(node.children))
    if len(args) % 2 == 0:
        args.append(Literal(None, args[1].type or BOOLEAN))
    type_ = next((arg.type for arg in (*args[1:-1:2], args[-1]) if arg.type is not None), None)
    if type_ is None or any(arg.type not in (BOOLEAN, None) for arg in args[:-1:2]):
        return None
    return Call(Function.CASE, tuple(args), type_)


def _with(reader: CatalystReader, node: Node) -> Expression | None:
    """Read an expression that refers to a part of itself: the only one, since names are not printed."""
    body, *definitions = node.children
    if len(definitions) != 1:
        return None
    reader.shared.append(reader.read(definitions[0]))
    try:
        return reader.read(body)
    finally:
        reader.shared.pop()


def _shared(reader: CatalystReader, _: Node) -> Expression | None:
    return reader.shared[0] if len(reader.shared) == 1 else None


def _now(_: CatalystReader, __: Node) -> Expression:
    return Now()


def _today(reader: CatalystReader, node: Node) -> Expression:
    return cast(Now(), DATE, Mode.UNKNOWN, node.zone or reader.zone)


def _parse(type_: Type) -> Callable[[CatalystReader, Node], Expression | None]:
    def make(reader: CatalystReader, node: Node) -> Expression | None:
        if len(node.children) != 1:
            return None
        return cast(reader.read(node.children[0]), type_, Mode.UNKNOWN, node.zone or reader.zone)

    return make


def _precise(reader: CatalystReader, node: Node) -> Expression | None:
    """Read a change between a timestamp and its microseconds, which windows make."""
    (value,) = reader.read_all(node.children)
    if name_of(value.type) in ("timestamp", "timestamp_ntz"):
        return Call(Function.UNIX_MICROS, (value,), LONG)
    return Call(Function.MICROS_TO_TIMESTAMP, (value,), TIMESTAMP) if value.type == LONG else None


def _timestamp_add(reader: CatalystReader, node: Node) -> Expression | None:
    """Add a known number: months and days by local clocks, and less than a day as time that passes."""
    unit = str(node.fields.get("unit")).upper()
    quantity, stamp = (
        None if child is None else reader.read(child) for child in map(node.child, ("quantity", "timestamp"))
    )
    if not isinstance(quantity, Literal) or not isinstance(quantity.value, int) or stamp is None:
        return None
    if stamp.type is None or name_of(stamp.type) not in ("timestamp", "timestamp_ntz"):
        return None
    size = _MONTHS.get(unit) or _DAYS.get(unit) or _TIMES.get(unit)
    type_ = YEAR_MONTH if unit in _MONTHS else DAY_TIME
    low, high = limits(type_)
    if size is None or not low <= quantity.value * size <= high:
        return None
    function = Function.ADD_MONTHS_TO_TIMESTAMP if unit in _MONTHS else Function.ADD_DAY_TIME
    zone = "UTC" if unit in _TIMES else node.zone
    return Call(function, (stamp, Literal(quantity.value * size, type_)), stamp.type, Mode.UNKNOWN, zone)


def _unix_timestamp(reader: CatalystReader, node: Node) -> Expression | None:
    """Read `unix_timestamp` of a timestamp, or of the beginning of a date."""
    value = None if (child := node.child("timeExp")) is None else reader.read(child)
    if value is None:
        return None
    if name_of(value.type) == "date":
        value = cast(value, TIMESTAMP, Mode.UNKNOWN, node.zone)
    return load_row("unix_timestamp").bind((value,), Mode.UNKNOWN, node.zone)


def _like(reader: CatalystReader, node: Node) -> Expression | None:
    """Read LIKE, with its escape character if that is known."""
    args = reader.read_all(node.children)
    if [arg.type for arg in args] != [STRING, STRING]:
        return None
    escape = node.fields.get("escapeChar")
    given = (Literal(escape, STRING),) if isinstance(escape, str) and len(escape) == 1 else ()
    return Call(Function.LIKE, (*args, *given), BOOLEAN)


def _by_pattern(reader: CatalystReader, node: Node) -> Expression | None:
    """Read a timestamp that is written by a pattern, unless it is a local one."""
    if find_type(node.fields.get("dataType")) != TIMESTAMP:
        return None
    return load_row("get_timestamp").bind(reader.read_all(node.children), Mode.UNKNOWN, node.zone)


_SPECIAL: Final[dict[str, Callable[[CatalystReader, Node], Expression | None]]] = {
    "AttributeReference": _attribute,
    "GetStructField": _member,
    "Literal": _literal,
    "Cast": _cast,
    "And": _logic,
    "Or": _logic,
    "InSet": _in_set,
    "ScalarSubquery": _subquery,
    "If": _case,
    "CaseWhen": _case,
    "With": _with,
    "CommonExpressionRef": _shared,
    "Now": _now,
    "CurrentTimestamp": _now,
    "CurrentDate": _today,
    "ParseToDate": _parse(DATE),
    "ParseToTimestamp": _parse(TIMESTAMP),
    "PreciseTimestampConversion": _precise,
    "TimestampAdd": _timestamp_add,
    **dict.fromkeys(("UnixTimestamp", "ToUnixTimestamp"), _unix_timestamp),
    "Like": _like,
    "GetTimestamp": _by_pattern,
}

"""From Catalyst's JSON to an expression: columns, literals, casts, logic and branches.

Functions whose arguments and type are all there is to them are listed in `functions.py`. What is not
known becomes `Anything`, and only that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from instar.schema import Field, Struct, Type, field_name
from instar.skipping.catalyst.functions import FUNCTIONS
from instar.skipping.catalyst.literals import held_literal, read_literal
from instar.skipping.catalyst.nodes import Node, find_type, read_nodes
from instar.skipping.catalyst.steps import timestamp_add
from instar.skipping.coercion import DATE, LONG, TIMESTAMP, cast
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
from instar.skipping.kinds import comparable, name_of
from instar.skipping.wording import word_call

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

_COMPARISONS: Final = {
    "EqualTo": Function.EQUAL,
    "EqualNullSafe": Function.EQUAL_NULL_SAFE,
    "LessThan": Function.LESS,
    "LessThanOrEqual": Function.LESS_EQUAL,
    "GreaterThan": Function.GREATER,
    "GreaterThanOrEqual": Function.GREATER_EQUAL,
}
_CHOICES: Final = {
    "Coalesce": Function.COALESCE,
    "Greatest": Function.GREATEST,
    "Least": Function.LEAST,
    "NaNvl": Function.NANVL,
}


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
    `escapeChar`, `hset` (members as Spark holds them: dates are days, timestamps microseconds), and `value`
    of binary literals (bytes).
    """
    try:
        node = read_nodes(text, lost)
    except (ValueError, KeyError, TypeError, IndexError):
        return Anything("an expression that cannot be read", BOOLEAN)
    return Reader(fields, zone).read(node)


class Reader:
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
        if node.name in FUNCTIONS:
            return FUNCTIONS[node.name].make(node, self.read) or _unknown(node)
        return _unknown(node)

    def read_all(self, nodes: Sequence[Node]) -> tuple[Expression, ...]:
        """Read several nodes."""
        return tuple(self.read(node) for node in nodes)


def _unknown(node: Node) -> Anything:
    return Anything(node.name, find_type(node.fields.get("dataType")))


def _attribute(reader: Reader, node: Node) -> Expression | None:
    found = reader.fields.get(str(node.fields.get("name")).lower())
    type_ = find_type(node.fields.get("dataType"))
    return None if found is None or type_ is None else _column(found, type_)


def _column(found: Field, type_: Type) -> Expression:
    if isinstance(type_, Struct):
        return Anything(found.name, type_)
    return Column(found.id, type_, found.name)


def _member(reader: Reader, node: Node) -> Expression | None:
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


def _literal(reader: Reader, node: Node) -> Expression:
    return read_literal(node.fields.get("value"), node.fields.get("dataType"), reader.zone)


def _cast(reader: Reader, node: Node) -> Expression | None:
    type_ = find_type(node.fields.get("dataType"))
    if type_ is None or len(node.children) != 1:
        return None
    return cast(reader.read(node.children[0]), type_, node.mode, node.zone or reader.zone)


def _logic(reader: Reader, node: Node) -> Expression | None:
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


def _not(reader: Reader, node: Node) -> Expression | None:
    args = reader.read_all(node.children)
    return Call(Function.NOT, args, BOOLEAN) if [arg.type for arg in args] == [BOOLEAN] else None


def _null_test(reader: Reader, node: Node) -> Expression:
    function = {"IsNull": Function.IS_NULL, "IsNotNull": Function.IS_NOT_NULL, "IsNaN": Function.IS_NAN}[
        node.name
    ]
    return Call(function, reader.read_all(node.children), BOOLEAN)


def _comparison(reader: Reader, node: Node) -> Expression:
    args = reader.read_all(node.children)
    if len(args) == 2 and comparable(arg.type for arg in args):  # noqa: PLR2004 -- two sides
        return Call(_COMPARISONS[node.name], args, BOOLEAN)
    if node.name == "EqualNullSafe":
        return Call(Function.EQUAL_NULL_SAFE, args, BOOLEAN)
    return _in_words(_COMPARISONS[node.name], args)


def _in_words(function: Function, args: Sequence[Expression]) -> Anything:
    """Say what is asked, though nothing follows from it."""
    return Anything(word_call(function, [str(arg) for arg in args], BOOLEAN, Mode.UNKNOWN), BOOLEAN)


def _subquery(_: Reader, __: Node) -> Expression:
    return Anything("(a subquery)")


def _in(reader: Reader, node: Node) -> Expression:
    args = reader.read_all(node.children)
    if comparable(arg.type for arg in args):
        return Call(Function.IN, args, BOOLEAN)
    return _in_words(Function.IN, args)


def _in_set(reader: Reader, node: Node) -> Expression:
    members = node.fields.get("hset")
    value = reader.read(node.children[0])
    if not isinstance(members, list | tuple | set | frozenset) or value.type is None:
        return Anything("InSet", BOOLEAN)
    args = [value, *(held_literal(str(member), value.type, reader.zone) for member in members)]
    if not comparable(arg.type for arg in args):
        return Anything("InSet", BOOLEAN)
    return Call(Function.IN, tuple(args), BOOLEAN)


def _choice(reader: Reader, node: Node) -> Expression | None:
    args = reader.read_all(node.children)
    type_ = args[0].type if args else None
    return None if type_ is None else Call(_CHOICES[node.name], args, type_)


def _case(reader: Reader, node: Node) -> Expression | None:
    args = list(reader.read_all(node.children))
    if len(args) % 2 == 0:
        args.append(Literal(None, args[1].type or BOOLEAN))
    type_ = next((arg.type for arg in (*args[1:-1:2], args[-1]) if arg.type is not None), None)
    if type_ is None or any(arg.type not in (BOOLEAN, None) for arg in args[:-1:2]):
        return None
    return Call(Function.CASE, tuple(args), type_)


def _try(reader: Reader, node: Node) -> Expression | None:
    args = reader.read_all(node.children)
    type_ = args[0].type
    return None if type_ is None else Call(Function.TRY, args, type_)


def _with(reader: Reader, node: Node) -> Expression | None:
    """Read an expression that refers to a part of itself: the only one, since names are not printed."""
    body, *definitions = node.children
    if len(definitions) != 1:
        return None
    reader.shared.append(reader.read(definitions[0]))
    try:
        return reader.read(body)
    finally:
        reader.shared.pop()


def _shared(reader: Reader, _: Node) -> Expression | None:
    return reader.shared[0] if len(reader.shared) == 1 else None


def _now(_: Reader, __: Node) -> Expression:
    return Now()


def _today(reader: Reader, node: Node) -> Expression:
    return cast(Now(), DATE, Mode.UNKNOWN, node.zone or reader.zone)


def _parse(type_: Type) -> Callable[[Reader, Node], Expression | None]:
    def make(reader: Reader, node: Node) -> Expression | None:
        if len(node.children) != 1:
            return None
        return cast(reader.read(node.children[0]), type_, Mode.UNKNOWN, node.zone or reader.zone)

    return make


def _precise(reader: Reader, node: Node) -> Expression | None:
    """Read a change between a timestamp and its microseconds, which windows make."""
    (value,) = reader.read_all(node.children)
    if name_of(value.type) in ("timestamp", "timestamp_ntz"):
        return Call(Function.UNIX_MICROS, (value,), LONG)
    return Call(Function.MICROS_TO_TIMESTAMP, (value,), TIMESTAMP) if value.type == LONG else None


_SPECIAL: Final[dict[str, Callable[[Reader, Node], Expression | None]]] = {
    "AttributeReference": _attribute,
    "GetStructField": _member,
    "Literal": _literal,
    "Cast": _cast,
    "And": _logic,
    "Or": _logic,
    "Not": _not,
    **dict.fromkeys(("IsNull", "IsNotNull", "IsNaN"), _null_test),
    **dict.fromkeys(_COMPARISONS, _comparison),
    **dict.fromkeys(_CHOICES, _choice),
    "In": _in,
    "InSet": _in_set,
    "ScalarSubquery": _subquery,
    "If": _case,
    "CaseWhen": _case,
    "TryEval": _try,
    "With": _with,
    "CommonExpressionRef": _shared,
    "Now": _now,
    "CurrentTimestamp": _now,
    "CurrentDate": _today,
    "ParseToDate": _parse(DATE),
    "ParseToTimestamp": _parse(TIMESTAMP),
    "PreciseTimestampConversion": _precise,
    "TimestampAdd": lambda reader, node: timestamp_add(node, reader.read),
}

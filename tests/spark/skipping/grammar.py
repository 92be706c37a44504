"""Random well-typed filters over all that the registry has, as trees that can be made smaller."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

from instar.skipping.registry import ROWS
from instar.skipping.sql.calls import SHORTHANDS
from tests.spark.skipping.poison import COLUMNS, ENDS, EPOCH, POISON, spark_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Node", "fill_words", "make_filter", "make_value", "smaller"]


@dataclass(frozen=True)
class Node:
    """A piece of SQL with holes, what fills them, and its type."""

    template: str
    type: str
    children: tuple[Node, ...] = ()

    def __str__(self) -> str:
        return self.template.format(*self.children)


_LEVELS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "nonsense")
_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "Australia/Lord_Howe")
_BAD_ZONES = ("Nowhere/Bad", "+530", "+05:30", "UTC-3")
_TINY = (Decimal("7e-30"), Decimal("3e-18"), Decimal("0.25"))
_UNITS = ("day", "hour", "minute", "second")

# Not understood: it may come to anything.
_FOREIGN = (
    "string: reverse({string})",
    "int: ascii({string})",
    "double: sin({double})",
    "date: next_day({date}, 'Mon')",
)


def _rules() -> dict[str, list[str]]:
    """Return the samples of all functions that skipping knows, by type."""
    rules: dict[str, list[str]] = {}
    samples = [sample for row in ROWS.values() for sample in row.samples]
    samples += [sample for short in dict.fromkeys(SHORTHANDS.values()) for sample in short.samples]
    for sample in (*samples, *_FOREIGN):
        type_, _, template = sample.partition(": ")
        rules.setdefault(type_, []).append(template)
    return rules


# Templates by type; a hole names the type that fills it. `#n` is a small number, `#level` and so on a word.
_RULES = _rules()
_LOCAL = [
    (type_, rule)
    for type_, rules in _RULES.items()
    if type_ != "boolean"
    for rule in rules
    if "{timestamp" in rule or type_ == "timestamp"
]
"""Rules whose outcome depends on a time zone, or nearly so."""


def make_filter(random: Random, depth: int = 3) -> Node:
    """Make a random filter: a deep one, or one function of columns and a value that it may well have."""
    return _pointed(random) if random.random() < 0.4 else _make(random, "boolean", depth)


def make_value(random: Random) -> Node:
    """Make a function of columns and literals, of any type."""
    type_ = random.choice(list(_RULES))
    return _fill(random, random.choice(_RULES[type_]), type_, random.choice((1, 1, 1, 2)))


def _pointed(random: Random) -> Node:
    type_ = random.choice([own for own in _RULES if own != "boolean"])
    rule = random.choice(_RULES[type_])
    if random.random() < 0.5:
        type_, rule = random.choice(_LOCAL)
    small = random.choice((*range(32), *range(32), 53, 59, 2011, 2024, 2025))
    value = (
        Node(str(small), type_)
        if type_ in ("int", "bigint") and random.random() < 0.7
        else _leaf(random, type_)
    )
    subject = _fill(random, rule, type_, 1)
    test = random.choice(("{} < {}", "{} <= {}", "{} = {}", "{} >= {}", "{} > {}"))
    return Node(f"({test})", "boolean", (subject, value))


def smaller(node: Node) -> Iterator[Node]:
    """Yield simpler trees of the same type: a descendant in its place, or one child made smaller."""
    for child in _descendants(node):
        if child.type == node.type:
            yield child
    for position, child in enumerate(node.children):
        for option in smaller(child):
            yield Node(
                node.template, node.type, (*node.children[:position], option, *node.children[position + 1 :])
            )


def _descendants(node: Node) -> Iterator[Node]:
    for child in node.children:
        yield child
        yield from _descendants(child)


def _make(random: Random, type_: str, depth: int) -> Node:
    if depth <= 0 or type_ not in _RULES or (type_ != "boolean" and random.random() < 0.35):
        return _leaf(random, type_)
    return _fill(random, random.choice(_RULES[type_]), type_, depth)


def _fill(random: Random, template: str, type_: str, depth: int) -> Node:
    template = fill_words(template, random)
    children = []
    pieces = []
    rest = template
    while "{" in rest:
        before, _, after = rest.partition("{")
        name, _, rest = after.partition("}")
        pieces += [before, "{}"]
        children.append(_make(random, name, depth - 1))
    return Node("".join(pieces) + rest, type_, tuple(children))


def fill_words(template: str, random: Random | None = None) -> str:
    """Put words and numbers in their places; any, unless drawn at random."""
    random = random or Random(0)
    words: dict[str, Callable[[], str]] = {
        "#level": lambda: random.choice(_LEVELS),
        "#unit": lambda: random.choice(_UNITS),
        "#zone": lambda: random.choice((*_ZONES, *_BAD_ZONES)),
        "#format": lambda: random.choice(
            (
                *("yyyy-MM-dd", "yyyy", "yyyyMM", "yyyy-MM-dd HH:mm:ss", "dd.MM.yyyy", "yyyy/MM/dd HH"),
                *("yyyyMMddHHmmss", "MM", "dd", "HH", "mm", "ss", "yyyy.MM"),
            )
        ),
        "#like": lambda: random.choice(
            ("a%", "ab%", "abc", "%b", "a_c%", "k000%1", "", "%", "\\\\%a%", "z%", "2024-02%")
        ),
        "#regex": lambda: random.choice(
            (
                "^a",
                "^ab.*",
                "^abc$",
                "^ab?",
                "^a[bc]+",
                "b",
                "^(a|k)",
                "^a(b|_)",
                "^(?:ab|z)",
                "^(ab|z)?",
                "^k000",
                "^",
                "^日",
                "^a|z",
                "^A ",
                "^zz*",
            )
        ),
        "#piece": lambda: random.choice(("a", "ab", "", "z", "k0", "日", "2024")),
        "#tiny": lambda: f"cast({random.choice(_TINY):f} as decimal(38,30))",
        "#n": lambda: str(random.choice((0, 1, 2, 3, 6, 29, 31, 45))),
    }
    for word, make in words.items():
        while word in template:
            template = template.replace(word, make(), 1)
    return template


def _leaf(random: Random, type_: str) -> Node:
    names = [name for name, own in COLUMNS.items() if own == type_]
    if random.random() < 0.6:
        return Node(random.choice(names), type_)
    return Node(_literal(random, type_).replace("{", "{{").replace("}", "}}"), type_)


def _literal(random: Random, type_: str) -> str:
    if random.random() < 0.03:
        return f"cast(null as {type_})"
    if type_ in ENDS and random.random() < 0.08:
        return spark_literal(random.choice(ENDS[type_]), type_)
    value: Any = random.choice(POISON[type_])
    match type_:
        case "boolean":
            return str(value).lower()
        case "tinyint":
            return f"cast({value} as tinyint)"
        case "int":
            return str(value) if value > -(1 << 31) else "(-2147483647 - 1)"
        case "bigint":
            return f"{value}L" if value > -(1 << 63) else "(-9223372036854775807L - 1L)"
        case "float" | "double":
            return f"cast('{value!r}' as {type_})"
        case "decimal(10,2)" | "decimal(38,18)":
            return f"cast({value} as {type_})"
        case "string":
            return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
        case "array<int>":
            return spark_literal(value, type_)
        case "date":
            return f"date_from_unix_date({value})" if random.random() < 0.3 else _date(value)
    return _stamp(value, type_)


def _date(days: int) -> str:
    return f"date'{EPOCH.date() + dt.timedelta(days=days)}'"


def _stamp(micros: int, type_: str) -> str:
    return f"{type_}'{EPOCH + dt.timedelta(microseconds=micros)}'"

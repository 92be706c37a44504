"""Random well-typed filters over all that skipping understands, as trees that can be made smaller."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tests.spark.skipping.poison import COLUMNS, ENDS, EPOCH, POISON, spark_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

__all__ = ["Node", "make_filter", "make_value", "smaller"]


@dataclass(frozen=True)
class Node:
    """A piece of SQL with holes, what fills them, and its type."""

    template: str
    type: str
    children: tuple[Node, ...] = ()

    def __str__(self) -> str:
        return self.template.format(*self.children)


_NUMBERS = ("tinyint", "int", "bigint", "double", "float", "decimal(10,2)", "decimal(38,18)")
_LEVELS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "nonsense")
_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "Australia/Lord_Howe")
_BAD_ZONES = ("Nowhere/Bad", "+530", "+05:30", "UTC-3")
_TINY = (Decimal("7e-30"), Decimal("3e-18"), Decimal("0.25"))
_UNITS = ("day", "hour", "minute", "second")
_COMPARABLE = (*_NUMBERS, "string", "date", "timestamp", "timestamp_ntz", "boolean")

# Templates by type; a hole names the type that fills it. `#n` is a small number, `#level` and so on a word.
_RULES: dict[str, list[str]] = {
    "boolean": [
        "(not {boolean})",
        "({boolean} and {boolean})",
        "({boolean} or {boolean})",
        "(case when {boolean} then {boolean} else {boolean} end)",
        "isnan({double})",
        "({string} like '#like')",
        "({string} not like '#like')",
        "startswith({string}, '#piece')",
        "contains({string}, '#piece')",
        "endswith({string}, '#piece')",
        "({timestamp} - {timestamp} > interval '#n' day)",
        "({boolean} is true)",
        "({boolean} is null)",
    ],
    "tinyint": [
        "(- {tinyint})",
        "abs({tinyint})",
        "({tinyint} #op {tinyint})",
        "cast({int} as tinyint)",
        "cast({double} as tinyint)",
        "cast({decimal(38,18)} as tinyint)",
    ],
    "int": [
        *("({int} #op {int})", "({int} % {int})", "pmod({int}, {int})", "(- {int})", "abs({int})"),
        *(
            "cast({bigint} as int)",
            "cast({double} as int)",
            "cast({tinyint} as int)",
            "cast({boolean} as int)",
        ),
        *("cast({decimal(10,2)} as int)", "try_cast({bigint} as int)", "try_#try({int}, {int})"),
        *(
            "year({date})",
            "quarter({date})",
            "month({date})",
            "day({date})",
            "dayofyear({date})",
            "weekofyear({date})",
        ),
        *(
            "dayofweek({date})",
            "weekday({date})",
            "year({timestamp})",
            "month({timestamp})",
            "hour({timestamp})",
        ),
        *("minute({timestamp})", "second({timestamp})", "hour({timestamp_ntz})", "datediff({date}, {date})"),
        *("extract(week from {timestamp})", "extract(doy from {date})", "date_part('dow', {timestamp})"),
        *("length({string})", "round({int}, -1)", "unix_date({date})", "({int} + {tinyint})"),
        *("(case when {boolean} then {int} when {boolean} then {int} end)", "nullif({int}, {int})"),
        *(
            "cast({decimal(38,18)} as int)",
            "(case when i > #n then cast(l as int) end)",
            "if(i = 0, 0, j div i)",
        ),
    ],
    "bigint": [
        *(
            "({bigint} #op {bigint})",
            "({bigint} div {bigint})",
            "({bigint} % {bigint})",
            "(- {bigint})",
            "abs({bigint})",
        ),
        *(
            "cast({int} as bigint)",
            "cast({double} as bigint)",
            "try_cast({double} as bigint)",
            "cast({timestamp} as bigint)",
        ),
        *("ceil({double})", "floor({double})", "unix_timestamp({timestamp})", "unix_millis({timestamp})"),
        *("try_#try({bigint}, {bigint})", "({bigint} + {int})"),
        *("cast({decimal(38,18)} as bigint)", "unix_seconds({timestamp})", "unix_timestamp({timestamp_ntz})"),
        *("unix_timestamp({timestamp})", "to_unix_timestamp({timestamp})", "unix_timestamp({date})"),
    ],
    "double": [
        *(
            "({double} #op {double})",
            "({double} / {double})",
            "({int} / {int})",
            "({double} % {double})",
            "(- {double})",
        ),
        *(
            "abs({double})",
            "sign({double})",
            "round({double}, 1)",
            "round({double})",
            "cast({bigint} as double)",
        ),
        *(
            "cast({float} as double)",
            "cast({decimal(10,2)} as double)",
            "cast({int} as double)",
            "try_divide({double}, {double})",
        ),
        *(
            "months_between({timestamp}, {timestamp})",
            "months_between({date}, {date})",
            "nanvl({double}, {double})",
        ),
        *("cast({timestamp} as double)", "cast({decimal(38,18)} as double)"),
        *("(case when l > #n then cast(l as double) end)", "(case when i > #n then 100 / i end)"),
    ],
    "float": [
        *("cast({double} as float)", "({float} #op {float})", "cast({bigint} as float)", "(- {float})"),
        *("cast({decimal(38,18)} as float)", "if(l > #n, cast(l as float), {float})"),
    ],
    "decimal(38,18)": [
        *("(- {decimal(38,18)})", "abs({decimal(38,18)})", "cast({bigint} as decimal(38,18))"),
        *(
            "cast(({decimal(38,18)} #op {decimal(38,18)}) as decimal(38,18))",
            "cast(({decimal(38,18)} / {decimal(38,18)}) as decimal(38,18))",
            "cast(({decimal(38,18)} % {decimal(38,18)}) as decimal(38,18))",
            "cast(pmod({decimal(38,18)}, #tiny) as decimal(38,18))",
            "cast((cast({decimal(38,18)} as decimal(38,0)) % #tiny) as decimal(38,18))",
            "cast(round({decimal(38,18)}, 5) as decimal(38,18))",
        ),
    ],
    "decimal(10,2)": [
        *(
            "cast({int} as decimal(10,2))",
            "cast(({decimal(10,2)} #op {decimal(10,2)}) as decimal(10,2))",
            "abs({decimal(10,2)})",
        ),
        *(
            "cast(({decimal(10,2)} / {decimal(10,2)}) as decimal(10,2))",
            "cast(round({decimal(10,2)}, 1) as decimal(10,2))",
        ),
        *("(- {decimal(10,2)})", "cast(({decimal(10,2)} % {decimal(10,2)}) as decimal(10,2))"),
        *(
            "cast(floor({decimal(10,2)}) as decimal(10,2))",
            "cast(({decimal(10,2)} #op {int}) as decimal(10,2))",
        ),
    ],
    "string": [
        *(
            "substring({string}, 1, #n)",
            "left({string}, #n)",
            "concat({string}, {string})",
            "({string} || '#piece')",
        ),
        *("substring({string}, 2, #n)", "cast({date} as string)", "date_format({timestamp}, '#format')"),
        *("from_unixtime({bigint})", "cast({int} as string)", "upper({string})", "trim({string})"),
    ],
    "date": [
        *("date_add({date}, #n)", "date_sub({date}, #n)", "add_months({date}, #n)", "last_day({date})"),
        *(
            "trunc({date}, '#level')",
            "cast({timestamp} as date)",
            "to_date({timestamp})",
            "({date} + interval '#n' month)",
        ),
        *(
            "({date} - interval '#n' day)",
            "cast({timestamp_ntz} as date)",
            "date_add({date}, {int})",
            "add_months({date}, {int})",
        ),
    ],
    "timestamp": [
        *(
            "date_trunc('#level', {timestamp})",
            "({timestamp} + interval '#n' #unit)",
            "({timestamp} - interval '#n' day)",
        ),
        *(
            "({timestamp} + interval '#n' month)",
            "cast({date} as timestamp)",
            "cast({timestamp_ntz} as timestamp)",
        ),
        *(
            "from_utc_timestamp({timestamp}, '#zone')",
            "to_utc_timestamp({timestamp}, '#zone')",
            "timestamp_seconds({bigint})",
        ),
        *("date_trunc('day', {timestamp})", "timestamp_millis({bigint})"),
        *("dateadd(#unit, #n, {timestamp})", "timestampadd(month, #n, {timestamp})"),
        "({timestamp} - interval #n day #n hours)",
    ],
    "timestamp_ntz": [
        *(
            "cast({timestamp} as timestamp_ntz)",
            "({timestamp_ntz} + interval '#n' #unit)",
            "cast({date} as timestamp_ntz)",
        ),
        "({timestamp_ntz} + interval '#n' month)",
    ],
}
_LOCAL = [
    (type_, rule)
    for type_, rules in _RULES.items()
    if type_ != "boolean"
    for rule in rules
    if "{timestamp" in rule or type_ == "timestamp"
]
"""Rules whose outcome depends on a time zone, or nearly so."""

_GENERAL = (
    "coalesce({T}, {T})",
    "if({boolean}, {T}, {T})",
    "greatest({T}, {T})",
    "least({T}, {T})",
    "nvl({T}, {T})",
    "case when {boolean} then {T} else {T} end",
)
_TESTS = (
    *("({T} #cmp {T})", "({T} #cmp {T})", "({T} #cmp {T})", "({T} #cmp {T})", "({T} = {T})", "({T} <=> {T})"),
    *("({T} is null)", "({T} is not null)", "({T} in ({T}, {T}, {T}))", "({T} between {T} and {T})"),
)


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
    if depth <= 0 or (type_ != "boolean" and random.random() < 0.35):
        return _leaf(random, type_)
    if type_ == "boolean" and random.random() < 0.65:
        about = random.choice(_COMPARABLE)
        return _fill(random, random.choice(_TESTS).replace("{T}", "{" + about + "}"), type_, depth)
    if random.random() < 0.2:
        return _fill(random, random.choice(_GENERAL).replace("{T}", "{" + type_ + "}"), type_, depth)
    return _fill(random, random.choice(_RULES[type_]), type_, depth)


def _fill(random: Random, template: str, type_: str, depth: int) -> Node:
    template = _words(random, template)
    children = []
    pieces = []
    rest = template
    while "{" in rest:
        before, _, after = rest.partition("{")
        name, _, rest = after.partition("}")
        pieces += [before, "{}"]
        children.append(_make(random, name, depth - 1))
    return Node("".join(pieces) + rest, type_, tuple(children))


def _words(random: Random, template: str) -> str:
    words: dict[str, Callable[[], str]] = {
        "#cmp": lambda: random.choice(("<", "<=", ">", ">=", "=", "<>")),
        "#op": lambda: random.choice("+-*"),
        "#try": lambda: random.choice(("add", "subtract", "multiply")),
        "#level": lambda: random.choice(_LEVELS),
        "#unit": lambda: random.choice(_UNITS),
        "#zone": lambda: random.choice((*_ZONES, *_BAD_ZONES)),
        "#format": lambda: random.choice(
            ("yyyy-MM-dd", "yyyy", "yyyyMM", "yyyy-MM-dd HH:mm:ss", "dd.MM.yyyy")
        ),
        "#like": lambda: random.choice(
            ("a%", "ab%", "abc", "%b", "a_c%", "k000%1", "", "%", "\\\\%a%", "z%", "2024-02%")
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
        case "date":
            return f"date_from_unix_date({value})" if random.random() < 0.3 else _date(value)
    return _stamp(value, type_)


def _date(days: int) -> str:
    return f"date'{EPOCH.date() + dt.timedelta(days=days)}'"


def _stamp(micros: int, type_: str) -> str:
    return f"{type_}'{EPOCH + dt.timedelta(microseconds=micros)}'"

"""Values that go wrong, and parts made of them: the ends of every type, their neighbours, and odd days.

Values are as statistics store them: dates in days, timestamps in microseconds, decimals as text.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from instar.schema import parse_schema_ddl
from instar.stats import FieldStats

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

__all__ = [
    "COLUMNS",
    "ENDS",
    "EPOCH",
    "POISON",
    "SCHEMA",
    "local_time",
    "make_part",
    "spark_literal",
    "stats_of",
]

COLUMNS = {
    "b": "boolean",
    "ti": "tinyint",
    "i": "int",
    "j": "int",
    "l": "bigint",
    "fl": "float",
    "f": "double",
    "g": "double",
    "dc": "decimal(10,2)",
    "dl": "decimal(38,18)",
    "dm": "decimal(38,18)",
    "s": "string",
    "d": "date",
    "e": "date",
    "ts": "timestamp",
    "tn": "timestamp_ntz",
    "ar": "array<int>",
}
SCHEMA = parse_schema_ddl(", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items()))

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 -- a local time

_DAY = 86_400_000_000
_DAYS = (
    *(-719_162, 2_932_896, 0, -1, 19_782, 19_783, 19_723, 19_722, 20_118, 20_453),  # year 1, 9999, leap days
    *(19_446, 19_447, 19_448, 19_661, 19_662, 19_663, 20_177, 20_178, 20_388, 20_389),  # clocks change
    *(15_337, 15_338, 15_339, 19_753, 19_754, 19_812, 19_813, 20_088),  # Apia has no 2011-12-30; month ends
)
_TWICE = (1 << 60) + (1 << 36) + 1
"""Rounded to a double and then to a float, it is another float than rounded once."""
POISON: dict[str, tuple[Any, ...]] = {
    "boolean": (True, False),
    "tinyint": (-128, -127, -1, 0, 1, 2, 10, 126, 127),
    "int": (-(1 << 31), 1 - (1 << 31), -100, -1, 0, 1, 2, 7, 100, 2024, (1 << 31) - 2, (1 << 31) - 1),
    "bigint": (
        -(1 << 63),
        1 - (1 << 63),
        -1,
        0,
        1,
        1000,
        1 << 31,
        1 << 53,
        _TWICE,
        -_TWICE,
        (1 << 63) - 2,
        (1 << 63) - 1,
    ),
    "float": (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, 1.5, -2.5, 16_777_216.0, 3.4028234663852886e38),
    "double": (
        *(math.nan, math.inf, -math.inf, 0.0, -0.0, 0.5, 1.5, 2.5, -0.5, 1e-300, 5e-324, 1e16, 1e308),
        *(2147483647.5, -2147483648.9, 9.223372036854775807e18, -9.3e18, 0.1, 100.0, -100.25),
    ),
    "decimal(10,2)": (
        "0.00",
        "0.01",
        "-0.01",
        "1.50",
        "-2.50",
        "99.99",
        "12345.67",
        "99999999.99",
        "-99999999.99",
    ),
    "decimal(38,18)": (
        *("0", "1.5", "-2.5", "0.000000000000000007", "-0.00001", "3", "-7.25", "12345.678901234567890123"),
        *(
            "4.999999999999999999",
            "-4.999999999999999999",
            "127.999999999999999999",
            "-128.999999999999999999",
        ),
        *("2147483647.999999999999999999", "-2147483648.999999999999999999", "9223372036854775807.5"),
        *("12345678901234567890.123456789012345678", "-12345678901234567890.123456789012345678"),
        *("99999999999999999999.999999999999999999", "-99999999999999999999.999999999999999999"),
    ),
    "string": (
        *("", "a", "ab", "abc", "abd", "b", "k0001", "k0002", "z", "ä", "日本", "\U0010ffff", "a\U0010ffff"),
        *(
            "A%_b",
            "a_c",
            " ",
            "  ab ",
            "ab  ",
            "a b",
            "aB",
            "AB",
            "Zebra",
            "ß",
            "ﬁ",
            "İ",
            "ΑΣ",
            "a\x01b",
            "a\x7f",
            "@[`{",
        ),
        *("abcabcabcabcabcabcabcabcabc", "2024-02-29", "12", "-7", "1.5"),
        *("20240229", "2024-02-30", "2024-03-10 02:30:00", "2023-10-29 02:30", "202402", "Infinity", "NaN"),
    ),
    "array<int>": ([], [1], [None, 7], [2024, -1, 0]),
    "date": _DAYS,
    "timestamp": (
        *(day * _DAY + offset for day in _DAYS for offset in (0, 3_600_000_000, 7_199_999_999)),
        *(day * _DAY - 1 for day in _DAYS[1:]),
        *(day * _DAY + 36_000_000_000 for day in _DAYS),
        *(-1_500_000, -1_000_000, -999_999, -500_000, -1, 1, 999_999),
    ),
}
POISON["timestamp_ntz"] = POISON["timestamp"]
_NEAR = {
    "date": (0, 1, 2, 3, 5, 6, 30, 31, 90, 200, 365, 366, 400),
    "timestamp": (0, 1, 999_999, 1_000_000, 3_600_000_000, *(_DAY * days for days in (1, 2, 7, 31, 366))),
}
ENDS: dict[str, tuple[int, ...]] = {
    type_: tuple(
        end
        for distance in _NEAR[near]
        for end in (-(1 << bits - 1) + distance, (1 << bits - 1) - 1 - distance)
    )
    for type_, near, bits in (
        ("date", "date", 32),
        ("timestamp", "timestamp", 64),
        ("timestamp_ntz", "timestamp", 64),
    )
}
"""The first and the last days that dates and times reach: a step from there may not fit."""
_STEPS = {"date": 40, "timestamp": 3 * _DAY, "timestamp_ntz": 3 * _DAY, "bigint": 50, "int": 50, "tinyint": 5}


def make_part(random: Random, rows: int) -> dict[str, list[Any]]:
    """Make the rows of a part: sometimes poison, mostly a range with values inside it."""
    return {name: _make_column(random, type_, rows) for name, type_ in COLUMNS.items()}


def _make_column(random: Random, type_: str, rows: int) -> list[Any]:
    pool = POISON[type_]
    way = random.random()
    if way < 0.05:
        return [None] * rows
    if type_ in ENDS and way < 0.15:
        return _make_end(random, type_, rows)
    if way < 0.2:
        values = [random.choice(pool)] * rows
    elif way < 0.5 or type_ not in _STEPS:
        few = random.sample(pool, k=min(len(pool), random.randint(1, 4)))
        values = [random.choice(few) for _ in range(rows)]
    else:
        base, step = random.choice(pool), _STEPS[type_] // random.choice((1, 1, 40))
        low, high = min(pool), max(pool)
        values = [min(max(base + random.randint(-step, step), low), high) for _ in range(rows)]
    if random.random() < 0.3:
        values[random.randrange(rows)] = None
    return values


def _make_end(random: Random, type_: str, rows: int) -> list[Any]:
    """Make a column whose range ends where its type does, and begins nearby or far away."""
    ends = ENDS[type_]
    low, high = min(ends), max(ends)
    near = _NEAR.get(type_, _NEAR["timestamp"])[-1]
    first, last = random.choice(((low, low + near), (high - near, high), (low, high), (0, high), (low, 0)))
    inside = [end for end in ends if first <= end <= last]
    return [
        random.choice(inside) if random.random() < 0.7 else random.randint(first, last) for _ in range(rows)
    ]


def stats_of(random: Random, values: Sequence[Any], type_: str) -> FieldStats | None:
    """Return the statistics of a column: exact, truncated, or partly or wholly missing, but never wrong."""
    present = [value for value in values if value is not None]
    numbers = [value for value in present if not (isinstance(value, float) and math.isnan(value))]
    counts = len(values) - len(present), len(present) - len(numbers)
    luck = random.random()
    if luck < 0.04:
        return None
    if luck < 0.06:
        return FieldStats(*counts)
    if not numbers or type_ == "array<int>":
        return FieldStats(*counts)
    key: Any = str.encode if type_ == "string" else Decimal if type_.startswith("decimal") else None
    low, high = min(numbers, key=key), max(numbers, key=key)
    if type_ == "string" and luck < 0.5:
        low, high = low[:2], _cut_above(high)
        return FieldStats(*counts, low, high)
    if luck < 0.08:
        return FieldStats(None, None, low, high)
    return FieldStats(*counts, low, high)


def _cut_above(text: str) -> str:
    """Cut a string after two characters, and round it up."""
    if len(text) <= 2:
        return text
    for size in (2, 1):
        last = ord(text[size - 1])
        if last < 0x10FFFF and last + 1 not in range(0xD800, 0xE000):
            return text[: size - 1] + chr(last + 1)
    return text


def spark_literal(value: Any, type_: str) -> str:  # noqa: ANN401 -- a value of any type
    """Write a value as SQL, whatever the session's time zone."""
    if value is None:
        return f"cast(null as {type_})"
    match type_:
        case "boolean":
            return str(value).lower()
        case "float" | "double":
            return f"cast('{value!r}' as {type_})"
        case "string":
            return f"cast(X'{value.encode().hex()}' as string)"
        case "date":
            return f"date_from_unix_date({value})"
        case "timestamp":
            return f"timestamp_micros({value})"
        case "array<int>":
            members = ("null" if member is None else str(member) for member in value)
            return f"cast(array({', '.join(members)}) as array<int>)"
        case "timestamp_ntz":
            return local_time(value)
    return f"cast('{value}' as {type_})"


def local_time(micros: int) -> str:
    """Write a timestamp without a time zone as SQL, in any year that there is."""
    seconds, fraction = divmod(micros, 1_000_000)
    date, clock = str(np.datetime64(seconds, "s")).split("T")
    year, month, day = date.rsplit("-", 2)
    sign = "-" if year.startswith("-") else "+"
    return f"cast('{sign}{year.lstrip('-'):0>4}-{month}-{day} {clock}.{fraction:06}' as timestamp_ntz)"

"""What single functions let skip: as many parts as there must be, and no more."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from instar.schema import parse_schema_ddl
from instar.skipping import Session, decide, parse_filter
from instar.stats import FieldStats, bounds_columns
from testbed.league import NOW, PARTS, SCHEMA, part
from tests.unit.skipping.foreseen import bounds_of, parts_read

BOUNDS, ROWS = bounds_of([part(number) for number in range(PARTS)], SCHEMA)
KEYS = [f"k{number:08d}" for number in range(0, 20000, 500)]
IDEAL = {
    "concat(s, 'x') >= 'k00019900x'": 1,
    "concat('a', s, 'x') >= 'ak00019900x'": 1,
    "s || st.y < 'k00000100'": 1,
    "s rlike '^k00012'": 10,
    "s rlike '^k0001999[0-9]'": 1,
    "regexp_like(s, '^x')": 0,
    "upper(s) >= 'K000199'": 1,
    "lower(upper(s)) < 'k000001'": 1,
    "trim(s) >= 'k00019900'": 1,
    "ltrim(s) < 'k00000100'": 1,
    "rtrim(s) >= 'k00019900'": 1,
    "sqrt(id) >= 100": 100,
    "exp(id / 1000D) < 2": 7,
    "ln(id + 1) > 9.8": 20,
    "log10(id + 1) > 4.001": 100,
    "log2(id + 1) < 7": 2,
    "log(id + 1) > 9.8": 20,
    "log(10, id + 1) > 4.001": 100,
    "log1p(id) > 9.8": 20,
    "expm1(id / 1000D) < 1": 7,
    "cbrt(id) >= 20": 120,
    "power(id, 2) > 361000000": 10,
    "pow(id, 0.5D) < 9.9": 1,
    "bround(id, -3) = 10000": 11,
    "date_format(ts, 'yyyy/MM/dd') = '2025/01/15'": 1,
    "date_format(ts, 'yyyyMMddHH') >= '2025031900'": 1,
    "date_format(ts, 'MM') = '02'": 28,
    "date_format(ts, 'dd') = '31'": 3,
    "make_date(year(d), month(d), 1) = date'2025-01-01'": 31,
    "make_date(2024, 2, id) < date'2024-02-05' and id between 1 and 28": 1,
    f"id in ({', '.join(str(7 * number) for number in range(2000))})": 140,
    f"s in ({', '.join(map(repr, KEYS))})": 40,
}


@pytest.mark.parametrize(("text", "ideal"), IDEAL.items(), ids=lambda value: str(value)[:40])
def test_a_function_lets_parts_be_skipped(text: str, ideal: int) -> None:
    """Each filter reads the parts that have a match, and no more."""
    decision = decide(parse_filter(text, SCHEMA), BOUNDS, ROWS, (NOW, NOW + 1))
    assert int(decision.read.sum()) == ideal


def is_read(text: str, columns: str, session: Session | None = None, **columns_: list[Any]) -> bool:
    """Tell whether a part is read."""
    return parts_read(text, columns, [columns_], session) == [0]


def test_what_follows_a_shorter_string_may_come_above_a_longer_one() -> None:
    """`a` and `z` make `az`, which is above `abz`, though `a` is below `ab`."""
    assert is_read("concat(s, 'z') = 'az'", "s string", s=["a", "ab"])
    assert not is_read("concat(s, 'a') > 'ac'", "s string", s=["a", "ab"])
    assert is_read("concat(s, 'a') < 'aba'", "s string", s=["a", "ab"])


@pytest.mark.parametrize(
    "text", ["s rlike '^a|z'", "s rlike 'ab'", "s rlike '(?i)^A'", "s rlike '^a{'", "s rlike i"]
)
def test_other_regular_expressions_say_nothing(text: str) -> None:
    """An alternative, a missing anchor, a flag or an error keeps the part."""
    assert is_read(text.replace(" i", " cast(i as string)"), "s string, i int", s=["zab", "zac"], i=[1, 2])


def test_letters_outside_of_ascii_decide_nothing() -> None:
    """What `ß` becomes has letters of its own."""
    assert is_read("upper(s) = 'SS'", "s string", s=["ß"])
    assert is_read("upper(s) = 'I'", "s string", s=["\u0131"])
    assert not is_read("upper(s) = 'C'", "s string", s=["ab", "aß"])
    assert is_read("upper(s) = 'Z'", "s string", s=["Y", "b"])


def test_spaces_are_cut_from_where_they_are() -> None:
    """A string that may begin with a space may become any; one that ends with spaces is less without them."""
    assert is_read("trim(s) = 'b'", "s string", s=[" b", "a"])
    assert is_read("rtrim(s) = 'a'", "s string", s=["a ", "a!"])
    assert is_read("rtrim(s) = 'a'", "s string", s=["a\x01b", "a "])
    assert not is_read("rtrim(s) = 'a'", "s string", s=["a!", "ab"])


def test_outside_of_its_domain_a_function_is_nan_or_null() -> None:
    """A root of a negative number is NaN, and so greater than all; a logarithm of none is null."""
    assert is_read("sqrt(f) > 1e300", "f double", f=[-1.0, 4.0])
    assert not is_read("sqrt(f) > 3", "f double", f=[0.0, 4.0])
    assert is_read("ln(f) is null", "f double", f=[0.0, 4.0])
    assert not is_read("ln(f) is null", "f double", f=[0.5, 4.0])
    assert is_read("isnan(exp(f))", "f double", f=[math.nan, 1.0])
    assert is_read("power(f, 0.5D) > 1e300", "f double", f=[-1.0, 4.0])
    assert not is_read("power(f, 2) < 0", "f double", f=[-3.0, 4.0])
    assert is_read("power(f, 2) < 1", "f double", f=[-3.0, 4.0])
    assert is_read("power(f, -1) = double('inf')", "f double", f=[0.0, 4.0])


def test_a_date_that_there_is_not_fails_or_is_null() -> None:
    """The 30th of February is an error in ANSI mode, and null otherwise."""
    row: dict[str, Any] = {"i": [1, 30]}
    assert is_read("make_date(2024, 2, i) > date'2025-01-01'", "i int", **row)
    assert not is_read("make_date(2024, 2, i) > date'2025-01-01'", "i int", Session(ansi=False), **row)
    assert is_read("make_date(2024, 2, i) is null", "i int", Session(ansi=False), **row)


@pytest.mark.parametrize(
    "text",
    [
        "size(a) > 1",
        "cardinality(a) >= 0",
        "array_contains(a, 1)",
        "element_at(a, 1) = 1",
        "element_at(m, 'x') = 1",
    ],
)
def test_what_a_missing_array_holds_is_null(text: str) -> None:
    """A part in which an array or a map is always null is skipped, as where it is younger than the part."""
    parts: list[dict[str, list[Any]]] = [
        {"a": [None], "m": [None]},
        {"a": [None, [1, 2]], "m": [None, {"x": 1}]},
    ]
    schema = parse_schema_ddl("a array<int>, m map<string, int>")
    bounds = {
        field.id: bounds_columns(
            [FieldStats(sum(each is None for each in part[field.name]), 0) for part in parts], field.type
        )
        for field in schema.fields
    }
    rows = pa.array([1, 2], pa.int64())
    assert decide(parse_filter(text, schema), bounds, rows).read.tolist() == [False, True]
    assert not decide(parse_filter("size(a) < -1", schema, Session(ansi=False)), bounds, rows).read.any()
    assert decide(parse_filter("size(a) < 0", schema, Session(ansi=False)), bounds, rows).read.all()

"""Precision: keeping every part would be sound, so for each function here is a part that must be skipped."""

from __future__ import annotations

from typing import Any

import pytest

from instar.skipping import Session
from tests.unit.skipping.foreseen import parts_read

COLUMNS = (
    "b boolean, ti tinyint, i int, j int, l bigint, f double, g float, dc decimal(10,2), s string, d date, "
    "ts timestamp, tn timestamp_ntz, bi binary, ds string, dn string"
)
DAY = 86_400_000_000
D = 20_103  # 2025-01-15, a Wednesday
PART: dict[str, list[Any]] = {
    "b": [True, True],
    "ti": [1, 5],
    "i": [10, 20],
    "j": [100, 200],
    "l": [1000, 2000],
    "f": [1.5, 2.5],
    "g": [1.5, 2.5],
    "dc": ["1.50", "2.50"],
    "s": ["k0012a", "k0012z"],
    "d": [D, D + 2],
    "ts": [D * DAY + 3_600_000_000, D * DAY + 7_200_000_000],
    "tn": [D * DAY + 3_600_000_000, D * DAY + 7_200_000_000],
    "bi": [b"\x01", b"\x05"],
    "ds": ["2025-01-15", "2025-01-15"],
    "dn": ["20250115", "20250115"],
}
SKIPPED = [
    *(
        "i > 20",
        "i >= 21",
        "i < 10",
        "i <= 9",
        "i = 5",
        "i <> i and false",
        "i <=> 5",
        "i <=> null",
        "not (i <= 20)",
    ),
    *(
        "i in (1, 2, 30)",
        "i not in (10) and i < 11 and i <> 10 and i = 9",
        "i between 21 and 30",
        "i is null",
    ),
    *("i > 5 and i < 8", "i > 15 and i < 12", "i > 20 or i < 10", "i > j", "j < i", "i = j", "i + j < 110"),
    *(
        "ti + i > 25",
        "i - j > -80",
        "i * j > 4000",
        "i / 10 > 2",
        "l div 100 > 20",
        "i % 100 > 20",
        "i % 7 > 6",
    ),
    *(
        "pmod(i, 100) > 20",
        "-i > -10",
        "abs(i - 15) > 5",
        "sign(i) < 0",
        "ceil(f) > 3",
        "floor(f) < 1",
        "round(f) > 3",
    ),
    *(
        "round(dc, 1) > 2.5",
        "ceil(dc) > 3",
        "dc + 1 > 3.5",
        "dc * 2 > 5",
        "dc / 2 > 1.3",
        "dc = 3",
        "dc > f + 1.1",
    ),
    *(
        "greatest(i, j) > 200",
        "least(i, j) > 20",
        "coalesce(i, 99) > 20",
        "nvl(i, 99) > 20",
        "nullif(i, 5) = 5",
    ),
    *(
        "if(b, 1, 2) = 2",
        "case when i < 5 then 'x' when i > 30 then 'y' else 'z' end = 'y'",
        "b = false",
        "not b",
    ),
    *("case when i > 12 then i else 12 end < 12", "cast(i as bigint) > 20", "cast(i as string) is null"),
    *(
        "cast(f as int) > 2",
        "cast(dc as int) > 2",
        "cast(l as double) > 2000",
        "cast(i as decimal(10,2)) > 20",
    ),
    *(
        "try_add(i, 1) > 21",
        "try_cast(l as int) > 2000",
        "isnan(f)",
        "nanvl(f, 99D) > 3",
        "g > 2.5",
        "f * f > 7",
        "f % 1D > 1",
        "cast(i as timestamp) > timestamp'1970-01-01 00:00:20'",
    ),
    *(
        "s like 'k0013%'",
        "s like 'k1_%'",
        "s = 'k0011'",
        "startswith(s, 'k2')",
        "substring(s, 1, 5) = 'k0013'",
    ),
    *("left(s, 2) = 'k1'", "concat('x', s) > 'xk0012zz'", "length(s) = 0", "s > 'k0012z'", "s || 'a' < 'k'"),
    *(
        "bi = x'06'",
        "bi < x'01'",
        "d = date'2025-01-18'",
        "d > '2025-01-17'",
        "year(d) = 2024",
        "quarter(d) = 2",
    ),
    *(
        "month(d) = 2",
        "day(d) = 18",
        "dayofyear(d) > 17",
        "weekofyear(d) = 4",
        "dayofweek(d) = 1",
        "weekday(d) = 6",
    ),
    *(
        "trunc(d, 'MM') > date'2025-01-01'",
        "last_day(d) > date'2025-01-31'",
        "date_add(d, 1) > date'2025-01-18'",
    ),
    *(
        "date_sub(d, 1) < date'2025-01-14'",
        "datediff(d, date'2025-01-10') > 7",
        "add_months(d, 1) > date'2025-02-17'",
    ),
    *(
        "d + interval 1 month > date'2025-02-17'",
        "d - interval 1 day < date'2025-01-14'",
        "d + 1 > date'2025-01-18'",
    ),
    *(
        "hour(ts) = 3",
        "minute(ts) = 7 and hour(ts) = 5",
        "date_trunc('hour', ts) < timestamp'2025-01-15 01:00:00'",
    ),
    *(
        "date_trunc('day', ts) = timestamp'2025-01-16'",
        "cast(ts as date) = date'2025-01-16'",
        "to_date(ts) > '2025-01-15'",
    ),
    *(
        "ts + interval 1 hour > timestamp'2025-01-15 03:00:00'",
        "ts - interval 1 day > timestamp'2025-01-14 02:00:00'",
    ),
    *("ts + interval 1 month > timestamp'2025-02-16 00:00:00'", "unix_timestamp(ts) < 1736902800"),
    *(
        "from_unixtime(l) > '1970-01-01 00:33:20'",
        "date_format(ts, 'yyyy-MM') = '2025-02'",
        "cast(d as string) > '2025-01-17'",
    ),
    *(
        "from_utc_timestamp(ts, 'Asia/Kolkata') > timestamp'2025-01-15 07:30:00'",
        "ts > now()",
        "d > current_date()",
    ),
    *("to_utc_timestamp(ts, 'Asia/Kolkata') > timestamp'2025-01-14 20:30:00'", "months_between(ts, ts) > 3"),
    *(
        "ts - timestamp'2025-01-15 00:00:00' > interval 3 hours",
        "tn > timestamp_ntz'2025-01-15 02:00:00'",
        "hour(tn) = 5",
    ),
    *(
        "cast(tn as date) = date'2025-01-16'",
        "timestamp_seconds(l) > timestamp'1970-01-01 00:33:20'",
        "i > 5 + 15",
    ),
    *(
        "cast(ts as bigint) > 1736906400",
        "ti > 127",
        "i = '99'",
        "f > '2.5'",
        "i in (1, null)",
        "(i > 20) is true",
    ),
    *(
        "unix_millis(ts) < 0",
        "unix_date(d) < 20103",
        "extract(year from ts) = 2026",
        "date_part('month', d) = 5",
    ),
    *("extract(week from ts) = 4", "extract(doy from d) > 17", "date_part('dow', ts) = 3", "d > '2025-02'"),
    *("dateadd(day, 1, ts) > '2025-01-17'", "timestampadd(hour, 2, ts) < '2025-01-15 03:00'"),
    *(
        "dateadd(d, 3) > '2025-01-20'",
        "ts > timestamp'2025-01-14' + interval 1 day 3 hours",
        "s = r'k\\d'",
        "s = 'k' '0013'",
    ),
    # a part with one text, as where a file has the rows of one day
    *("to_date(ds) > '2025-01-15'", "cast(ds as date) = date'2025-01-16'", "ds > current_date()"),
    *("to_date(dn, 'yyyyMMdd') > '2025-01-15'", "to_timestamp(dn, 'yyyyMMdd') < '2025-01-15'"),
    *(
        "cast(dn as int) < 20250115",
        "try_to_date(ds) is null",
        "cast(ds as timestamp) > '2025-01-15 00:00:00'",
    ),
    *("to_date(ds, 'yyyy-MM-dd') <> '2025-01-15'", "cast(dn as double) > 20250115"),
    # texts that a function writes in the order of time
    *("cast(date_format(d, 'yyyyMMdd') as int) > 20250117", "to_date(from_unixtime(l)) > '1970-01-01'"),
    *(
        "cast(from_unixtime(l) as timestamp) > '1970-01-01 00:33:20'",
        "cast(date_format(ts, 'HH') as int) > 2",
    ),
    # numbers as text, and text in pieces
    *(
        "cast(i as string) > '20'",
        "substr(cast(j as string), 1, 1) > '2'",
        "cast(l / 1000 as timestamp) > timestamp_seconds(2)",
    ),
    *("cast(dc as timestamp) > timestamp_seconds(3)", "substr(s, 2, 4) > '0012'", "substring(s, 5) > '2z'"),
    *(
        "s rlike '^(k0013|k0014)'",
        "s rlike '^k00(?:13|14)[0-9]*'",
        "s ilike 'K0013%'",
        "s not ilike 'K0012%'",
    ),
    *("s like any ('k0013%', 'x%')", "s not like all ('k0012%', 'x%')", "trim(leading from s) > 'k0012z'"),
    # shorthands, and bits beside other conditions
    *(
        "decode(i, 1, 'a', 2, 'b', 'c') = 'b'",
        "equal_null(i, 5)",
        "zeroifnull(i) = 0",
        "nullifzero(i) is null",
    ),
    *("try_mod(i, 100) > 20", "pmod(l, 1500) = 1500", "pmod(i - 100, 30) < 0", "pmod(j, 1000) > 200"),
    *("i & 1 = 1 and i > 20", "not (i <= 20 or i | 1 = 5)", "sqrt(j) < 10", "btrim(s) > 'k0012z'"),
]


@pytest.mark.parametrize("text", SKIPPED)
def test_a_part_that_cannot_match_is_skipped(text: str) -> None:
    """The bounds of this part rule the filter out, and the interpreter sees it."""
    later = (D + 9) * DAY, (D + 9) * DAY + 1
    assert parts_read(text, COLUMNS, [PART], now=later) == []


ZONED = [
    ("Europe/Berlin", "hour(ts) = 4"),
    ("Europe/Berlin", "date_trunc('day', ts) = timestamp'2025-01-16'"),
    ("America/New_York", "cast(ts as date) = date'2025-01-15'"),
    ("Asia/Kolkata", "minute(ts) = 29 and hour(ts) = 5"),
    ("Pacific/Apia", "year(ts) = 2024"),
    ("Australia/Lord_Howe", "ts > timestamp'2025-01-15 13:00:00'"),
    ("+05:30", "hour(ts) = 3"),
]


@pytest.mark.parametrize(("zone", "text"), ZONED)
def test_zones_are_followed_exactly(zone: str, text: str) -> None:
    """Where no clock changes, local time is as precise as UTC."""
    assert parts_read(text, COLUMNS, [PART], Session(zone)) == []


@pytest.mark.parametrize(
    "text",
    [
        "case when i <> 0 then 100 / i else 0 end > 500",
        "if(i = 0, 0, 100 / i) > 500",
        "100 / nullif(i, 0) > 500",
        "try_divide(100, i) > 500",
        "try_divide(100, j) < -200",
        "if(i <> 10, i, 0) = 10",
        "i <> 0 and i < 1",
    ],
)
def test_a_guarded_divisor_is_not_zero(text: str) -> None:
    """A column that is not one of its ends has others, and an integer that is not 0 is at least 1."""
    assert parts_read(text, "i int, j int", [{"i": [0, 10], "j": [-10, 10]}]) == []
    nulls: dict[str, list[Any]] = {"i": [0, 10, None], "j": [0, 1, None]}
    assert parts_read("if(i <> 0, 1, 2) = 2", "i int, j int", [nulls]) == [0]
    assert parts_read("if(i <> j, i, null) = 0", "i int, j int", [nulls]) == [0]

"""What Spark does that nobody would guess: roundings, errors and readings that it alone has."""

from __future__ import annotations

import json
from decimal import Decimal as PyDecimal
from typing import Any

import pytest

from instar.schema import Primitive, parse_schema_ddl
from instar.skipping import Anything, Call, Function, Literal, Mode, Session, parse_catalyst, parse_filter
from instar.skipping.literals import fold_string
from tests.unit.skipping.foreseen import parts_read

LEGACY = Session(ansi=False)
DEEP = "g decimal(38,18)"
SECOND = 1_000_000


def is_read(text: str, columns: str, session: Session | None = None, **row: Any) -> bool:  # noqa: ANN401
    """Tell whether a part of one row is read."""
    return parts_read(text, columns, [{name: [value] for name, value in row.items()}], session) == [0]


def test_unix_timestamp_drops_fractions_towards_1970() -> None:
    """Half a second before 1970 is 0 for unix_timestamp, and -1 for unix_seconds and a cast."""
    half: dict[str, Any] = {"ts": -SECOND // 2}
    for name in ("unix_timestamp", "to_unix_timestamp"):
        assert is_read(f"{name}(ts) = 0", "ts timestamp", **half)
        assert not is_read(f"{name}(ts) = -1", "ts timestamp", **half)
    for text in ("unix_seconds(ts)", "cast(ts as bigint)"):
        assert is_read(f"{text} = -1", "ts timestamp", **half)
        assert not is_read(f"{text} = 0", "ts timestamp", **half)


def test_unix_timestamp_of_a_local_time_knows_no_zone() -> None:
    """A timestamp without a time zone is counted as if it were UTC."""
    berlin = Session("Europe/Berlin")
    row: dict[str, Any] = {"n": 1_735_689_600 * SECOND}
    assert is_read("unix_timestamp(n) = 1735689600", "n timestamp_ntz", berlin, **row)
    assert not is_read("unix_timestamp(n) = 1735686000", "n timestamp_ntz", berlin, **row)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("cast(g as int) = 5", "4.999999999999999999"),
        ("cast(g as smallint) = -5", "-4.999999999999999999"),
        ("cast(g as int) = 1", "2147483647.999999999999999999"),
        ("cast(g as tinyint) = 1", "127.999999999999999999"),
    ],
)
def test_many_digits_become_a_double_on_their_way_to_an_integer(text: str, value: str) -> None:
    """A decimal just below a whole number is that number as an int, which may not fit."""
    assert is_read(text, DEEP, g=PyDecimal(value))


def test_a_bigint_is_cut_off_exactly() -> None:
    """Only casts to smaller integers go by way of a double."""
    row: dict[str, Any] = {"g": PyDecimal("4.999999999999999999")}
    assert not is_read("cast(g as bigint) = 5", DEEP, **row)
    assert is_read("cast(g as bigint) = 4", DEEP, **row)
    assert not is_read("cast(c as int) = 5", "c decimal(10,2)", c=PyDecimal("4.99"))


@pytest.mark.parametrize("session", [Session(), LEGACY], ids=["ansi", "legacy"])
def test_a_changed_sign_keeps_34_digits(session: Session) -> None:
    """Negation and abs round a long decimal, and fail in both modes where it then has too many digits."""
    most = PyDecimal("99999999999999999999.999999999999999999")
    long = PyDecimal("12345678901234567890.123456789012345678")
    assert is_read("-g > 0", DEEP, session, g=most)
    assert is_read("abs(g) < 0", DEEP, session, g=most.copy_negate())
    assert is_read("-g = -12345678901234567890.12345678901235", DEEP, session, g=long)
    assert not is_read("-g > 0", DEEP, session, g=long)
    assert not is_read("-g = -1.5", DEEP, session, g=PyDecimal("1.499999999999999999"))


@pytest.mark.parametrize("session", [Session(), LEGACY], ids=["ansi", "legacy"])
def test_a_remainder_fails_where_the_quotient_is_too_long(session: Session) -> None:
    """`%` and pmod of decimals need a quotient of no more than 38 digits."""
    columns = "k decimal(38,0), m decimal(38,30)"
    row: dict[str, Any] = {"k": PyDecimal(10**30), "m": PyDecimal("7e-30")}
    assert is_read("k % m > 5.0", columns, session, **row)
    assert is_read("pmod(k, m) > 5.0", columns, session, **row)
    assert not is_read("k % m > 5.0", columns, session, **{**row, "k": PyDecimal(10**8)})


def test_a_narrowed_bigint_is_rounded_to_a_float_once() -> None:
    """What another conjunct says of a column does not change how the column is rounded."""
    text = "l > 0 and cast(l as float) > cast(1152921504606846976 as float)"
    assert is_read(text, "l bigint", l=1_152_921_573_326_323_713)
    # The least bigint in another part makes no difference.
    parts = [{"l": [1_152_921_710_765_277_183]}, {"l": [-(1 << 63), 5]}]
    text = "if(l < 2000000000000000000, cast(l as float), null) <= cast(1152921642045800448 as float)"
    assert parts_read(text, "l bigint", parts) == [0, 1]


@pytest.mark.parametrize("zone", ["Nowhere/Bad", "+530", "posix/Europe/Berlin", "+19:00", "+05:99"])
@pytest.mark.parametrize("value", [0, None])
def test_a_zone_that_is_none_fails(zone: str, value: int | None) -> None:
    """A conversion to a zone that Java does not have is an error, even of nothing but nulls."""
    for name in ("from_utc_timestamp", "to_utc_timestamp"):
        assert is_read(f"{name}(ts, '{zone}') = timestamp'2035-01-01'", "ts timestamp", ts=value)
    assert not is_read("from_utc_timestamp(ts, '+05:30') = timestamp'2035-01-01'", "ts timestamp", ts=value)


@pytest.mark.parametrize(
    "text",
    [
        "p = q in (true, false)",
        "p = q not in (true)",
        "p = q between false and true",
        "p = q >= r",
        "p <=> q in (true, false)",
        "p between q and r = false",
        "s like 'a' = true",
        "p = s like 'b'",
        "s || 1 + 2 = 'a3'",
    ],
)
def test_operands_that_spark_groups_otherwise_are_left_to_it(text: str) -> None:
    """Spark reads `p = q in (…)` as `(p = q) in (…)`: such a condition says nothing, and only it."""
    columns = "p boolean, q boolean, r boolean, s string, i int"
    row: dict[str, Any] = {"p": False, "q": False, "r": False, "s": "b", "i": 1}
    assert is_read(text, columns, **row)
    assert not is_read(f"{text} and i = 2", columns, **row)
    assert not is_read("(p = q) in (false)", columns, **row)
    assert not is_read("p = (q in (false))", columns, **row)


def test_legacy_lists_and_choices_of_dates_and_strings_are_strings() -> None:
    """Only a comparison reads a string as a date in legacy mode; ANSI mode always does."""
    row: dict[str, Any] = {"d": 20_093}
    for text in (
        "d not in ('2025-1-5')",
        "coalesce(d, '2025-1-5') <> '2025-01-05'",
        "greatest(d, '3') > '2'",
    ):
        assert is_read(text, "d date", LEGACY, **row)
    assert not is_read("d not in ('2025-1-5')", "d date", **row)
    assert not is_read("d <> '2025-1-5'", "d date", LEGACY, **row)


@pytest.mark.parametrize(
    "text",
    [
        "ts = '2024-01-01Z'",
        "ts = '2025-01-01+05:00'",
        "ts = '2025-01-01 00:00:00+19:00'",
        "ts = '2025-01-01 00:00:00+05:99'",
        "i = '\u0661\u0662'",
        "d = '\uff12\uff10\uff12\uff14-01-01'",
        "c = '\u0661'",
    ],
)
def test_what_is_no_value_in_spark_is_none_here(text: str) -> None:
    """A text that Spark refuses with an error keeps the part."""
    columns = "ts timestamp, i int, d date, c decimal(10,2)"
    assert is_read(text, columns, ts=0, i=0, d=0, c=PyDecimal(0))


def printed(value: str, type_: str = "string") -> str:
    """Return a value as Catalyst prints a literal."""
    name = "org.apache.spark.sql.catalyst.expressions.Literal"
    return json.dumps([{"class": name, "num-children": 0, "value": value, "dataType": type_}])


def test_a_printed_replacement_character_may_be_any_bytes() -> None:
    """Spark prints U+FFFD for bytes that are no UTF-8, so such a literal is not known."""
    assert isinstance(parse_catalyst(printed("a\ufffd"), {}, "UTC"), Anything)
    assert parse_catalyst(printed("ab"), {}, "UTC") == Literal("ab", Primitive("string"))
    # A text in SQL is not printed by anybody.
    assert str(parse_filter("s < '\ufffd'", parse_schema_ddl("s string"))) == "(s < '\ufffd')"


def test_a_local_time_is_printed_as_it_is_held() -> None:
    """Spark prints a timestamp without a time zone in microseconds, and not as it is written."""
    local = Primitive("timestamp_ntz")
    assert parse_catalyst(printed("-500000", "timestamp_ntz"), {}, "UTC") == Literal(-500_000, local)


def test_errors_of_other_conjuncts_are_not_seen() -> None:
    """What conjuncts exclude that never fail is excluded, alone or together, whatever a third would do."""
    row: dict[str, Any] = {"i": 0, "j": 7}
    assert not is_read("1 / i > 1 and j = 5", "i int, j int", **row)
    assert is_read("1 / i > 1 and j = 7", "i int, j int", **row)
    parts = [{"i": [0, 9], "j": [0, 5], "k": [0, 1]}]
    assert parts_read("1 / k > 1 and i > 5 and i < j", "i int, j int, k int", parts) == []
    assert parts_read("1 / k > 1 and 1 / i < 1 and i < j", "i int, j int, k int", parts) == [0]


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("2025-01-15 10:00", 1_736_935_200 * SECOND),
        ("2025-01-15T10:00", 1_736_935_200 * SECOND),
        ("2025-01-15 10:00:00 UTC", 1_736_935_200 * SECOND),
        ("2025-01-15 10:00:00.5UTC", 1_736_935_200 * SECOND + SECOND // 2),
        ("2025-01-15 11:00:00 Europe/Berlin", 1_736_935_200 * SECOND),
        ("2025-01", 1_735_689_600 * SECOND),
        ("2025", 1_735_689_600 * SECOND),
    ],
)
def test_short_and_zoned_texts_are_timestamps(text: str, micros: int) -> None:
    """A time may lack its seconds, a date its day and month, and after the seconds may come any zone."""
    assert fold_string(text, Primitive("timestamp"), "UTC") == Literal(micros, Primitive("timestamp"))


@pytest.mark.parametrize(
    "text", ["2025-01 10:00", "2025-01-15 10:00 UTC", "2025-01-15T", "2025-1-15 10", "202"]
)
def test_other_texts_are_left_to_spark(text: str) -> None:
    """A time belongs to a whole date, and a zone to a whole time."""
    assert fold_string(text, Primitive("timestamp"), "UTC") is None
    assert fold_string("2025-01-15 10:00:00Z", Primitive("timestamp_ntz"), "UTC") is None


def test_hours_that_are_added_pass() -> None:
    """Where clocks go forward, 48 hours end an hour later than two days, except as an interval."""
    berlin = Session("Europe/Berlin")
    row: dict[str, Any] = {"ts": 1_743_202_800 * SECOND}  # 2025-03-29 00:00
    for text, end in (
        ("dateadd(hour, 48, ts)", "2025-03-31 01:00:00"),
        ("timestampadd(day, 2, ts)", "2025-03-31 00:00:00"),
        ("ts + interval '48' hour", "2025-03-31 00:00:00"),
    ):
        assert is_read(f"{text} = '{end}'", "ts timestamp", berlin, **row)
        assert not is_read(f"{text} <> '{end}'", "ts timestamp", berlin, **row)


@pytest.mark.parametrize(
    ("unit", "micros", "zone"),
    [("DAY", 172_800 * SECOND, "Europe/Berlin"), ("HOUR", 7_200 * SECOND, "UTC"), ("FORTNIGHT", None, None)],
)
def test_dateadd_is_read_from_plans(unit: str, micros: int | None, zone: str | None) -> None:
    """Days are added by the clocks of the zone, hours are not, and other units are not known."""
    stamp = Literal(0, Primitive("timestamp_ntz"))
    node = {"class": "x.TimestampAdd", "num-children": 2, "unit": unit, "quantity": 0, "timestamp": 1}
    nodes = [
        node | {"timeZoneId": "Europe/Berlin"},
        *json.loads(printed("2", "integer")),
        *json.loads(printed("0", "timestamp_ntz")),
    ]
    read = parse_catalyst(json.dumps(nodes), {}, "UTC")
    step = Literal(micros, Primitive("interval day to second"))
    known = Call(Function.ADD_DAY_TIME, (stamp, step), stamp.type, Mode.UNKNOWN, zone)
    assert read == (Anything("TimestampAdd") if micros is None else known)

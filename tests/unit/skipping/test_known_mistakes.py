"""Mistakes that others made, each of which lost rows or raised an alarm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from instar.errors import UsageError
from instar.schema import Primitive, parse_schema_ddl
from instar.skipping import Anything, Decision, Session, Verdict, decide, parse_filter
from instar.stats import FieldStats, bounds_columns, null_bounds, unite_bounds
from tests.unit.skipping.foreseen import parts_read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAN = math.nan
UTC = 1_000_000


def decide_stats(
    text: str, columns: str, stats: Mapping[str, Sequence[FieldStats | None]], rows: list[int]
) -> Decision:
    """Decide a filter over statistics as they are."""
    schema = parse_schema_ddl(columns)
    bounds = {
        field.id: bounds_columns(stats[field.name], field.type)
        for field in schema.fields
        if field.name in stats
    }
    return decide(parse_filter(text, schema), bounds, pa.array(rows, pa.int64()))


def test_nan_is_greater_than_everything() -> None:
    """`f > 19000` reads a part whose numbers are small and that has a NaN."""
    parts = [{"f": [1.0, NAN]}, {"f": [1.0, 2.0]}, {"f": [NAN, NAN]}]
    assert parts_read("f > 19000", "f double", parts) == [0, 2]
    assert parts_read("f < 19000", "f double", parts) == [0, 1]
    assert parts_read("f = double('nan')", "f double", parts) == [0, 2]


def test_a_negated_nan_is_not_a_bound() -> None:
    """Negating [-inf, NaN] loses nothing: 1 and NaN are still there."""
    parts = [{"f": [-math.inf, 1.0, NAN]}]
    assert parts_read("-f = -1D", "f double", parts) == [0]
    assert parts_read("-f > 1000D", "f double", parts) == [0]


def test_infinities_make_nan() -> None:
    """Inf * 0, inf - inf and inf / inf are NaN, whether or not 0 is a bound."""
    assert parts_read("isnan(f * g)", "f double, g double", [{"f": [-1.0, 1.0], "g": [1.0, math.inf]}]) == [0]
    assert parts_read(
        "isnan(f - g)", "f double, g double", [{"f": [1.0, math.inf], "g": [0.0, math.inf]}]
    ) == [0]
    assert parts_read(
        "isnan(f / g)", "f double, g double", [{"f": [1.0, math.inf], "g": [1.0, math.inf]}]
    ) == [0]
    assert parts_read("isnan(f * g)", "f double, g double", [{"f": [1.0, 2.0], "g": [1.0, 2.0]}]) == []


def test_numbers_as_text_are_in_another_order() -> None:
    """As text, 100 comes before 9, and -2 after -1. Numbers of as many digits and no sign keep order."""
    parts = [{"i": [9, 100]}, {"i": [-2, -1]}, {"i": [10, 99]}]
    assert parts_read("cast(i as string) = '50'", "i int", parts) == [0, 1, 2]
    assert parts_read("cast(i as string) > '99'", "i int", parts) == [0, 1]


def test_most_strings_between_two_dates_are_no_dates() -> None:
    """A cast may fail on a string that a part could have, so only a part with a single one is skipped."""
    parts = [{"s": ["2024-05-01", "2024-05-31"]}, {"s": ["2024-05-01"] * 2}, {"s": ["2024-02-30"] * 2}]
    assert parts_read("cast(s as date) > '2024-06-01'", "s string", parts) == [0, 2]
    assert parts_read("to_date(s, 'yyyy-MM-dd') > '2024-06-01'", "s string", parts) == [0, 2]
    assert parts_read("to_date(s, 'dd.MM.yyyy') > '2024-06-01'", "s string", parts) == [0, 1, 2]


def test_a_condition_on_written_times_is_not_taken_for_the_times() -> None:
    """What narrows the texts need not look like them: `2024` is below all texts such as `20240501`."""
    parts = [{"d": [19_844, 19_874]}]  # in May 2024
    text = "if(date_format(d, 'yyyyMMdd') < '2025', cast(date_format(d, 'yyyyMMdd') as int), 0)"
    assert parts_read(f"{text} = 20240513", "d date", parts) == [0]
    assert parts_read("cast(date_format(d, 'yyyyMMdd') as int) = 20240701", "d date", parts) == []


def test_an_hour_that_comes_twice_is_written_twice() -> None:
    """Times that are written and read again may move by the hour that clocks were put back."""
    part = {"l": [1_698_537_600, 1_698_541_200]}  # 02:00 twice in Berlin
    zone = Session("Europe/Berlin")
    read = "cast(from_unixtime(l) as timestamp)"
    assert parts_read(f"{read} = timestamp_seconds(1698537600)", "l bigint", [part], zone) == [0]
    assert parts_read(f"{read} > timestamp_seconds(1698548400)", "l bigint", [part], zone) == []


def test_a_substring_keeps_order_only_behind_a_common_beginning() -> None:
    """Behind `a` and `b` any characters may follow."""
    parts = [{"s": ["a1", "b0"]}, {"s": ["a1", "a3"]}, {"s": ["日1", "日3"]}, {"s": ["a", "a3"]}]
    assert parts_read("substr(s, 2, 1) = '2'", "s string", parts) == [0, 1, 2, 3]
    assert parts_read("substr(s, 2, 1) = '4'", "s string", parts) == [0]
    assert parts_read("substr(s, 3) = '4'", "s string", parts) == [0, 1, 2, 3]
    assert parts_read("substr(s, -1, 1) = '4'", "s string", parts) == [0, 1, 2, 3]


def test_an_optional_group_is_no_prefix() -> None:
    """`^(x|y)?` matches every string."""
    parts = [{"s": ["a", "b"]}]
    assert parts_read("s rlike '^(x|y)'", "s string", parts) == []
    for pattern in ("^(x|y)?", "^(x|y)*a", "^(x|y)|a", "^a(x|y)?b"):
        assert parts_read(f"s rlike '{pattern}'", "s string", parts) == [0]


def test_bits_bind_as_spark_has_it() -> None:
    """`i & 1 = 1` may bind in another way than it was read, so it decides nothing, and others still do."""
    parts = [{"i": [1, 5]}]
    assert isinstance(parse_filter("i & 1 = 8", parse_schema_ddl("i int")), Anything)
    assert parts_read("i & 1 = 8", "i int", parts) == [0]
    assert parts_read("i | 8 > 100 or i = 9", "i int", parts) == [0]
    assert parts_read("i & 1 = 1 and i = 9", "i int", parts) == []


def test_the_zeros_are_equal_but_print_differently() -> None:
    """-0.0 = 0.0, and a range of zeros is not taken for one value when it becomes text."""
    parts = [{"f": [-0.0, 0.0]}, {"f": [1.0]}]
    assert parts_read("f = 0.0D", "f double", parts) == [0]
    assert parts_read("f = -0.0D", "f double", parts) == [0]
    assert parts_read("cast(f as string) = '0.0'", "f double", parts[:1]) == [0]
    assert parts_read("cast(f as string) = '-0.0'", "f double", parts[:1]) == [0]


def test_if_takes_else_where_its_condition_is_null() -> None:
    """IF(null, a, b) is b."""
    parts: list[dict[str, list[Any]]] = [{"b": [None, None]}, {"b": [True, True]}, {"b": [True, None]}]
    assert parts_read("if(b, 1, 2) = 2", "b boolean", parts) == [0, 2]
    assert parts_read("case when b then 1 else 2 end = 1", "b boolean", parts) == [1, 2]


def test_an_error_inside_a_range_counts() -> None:
    """A cast that fails only between the bounds keeps the part, in whatever place it fails."""
    assert parts_read("cast(s as int) = 5", "s string", [{"s": ["1", "2"]}]) == [0]
    assert parts_read("1 / i = 7", "i int", [{"i": [-1, 1]}, {"i": [1, 5]}]) == [0]


def test_failing_at_both_ends_is_not_failing_everywhere() -> None:
    """The values between two ends that overflow are still values."""
    parts = [{"l": [-(1 << 62), 0, 1 << 62]}]
    assert parts_read("try_multiply(l, 4L) = 0", "l bigint", parts) == [0]


def test_a_fallible_conjunct_poisons_only_itself() -> None:
    """A conjunct that may fail does not keep a part that another excludes, on either side of it."""
    parts: list[dict[str, list[Any]]] = [{"d": [1, 1], "s": ["a", "b"]}, {"d": [2, None], "s": ["a", "b"]}]
    for text in ("d = 1 and cast(s as int) = 5", "cast(s as int) = 5 and d = 1", "d = 1 and unheard_of(s)"):
        assert parts_read(text, "d int, s string", parts) == [0]
    both = "(d = 1 and unheard_of(s)) or (d = 3 and unheard_of(s))"
    assert parts_read(both, "d int, s string", parts) == [0]


def test_an_error_that_decides_alone_keeps_the_part() -> None:
    """A filter that may fail is read, even if it can never be true."""
    assert parts_read("1 / i < -100", "i int", [{"i": [0, 5]}]) == [0]
    assert parts_read("try_divide(1, i) < -100", "i int", [{"i": [0, 5]}]) == []


def test_a_month_is_not_a_number_of_days() -> None:
    """A month later, 2025-01-31 00:00 comes before 2025-01-30 23:59:59."""
    late, early = 20_118 * 86_400 * UTC + 86_399 * UTC, 20_119 * 86_400 * UTC
    parts = [{"ts": [late, early]}]
    assert parts_read("ts + interval 1 month < timestamp'2025-02-28 12:00:00'", "ts timestamp", parts) == [0]
    assert parts_read("ts + interval 1 month > timestamp'2025-02-28 12:00:00'", "ts timestamp", parts) == [0]
    assert parts_read("ts + interval 1 month > timestamp'2025-03-02 00:00:00'", "ts timestamp", parts) == []


def test_local_time_does_not_grow_with_time() -> None:
    """When clocks go back, an hour comes twice; a range across that has the hours of both."""
    session = Session("Europe/Berlin")
    start = 1_729_990_800 * UTC  # 2024-10-27 01:00 UTC is 02:00 again
    parts = [{"ts": [start - UTC, start]}, {"ts": [start + 3600 * UTC, start + 3601 * UTC]}]
    assert parts_read("hour(ts) = 2 and minute(ts) = 59", "ts timestamp", parts, session) == [0]
    assert parts_read("hour(ts) = 3", "ts timestamp", parts, session) == [1]


def test_bounds_in_the_wrong_order_say_nothing() -> None:
    """Min > max is damage, not an empty range; so is a NaN among the bounds."""
    stats = [FieldStats(0, 0, 5, 3), FieldStats(0, 0, 3, 5)]
    decision = decide_stats("i = 100", "i int", {"i": stats}, [2, 2])
    assert decision.read.tolist() == [True, False]
    broken = [FieldStats(0, 0, NAN, 3.0), FieldStats(0, 0, 1.0, NAN)]
    assert decide_stats("f = 100D", "f double", {"f": broken}, [2, 2]).read.all()


def test_only_nan_is_not_nothing() -> None:
    """A part with -NaN, NaN and 0.0 has a zero besides its NaNs."""
    stats = [FieldStats(0, 2, 0.0, 0.0), FieldStats(0, 3)]
    assert decide_stats("f = 0D", "f double", {"f": stats}, [3, 3]).read.tolist() == [True, False]


def test_missing_statistics_poison_only_their_own_leaf() -> None:
    """An unknown column keeps nothing that another column excludes."""
    stats: dict[str, list[FieldStats | None]] = {
        "i": [FieldStats(0, 0, 1, 2)] * 2,
        "j": [None, FieldStats(0, 0, 1, 1)],
    }
    assert decide_stats("i = 9 and j = 5", "i int, j int", stats, [2, 2]).read.tolist() == [False, False]
    assert decide_stats("i = 1 and j = 5", "i int, j int", stats, [2, 2]).read.tolist() == [True, False]
    assert decide_stats("k = 5 and i = 9", "i int, k int", stats, [2, 2]).read.tolist() == [False, False]


def test_unknown_counts_of_nulls_may_be_nulls() -> None:
    """Without a count of nulls, IS NULL reads the part."""
    stats = [FieldStats(None, 0, 1, 2), FieldStats(0, 0, 1, 2)]
    assert decide_stats("i is null", "i int", {"i": stats}, [2, 2]).read.tolist() == [True, False]


def test_a_field_that_is_younger_than_a_part_is_null_there() -> None:
    """IS NULL reads such a part, and no comparison does."""
    schema = parse_schema_ddl("i int")
    bounds = {1: null_bounds(pa.array([3], pa.int64()), Primitive("int"))}
    rows = pa.array([3], pa.int64())
    assert decide(parse_filter("i is null", schema), bounds, rows).verdict(0) is Verdict.READ
    assert decide(parse_filter("i = 1 or i <> 1", schema), bounds, rows).verdict(0) is Verdict.SKIP
    assert decide(parse_filter("coalesce(i, 7) = 7", schema), bounds, rows).verdict(0) is Verdict.READ


def test_bounds_of_another_type_say_nothing() -> None:
    """Bounds that were not converted to the column's type of today keep the part."""
    bounds = {1: bounds_columns([FieldStats(0, 0, 1, 2)], Primitive("int"))}
    expression = parse_filter("i = 99", parse_schema_ddl("i bigint"))
    assert decide(expression, bounds, pa.array([2], pa.int64())).verdict(0) is Verdict.READ


def test_truncated_bounds_are_still_bounds() -> None:
    """A string that was cut is not taken for a value that is there, and its round-up is inclusive."""
    stats = [FieldStats(0, 0, "ab", "ac")]
    for text in ("s = 'ab'", "s = 'ab12345'", "s like 'ab%'", "length(s) = 7", "s > 'ab' and s < 'ac'"):
        assert decide_stats(text, "s string", {"s": stats}, [5]).read.tolist() == [True]
    for text in ("s = 'aa'", "s > 'ac'", "substring(s, 1, 2) = 'ad'"):
        assert decide_stats(text, "s string", {"s": stats}, [5]).read.tolist() == [False]


def test_strings_compare_by_bytes() -> None:
    """UTF-16 would put U+FFFD after U+10FFFF; bytes do not."""
    parts = [{"s": ["\U0010ffff"]}, {"s": ["\ufffd"]}]
    assert parts_read("s > '\ufffd'", "s string", parts) == [0]
    assert parts_read("startswith(s, '\U0010ffff')", "s string", parts) == [0]


def test_legacy_integers_wrap() -> None:
    """2147483647 + 1 is negative in legacy mode, an error in ANSI mode, and null with try_add."""
    parts = [{"i": [1, (1 << 31) - 1]}]
    assert parts_read("i + 1 < 0", "i int", parts, Session(ansi=False)) == [0]
    assert parts_read("i + 1 < 0", "i int", parts) == [0]
    assert parts_read("try_add(i, 1) < 0", "i int", parts) == []
    assert parts_read("i + 1 < 0", "i int", [{"i": [1, 100]}], Session(ansi=False)) == []


def test_decimal_literals_on_integers_are_not_rounded() -> None:
    """`id = 18999.5` matches nothing, and `id > 18999.5` keeps 19000."""
    parts = [{"l": [18_999, 19_000]}]
    assert parts_read("l > 18999.5", "l bigint", parts) == [0]
    assert parts_read("l = 18999.5", "l bigint", [{"l": [19_000]}]) == []


def test_branches_of_different_columns_are_united() -> None:
    """A CASE over two columns has the values of both."""
    parts: list[dict[str, list[Any]]] = [{"b": [True, False], "i": [1, 1], "j": [9, 9]}]
    columns = "b boolean, i int, j int"
    assert parts_read("case when b then i else j end = 9", columns, parts) == [0]
    assert parts_read("case when b then i else j end = 5", columns, parts) == []


def test_greatest_passes_over_nulls() -> None:
    """greatest(null, 3) is 3, and null only if all are."""
    parts: list[dict[str, list[Any]]] = [
        {"i": [None, None], "j": [3, 3]},
        {"i": [None, None], "j": [None, None]},
    ]
    assert parts_read("greatest(i, j) = 3", "i int, j int", parts) == [0]
    assert parts_read("greatest(i, j) is null", "i int, j int", parts) == [1]


@pytest.mark.parametrize("rows", [[], [0]])
def test_no_rows_need_no_reading(rows: list[int]) -> None:
    """No parts and parts without rows are decided like others."""
    stats: list[FieldStats | None] = [FieldStats(0, 0)] * len(rows)
    assert not decide_stats("i = 1", "i int", {"i": stats}, rows).read.any()


def test_chunks_are_decided_by_their_united_bounds() -> None:
    """A chunk is skipped only if all its parts could be."""
    type_ = Primitive("int")
    counts = pa.array([3, 3], pa.int64())
    chunks = [
        unite_bounds(bounds_columns(stats, type_), counts)
        for stats in (
            [FieldStats(0, 0, 1, 2), FieldStats(0, 0, 8, 9)],
            [FieldStats(0, 0, 20, 30), FieldStats(3, 0)],
            [FieldStats(0, 0, 20, 30), FieldStats(0, 0)],
        )
    ]
    expression = parse_filter("i = 5", parse_schema_ddl("i int"))
    decision = decide(expression, {1: bounds_columns(chunks, type_)}, pa.array([6, 6, 6], pa.int64()))
    assert [decision.verdict(chunk) for chunk in range(3)] == [Verdict.READ, Verdict.SKIP, Verdict.READ]


def test_what_is_nothing_troubles_nobody() -> None:
    """A cast of NaN that is never evaluated has no bounds to stumble over."""
    parts = [{"i": [1, 2]}]
    assert parts_read("i = cast(double('nan') as int)", "i int", parts) == [0]
    assert parts_read("i = try_cast(double('nan') as bigint)", "i int", parts) == []


@pytest.mark.parametrize(
    "text",
    [
        *("i =", "(i = 1", "'abc", "i = 1 j", "i = 1; drop", "", "select 1", "i + ", "case when i"),
        *("sum(i) > 3", "exists (select 1)", "i in (select 1)", "i > (select 1)", "max(i) over () = i"),
        "count(*) > 1",
    ],
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    """A slip of the pen is an error, not a filter that needs everything."""
    with pytest.raises(UsageError, match="condition"):
        parse_filter(text, parse_schema_ddl("i int"))

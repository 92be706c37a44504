"""Casts between numbers, booleans, dates and timestamps, each with Spark's rule for what does not fit.

How strings are read is in `parsing.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.schema import Decimal
from instar.skipping import exact, strings
from instar.skipping.exact import Ints, constant
from instar.skipping.functions import Mode
from instar.skipping.kernels.floating import Reals, rounded
from instar.skipping.kernels.formats import date_text
from instar.skipping.kernels.outcome import Kernel, Outcome, any_value, fitted, unknown
from instar.skipping.kernels.parsing import read_text
from instar.skipping.representation import INTEGERS, is_day_time, is_year_month, limits, name_of, scale_of
from instar.skipping.spans import NO, YES, Real, Span, Text, Truth, Whole, restrict
from instar.skipping.zones import DAY, SECOND, midnights_to_utc, to_local, to_utc

if TYPE_CHECKING:
    from instar.schema import Type
    from instar.skipping.expression import Call

__all__ = ["cast"]

_EXACT_DIGITS: Final = 15
"""The digits of a decimal that a double never confuses with another."""
_EXACT_POWER: Final = 22
"""The greatest power of ten that a double holds exactly."""


def cast(call: Call, span: Span) -> Outcome:
    """Cast a value to the call's type."""
    source, target = call.args[0].type, call.type
    if source == target:
        return Outcome((span,))
    kernel = read_text if isinstance(span, Text) else None
    kernel = _KERNELS.get((_family(source), _family(target)), kernel)
    return unknown(call) if kernel is None else kernel(call, span)


def _family(type_: Type | None) -> str:
    name = name_of(type_)
    if name in INTEGERS:
        return "integer"
    if name in ("float", "double"):
        return "real"
    if isinstance(type_, Decimal):
        return "decimal"
    if is_day_time(type_):
        return "day-time"
    return "year-month" if is_year_month(type_) else name


def _integer_to_integer(call: Call, span: Whole) -> Outcome:
    return fitted(span.lo, span.hi, call.type, call.mode, wraps=True)


def _integer_to_real(call: Call, span: Whole) -> Outcome:
    """Round to the nearest, which keeps the order; a float is rounded once, not by way of a double."""
    step = np.float32 if name_of(call.type) == "float" else np.float64
    least, most = limits(call.args[0].type)
    # Objects would become doubles first: only where there is no value can one not be an int64.
    columns = (exact.compact(np.clip(column, least, most)) for column in (span.lo, span.hi))
    lo, hi = (column.astype(step).astype(np.float64) for column in columns)
    return Outcome((Real(lo, hi, YES, NO),))


def _rescale(call: Call, span: Whole) -> Outcome:
    """Change the digits after the point, rounding halves away from zero. What does not fit never wraps."""
    before, after = scale_of(call.args[0].type), scale_of(call.type)
    if after >= before:
        factor = constant(10 ** (after - before))
        lo, hi = exact.multiply(span.lo, factor), exact.multiply(span.hi, factor)
    else:
        lo, hi = (exact.half_up(column, 10 ** (before - after)) for column in (span.lo, span.hi))
    return fitted(lo, hi, call.type, call.mode, wraps=False)


def _decimal_to_integer(call: Call, span: Whole) -> Outcome:
    """Drop what is after the point. Many digits become the nearest double first, except in legacy mode."""
    source = call.args[0].type
    scale = scale_of(source)
    divisor = constant(10**scale)
    lo, hi = exact.trunc_divide(span.lo, divisor), exact.trunc_divide(span.hi, divisor)
    if call.mode is not Mode.LEGACY and name_of(call.type) != "bigint" and _is_long(source):
        # Python divides integers to the nearest double, as Java reads a decimal.
        first, last = (
            (column.astype(object) / 10**scale).astype(np.float64) for column in (span.lo, span.hi)
        )
        lo, hi = np.minimum(lo, _truncated(first)), np.maximum(hi, _truncated(last))
    return fitted(lo, hi, call.type, call.mode, wraps=True)


def _is_long(type_: Type | None) -> bool:
    return isinstance(type_, Decimal) and type_.precision > _EXACT_DIGITS


def _decimal_to_real(call: Call, span: Whole) -> Outcome:
    """Divide by a power of ten, with room for every way of rounding."""
    scale = scale_of(call.args[0].type)
    with np.errstate(all="ignore"):
        lo, hi = (column.astype(np.float64) / float(10**scale) for column in (span.lo, span.hi))
    single = name_of(call.type) == "float"
    if not single and scale <= _EXACT_POWER and max(exact.peak(span.lo), exact.peak(span.hi)) < 1 << 52:
        return Outcome((Real(lo, hi, YES, NO),))  # one correct rounding of two exact numbers
    low, high = _outwards(lo, hi, np.float32 if single else np.float64)
    return Outcome((Real(low, high, YES, NO),))


def _outwards(lo: Reals, hi: Reals, step: type[np.float32 | np.float64]) -> tuple[Reals, Reals]:
    with np.errstate(all="ignore"):
        for _ in range(3):
            lo = np.nextafter(lo.astype(step), step(-np.inf)).astype(np.float64)
            hi = np.nextafter(hi.astype(step), step(np.inf)).astype(np.float64)
    return lo, hi


def _real_to_real(call: Call, span: Real) -> Outcome:
    return Outcome((Real(rounded(span.lo, call.type), rounded(span.hi, call.type), span.some, span.nan),))


def _real_to_integer(call: Call, span: Real) -> Outcome:
    """Drop what is after the point. In legacy mode NaN is zero, and what is too great the greatest."""
    least, most = limits(call.type)
    lo, hi = (_truncated(column) for column in (span.lo, span.hi))
    narrow = name_of(call.type) in ("tinyint", "smallint")
    fits = fitted(lo, hi, call.type, call.mode, wraps=narrow)
    spans: list[Span] = [Whole(s.lo, s.hi, s.some & span.some) for s in fits.spans if isinstance(s, Whole)]
    null, fail = fits.null & span.some, fits.fail & span.some
    # Java compares with the greatest bigint as a double, which is one more, and then takes the bigint.
    edge = np.asarray((lo <= most + 1) & (hi > most), np.bool_) & span.some
    if name_of(call.type) == "bigint" and edge.any():
        spans.append(Whole(constant(most), constant(most), edge))
    if call.mode.may_wrap:
        if not narrow:
            low, high = np.maximum(lo, constant(least)), np.minimum(hi, constant(most))
            low, high = np.minimum(low, constant(most)), np.maximum(high, constant(least))
            spans.append(Whole(exact.compact(low), exact.compact(high), span.some))
        spans.append(Whole(constant(0), constant(0), span.nan))
    if call.mode is Mode.LEGACY:
        return Outcome(tuple(spans))
    null = null | (span.nan if call.mode.may_be_null else NO)
    return Outcome(tuple(spans), null, fail | (span.nan if call.mode.may_fail else NO))


def _truncated(column: Reals) -> Ints:
    """Take reals as exact integers; infinities as integers far outside of every type."""
    column = np.nan_to_num(column, nan=0.0, posinf=np.inf, neginf=-np.inf)
    near = np.abs(column) < float(1 << 62)
    inside = np.trunc(np.where(near, column, 0.0)).astype(np.int64)
    if near.all():
        return inside
    beyond = np.clip(np.where(near, 0.0, column), -(2.0**80), 2.0**80)
    return np.where(near, inside, np.frompyfunc(int, 1, 1)(beyond))


def _boolean_to_integer(_: Call, span: Truth) -> Outcome:
    return Outcome((Whole(np.where(span.false, 0, 1), np.where(span.true, 1, 0), span.true | span.false),))


def _number_to_boolean(_: Call, span: Whole | Real) -> Outcome:
    zero = np.asarray((span.lo <= 0) & (span.hi >= 0), np.bool_)
    other = np.asarray((span.lo != 0) | (span.hi != 0), np.bool_)
    nan = span.nan if isinstance(span, Real) else NO
    return Outcome((Truth((other & span.some) | nan, zero & span.some),))


def _timestamp_to_date(call: Call, span: Whole) -> Outcome:
    zone = call.zone if name_of(call.args[0].type) == "timestamp" else "UTC"
    lo, hi = to_local(span.lo, span.hi, zone)
    day = constant(DAY)
    return fitted(
        exact.floor_divide(lo, day), exact.floor_divide(hi, day), call.type, Mode.UNKNOWN, wraps=True
    )


def _date_to_timestamp(call: Call, span: Whole) -> Outcome:
    day = constant(DAY)
    lo, hi = exact.multiply(span.lo, day), exact.multiply(span.hi, day)
    zone = call.zone if name_of(call.type) == "timestamp" else "UTC"
    return fitted(*midnights_to_utc(lo, hi, zone), call.type, Mode.UNKNOWN, wraps=True)


def _instant_to_local(call: Call, span: Whole) -> Outcome:
    return fitted(*to_local(span.lo, span.hi, call.zone), call.type, Mode.UNKNOWN, wraps=True)


def _local_to_instant(call: Call, span: Whole) -> Outcome:
    return fitted(*to_utc(span.lo, span.hi, call.zone), call.type, Mode.UNKNOWN, wraps=True)


def _timestamp_to_integer(call: Call, span: Whole) -> Outcome:
    second = constant(SECOND)
    lo, hi = exact.floor_divide(span.lo, second), exact.floor_divide(span.hi, second)
    return fitted(lo, hi, call.type, call.mode, wraps=True)


def _timestamp_to_real(call: Call, span: Whole) -> Outcome:
    lo, hi = (column.astype(np.float64) / SECOND for column in (span.lo, span.hi))
    low, high = _outwards(lo, hi, np.float32 if name_of(call.type) == "float" else np.float64)
    return Outcome((Real(low, high, YES, NO),))


def _integer_to_timestamp(call: Call, span: Whole) -> Outcome:
    """Take seconds; past the ends of time is the end of time."""
    least, most = (constant(limit) for limit in limits(call.type))
    second = constant(SECOND)
    lo, hi = (
        np.minimum(np.maximum(exact.multiply(column, second), least), most) for column in (span.lo, span.hi)
    )
    return fitted(lo, hi, call.type, Mode.UNKNOWN, wraps=True)


def _decimal_to_timestamp(call: Call, span: Whole) -> Outcome:
    """Take seconds, and drop what is finer than microseconds."""
    divisor, second = constant(10 ** scale_of(call.args[0].type)), constant(SECOND)
    lo, hi = (exact.trunc_divide(exact.multiply(column, second), divisor) for column in (span.lo, span.hi))
    return fitted(lo, hi, call.type, Mode.UNKNOWN, wraps=True)


def _real_to_timestamp(call: Call, span: Real) -> Outcome:
    """Take seconds; what is not finite is null or an error."""
    with np.errstate(all="ignore"):
        lo, hi = (_truncated(column * float(SECOND)) for column in (span.lo, span.hi))
    fits = fitted(lo, hi, call.type, Mode.UNKNOWN, wraps=True)
    spans = tuple(restrict(own, span.some) for own in fits.spans)
    return Outcome(spans, (fits.null & span.some) | span.nan, (fits.fail & span.some) | span.nan)


def _integer_to_text(call: Call, span: Whole) -> Outcome:
    """Write digits: in the order of numbers if these have as many digits and no sign."""
    least, most = limits(call.args[0].type)
    lo, hi = (
        pa.array(exact.compact(np.clip(column, least, most)).astype(np.int64)).cast(pa.large_string())
        for column in np.broadcast_arrays(span.lo, span.hi)
    )
    as_many = pc.equal(pc.utf8_length(lo), pc.utf8_length(hi)).to_numpy(zero_copy_only=False)
    alike = np.asarray((span.lo == span.hi) | (as_many & (span.lo >= 0)), np.bool_)
    low = strings.choose(alike, lo.cast(strings.BYTES), strings.constant(b""))
    return Outcome((Text(low, strings.choose(alike, hi.cast(strings.BYTES), strings.constant(None)), YES),))


def _same_value(call: Call, span: Whole) -> Outcome:
    """Change the units that an interval is said in: some of them round to whole units, most do not."""
    if call.type.name.endswith(("second", "month")):  # type: ignore[union-attr]
        return Outcome((span,))
    return unknown(call)


def _same_bytes(_: Call, span: Text) -> Outcome:
    return Outcome((span,))


_KERNELS: Final[dict[tuple[str, str], Kernel]] = {
    ("integer", "integer"): _integer_to_integer,
    ("integer", "real"): _integer_to_real,
    ("integer", "decimal"): _rescale,
    ("integer", "boolean"): _number_to_boolean,
    ("integer", "timestamp"): _integer_to_timestamp,
    ("integer", "string"): _integer_to_text,
    ("decimal", "decimal"): _rescale,
    ("decimal", "integer"): _decimal_to_integer,
    ("decimal", "real"): _decimal_to_real,
    ("decimal", "boolean"): _number_to_boolean,
    ("decimal", "string"): any_value,
    ("decimal", "timestamp"): _decimal_to_timestamp,
    ("real", "real"): _real_to_real,
    ("real", "integer"): _real_to_integer,
    ("real", "boolean"): _number_to_boolean,
    ("real", "string"): any_value,
    ("real", "timestamp"): _real_to_timestamp,
    ("boolean", "integer"): _boolean_to_integer,
    ("boolean", "string"): any_value,
    ("timestamp", "date"): _timestamp_to_date,
    ("timestamp_ntz", "date"): _timestamp_to_date,
    ("date", "timestamp"): _date_to_timestamp,
    ("date", "timestamp_ntz"): _date_to_timestamp,
    ("timestamp", "timestamp_ntz"): _instant_to_local,
    ("timestamp_ntz", "timestamp"): _local_to_instant,
    ("timestamp", "integer"): _timestamp_to_integer,
    ("timestamp", "real"): _timestamp_to_real,
    ("timestamp", "string"): any_value,
    ("timestamp_ntz", "string"): any_value,
    ("date", "string"): date_text,
    ("day-time", "day-time"): _same_value,
    ("year-month", "year-month"): _same_value,
    ("string", "binary"): _same_bytes,
}

"""From statistics to results: what a column and a literal may be, in all parts at once.

Statistics that are missing, of another type or at odds with themselves say nothing, and then anything
is possible: a part is read too often rather than once too little.
"""

from __future__ import annotations

from decimal import Context
from decimal import Decimal as PyDecimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.schema import Decimal, arrow_type
from instar.skipping import strings
from instar.skipping.exact import constant
from instar.skipping.representation import Representation, limits, representation_of
from instar.skipping.results import Results, null_only
from instar.skipping.spans import NO, YES, Mask, Opaque, Real, Span, Text, Truth, Whole, full_span

if TYPE_CHECKING:
    from instar.schema import Type
    from instar.skipping.expression import Literal, Value

_EXACT = Context(prec=80)

__all__ = ["held_value", "results_of_column", "results_of_literal", "unknown_column"]


def unknown_column(type_: Type | None) -> Results:
    """Return what a column without statistics may be: any value or null; reading it does not fail."""
    return Results(YES, NO, (full_span(type_),))


def results_of_column(bounds: pa.RecordBatch, rows: pa.Array, type_: Type) -> Results:
    """Return what a column may be in each part, from its statistics and the parts' numbers of rows."""
    nulls, nans = bounds.column("nulls"), bounds.column("nans")
    null = _mask(pc.fill_null(pc.greater(nulls, 0), True))  # noqa: FBT003 -- Arrow's own signature
    filled = pc.equal(pc.add(nulls, nans), rows)
    some = ~_mask(pc.fill_null(filled, False))  # noqa: FBT003
    span = (
        _full(type_, some)
        if bounds.column("min").type != arrow_type(type_)
        else _bounded(bounds, type_, some)
    )
    if representation_of(type_) is Representation.REAL and isinstance(span, Real):
        nan = _mask(pc.fill_null(pc.greater(nans, 0), True))  # noqa: FBT003
        span = Real(span.lo, span.hi, span.some, nan)
    return Results(null, NO, (span,))


def results_of_literal(literal: Literal) -> Results:
    """Return what a literal is."""
    if literal.value is None:
        return null_only()
    span = _point(held_value(literal.value, literal.type), literal.type)
    if literal.upto is not None and isinstance(span, Whole):
        span = Whole(span.lo, constant(int(held_value(literal.upto, literal.type))), YES)
    return Results(NO, NO, (span,))


def held_value(value: Value, type_: Type) -> Any:  # noqa: ANN401 -- integer, float, bytes or boolean
    """Return a value as spans hold it."""
    match representation_of(type_):
        case Representation.TEXT:
            return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        case Representation.REAL:
            return float(value)
        case Representation.WHOLE if isinstance(type_, Decimal):
            return int(PyDecimal(str(value)).scaleb(type_.scale, _EXACT))
    return value


def _point(value: Any, type_: Type) -> Span:  # noqa: ANN401 -- as it is held
    match representation_of(type_):
        case Representation.WHOLE:
            return Whole(constant(value), constant(value), YES)
        case Representation.REAL:
            nan = np.isnan([value])
            number = np.where(nan, 0.0, value)  # the bounds of nothing must not trouble anybody
            return Real(number, number, ~nan, nan)
        case Representation.TEXT:
            return Text(strings.constant(value), strings.constant(value), YES)
        case Representation.TRUTH:
            return Truth(np.array([bool(value)]), np.array([not value]))
    return Opaque(YES)


def _full(type_: Type, some: Mask) -> Span:
    return full_span(type_, some)


def _bounded(bounds: pa.RecordBatch, type_: Type, some: Mask) -> Span:
    low, high = bounds.column("min"), bounds.column("max")
    match representation_of(type_):
        case Representation.WHOLE:
            least, most = limits(type_)
            lo, hi = _integers(low, least), _integers(high, most)
            sane = np.asarray(lo <= hi, np.bool_)
            return Whole(np.where(sane, lo, constant(least)), np.where(sane, hi, constant(most)), some)
        case Representation.REAL:
            first, last = _reals(low, -np.inf), _reals(high, np.inf)
            fine = first <= last  # false for NaN too
            return Real(np.where(fine, first, -np.inf), np.where(fine, last, np.inf), some, NO)
        case Representation.TEXT:
            lower = strings.from_arrow(low).fill_null(b"")
            upper = strings.from_arrow(high)
            in_order = strings.not_above(lower, upper)
            return Text(
                strings.choose(in_order, lower, strings.constant(b"")),
                strings.choose(in_order, upper, strings.constant(None)),
                some,
            )
        case Representation.TRUTH:
            low_true = _mask(pc.fill_null(low, False))  # noqa: FBT003
            high_true = _mask(pc.fill_null(high, True))  # noqa: FBT003
            odd = low_true & ~high_true
            return Truth(some & (high_true | odd), some & (~low_true | odd))
    return Opaque(some)


def _integers(column: pa.Array, missing: int) -> Any:  # noqa: ANN401 -- int64 or objects
    kind = column.type
    if pa.types.is_decimal(kind):
        return _unscaled(column, missing)
    if pa.types.is_date(kind):
        column = column.cast(pa.int32())
    column = column.cast(pa.int64())
    return column.fill_null(missing).to_numpy(zero_copy_only=False)


def _unscaled(column: pa.Array, missing: int) -> Any:  # noqa: ANN401 -- int64 or objects
    """Take decimals as integers: the 128 bits that Arrow has for each, whose upper half is mostly sign."""
    words = np.frombuffer(column.cast(pa.decimal128(38, column.type.scale)).buffers()[1], np.int64)
    words = words.reshape(-1, 2)[column.offset : column.offset + len(column)]
    low, high = words[:, 0], words[:, 1]
    if np.array_equal(high, low >> 63) and -(1 << 63) <= missing < 1 << 63:
        result: Any = low
    else:
        result = (high.astype(object) << 64) + low.astype(np.uint64).astype(object)
    return np.where(_mask(column.is_null()), constant(missing), result)


def _reals(column: pa.Array, missing: float) -> Any:  # noqa: ANN401 -- float64
    return column.cast(pa.float64()).fill_null(missing).to_numpy(zero_copy_only=False)


def _mask(column: pa.Array) -> Mask:
    return np.asarray(column.to_numpy(zero_copy_only=False), np.bool_)

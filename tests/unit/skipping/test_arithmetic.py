"""Arithmetic on integers against brute force: every range, every pair, every mode."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from instar.schema import Primitive
from instar.skipping import Call, Column, Function, Mode
from instar.skipping.spans import Whole
from instar.stats import FieldStats, bounds_columns
from tests.unit.skipping.foreseen import results_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.skipping.results import Results

TINY = Primitive("tinyint")
LOW, HIGH = -128, 127
ENDS = (-128, -127, -11, -1, 0, 3, 64, 127)
RANGES = list(combinations_with_replacement(ENDS, 2))
MODES = [Mode.ANSI, Mode.LEGACY, Mode.TRY, Mode.UNKNOWN]


def truncated(a: int, b: int) -> int:
    """Divide as Java does."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def java_pmod(a: int, b: int) -> int:
    """Take the positive remainder as Spark does."""
    rest = a - truncated(a, b) * b
    return rest if rest >= 0 else (rest + b) - truncated(rest + b, b) * b


BINARY: dict[Function, Callable[[int, int], int]] = {
    Function.ADD: lambda a, b: a + b,
    Function.SUBTRACT: lambda a, b: a - b,
    Function.MULTIPLY: lambda a, b: a * b,
    Function.INTEGRAL_DIVIDE: truncated,
    Function.REMAINDER: lambda a, b: a - truncated(a, b) * b,
    Function.POSITIVE_REMAINDER: java_pmod,
}
UNARY: dict[Function, Callable[[int], int]] = {Function.NEGATE: lambda a: -a, Function.ABS: abs}


class Table:
    """The exact outcomes of an operation on all tinyints: values, and where there is none."""

    def __init__(self, mode: Mode, exact: np.ndarray, undefined: np.ndarray) -> None:
        self.missing = undefined | (exact < LOW) | (exact > HIGH)
        self.undefined = undefined
        self.wrapped = ((exact + 128) % 256) - 128
        self.mode = mode


def check(results: Results, part: int, table: Table, cells: tuple[slice, ...]) -> None:
    """Assert that the results of a part include each outcome in a block of the table."""

    def at(column: Any) -> Any:  # noqa: ANN401 -- a column of any kind
        return column[part if len(column) > 1 else 0]

    missing, wrapped = table.missing[cells], table.wrapped[cells]
    undefined = table.undefined[cells]
    if missing.any():
        assert table.mode is Mode.LEGACY or table.mode is Mode.TRY or at(results.fail)
        assert table.mode in (Mode.ANSI, Mode.LEGACY) or at(results.null)
    if undefined.any() and table.mode is Mode.LEGACY:
        assert at(results.null)
    wraps = table.mode in (Mode.LEGACY, Mode.UNKNOWN)
    counts = np.bincount(wrapped[~undefined if wraps else ~missing].ravel() - LOW, minlength=256)
    values = np.flatnonzero(counts) + LOW
    held = np.zeros(len(values), bool)
    for span in results.spans:
        assert isinstance(span, Whole)
        if at(span.some):
            held |= (values >= at(span.lo)) & (values <= at(span.hi))
    assert held.all(), (part, values[~held], results)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("function", BINARY)
def test_binary_operations_foresee_every_outcome(function: Function, mode: Mode) -> None:
    """For any two ranges, each pair of values has an outcome among the results: a value, null or an error."""
    numbers = range(LOW, HIGH + 1)
    divides = function in (Function.INTEGRAL_DIVIDE, Function.REMAINDER, Function.POSITIVE_REMAINDER)
    exact = np.array(
        [[0 if divides and b == 0 else BINARY[function](a, b) for b in numbers] for a in numbers]
    )
    undefined = np.array([[divides and b == 0 for b in numbers] for _ in numbers])
    table = Table(mode, exact, undefined)
    pairs = list(product(RANGES, RANGES))
    columns = [bounds_columns([FieldStats(0, 0, *pair[side]) for pair in pairs], TINY) for side in (0, 1)]
    call = Call(function, (Column(1, TINY), Column(2, TINY)), TINY, mode)
    results = results_for(call, {1: columns[0], 2: columns[1]}, pa.array([9] * len(pairs), pa.int64()))
    for part, ((a, b), (c, d)) in enumerate(pairs):
        check(results, part, table, (slice(a - LOW, b - LOW + 1), slice(c - LOW, d - LOW + 1)))


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("function", UNARY)
def test_unary_operations_foresee_every_outcome(function: Function, mode: Mode) -> None:
    """For every range of tinyints, each value has its outcome among the results."""
    every = list(combinations_with_replacement(range(LOW, HIGH + 1), 2))
    exact = np.array([UNARY[function](a) for a in range(LOW, HIGH + 1)])
    table = Table(mode, exact, np.zeros(len(exact), bool))
    bounds = bounds_columns([FieldStats(0, 0, *pair) for pair in every], TINY)
    call = Call(function, (Column(1, TINY),), TINY, mode)
    results = results_for(call, {1: bounds}, pa.array([9] * len(every), pa.int64()))
    for part, (a, b) in enumerate(every):
        check(results, part, table, (slice(a - LOW, b - LOW + 1),))


@pytest.mark.parametrize("function", [Function.ADD, Function.SUBTRACT, Function.MULTIPLY])
def test_ranges_are_as_tight_as_they_can_be(function: Function) -> None:
    """Where nothing overflows, both bounds of the result are reached by some pair of values."""
    pairs = [
        ((a, b), (c, d)) for (a, b), (c, d) in product(RANGES, RANGES) if max(map(abs, (a, b, c, d))) <= 11
    ]
    columns = [bounds_columns([FieldStats(0, 0, *pair[side]) for pair in pairs], TINY) for side in (0, 1)]
    call = Call(function, (Column(1, TINY), Column(2, TINY)), TINY, Mode.ANSI)
    results = results_for(call, {1: columns[0], 2: columns[1]}, pa.array([9] * len(pairs), pa.int64()))
    [span] = results.spans
    assert isinstance(span, Whole)
    assert not results.fail.any()
    for part, ((a, b), (c, d)) in enumerate(pairs):
        values = [BINARY[function](x, y) for x in range(a, b + 1) for y in range(c, d + 1)]
        assert (span.lo[part], span.hi[part]) == (min(values), max(values))

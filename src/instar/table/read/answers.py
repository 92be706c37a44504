"""Answers from metadata: counts, the least and the greatest value, and which parts a few rows are in.

No part is opened. An answer is given only if it is exact: bounds of numbers, dates and times are those of the
rows, except for the sign of a zero. Texts may have been cut: a short least one was not, but a greatest one
may have been rounded up to something short. If rows of a part are retracted by position, it is known how
many rows are left, but not whether the least, the greatest, a null or a NaN is among them.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.parts.truncate import BOUND_BYTES
from instar.schema import Decimal, Primitive
from instar.state.manifest import stats_fields
from instar.table.log.manifest import load_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from instar.schema import Field
    from instar.state import TableState
    from instar.table.log.manifest import ChunkReader
    from instar.table.log.part_set import Mask, PartSet

__all__ = [
    "Extreme",
    "Order",
    "Question",
    "Unknown",
    "answer_count",
    "answer_extreme",
    "answer_groups",
    "first_parts",
    "tells_apart",
    "top_parts",
]

_EXACT: Final = frozenset(
    [
        "boolean",
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "float",
        "double",
        "date",
        "timestamp",
        "timestamp_ntz",
    ]
)
_REAL: Final = frozenset(["float", "double"])
STRING: Final = Primitive("string")
_MOST_MEASURED: Final = 100_000
"""In larger tables, every skipped part pays off."""
_SOME: Final = 1000
_APART: Final = 0.5
_WHOLE_BYTES: Final = BOUND_BYTES - 4
"""A text that was cut has more bytes than this: as many as fit, of whole characters."""


class Unknown(Enum):
    """Says that metadata has no exact answer."""

    UNKNOWN = "unknown"


class Extreme(Enum):
    """The least or the greatest value."""

    MIN = "min"
    MAX = "max"


class Question(NamedTuple):
    """How many rows there are, how many values of a field, or which of them is at one end."""

    field: Field | None = None
    extreme: Extreme | None = None


class Order(NamedTuple):
    """How rows are sorted by their first column."""

    ascending: bool
    nulls_first: bool


class _Known(NamedTuple):
    """What is known about a column in each part."""

    rows: pa.Array
    left: pa.Array
    """How many rows are not retracted."""
    nulls: pa.Array
    nans: pa.Array
    low: pa.Array
    high: pa.Array

    def keep(self, kept: pa.Array) -> _Known:
        """Return what is known about some parts."""
        return _Known(*(column.filter(kept) for column in self))

    @property
    def values(self) -> pa.Array:
        """How many values each part has that are not null; null where it is not known which are retracted."""
        whole = pc.equal(self.left, self.rows)
        values = pc.if_else(whole, pc.subtract(self.rows, self.nulls), pa.scalar(None, pa.int64()))
        values = pc.if_else(pc.equal(self.nulls, 0), self.left, values)
        return pc.if_else(pc.equal(self.nulls, self.rows), 0, values)

    @property
    def firm(self) -> pa.Array:
        """Whether both bounds, and whether there is a NaN, are those of the rows that are left."""
        same = pc.fill_null(pc.equal(_stored(self.low), _stored(self.high)), False)  # noqa: FBT003
        alike = pc.and_(same, pc.and_(pc.equal(self.nulls, 0), pc.equal(self.nans, 0)))
        alike = pc.or_(alike, pc.or_(pc.equal(self.nulls, self.rows), pc.equal(self.nans, self.rows)))
        return pc.or_(pc.equal(self.left, self.rows), alike)


def answer_count(chunks: ChunkReader, state: TableState, parts: PartSet, field: Field) -> int | Unknown:
    """Count the values of a column that are not null."""
    known = _load(chunks, state, parts, field)
    if known is None or known.nulls.null_count or known.values.null_count:
        return Unknown.UNKNOWN
    return int(pc.sum(known.values).as_py() or 0)


def answer_extreme(
    chunks: ChunkReader, state: TableState, parts: PartSet, field: Field, which: Extreme
) -> Any:  # noqa: ANN401 -- a value of any type, dates and times as integers; None; or `Unknown`
    """Return the least or the greatest value of a column, None if it has none. NaN is greater than all."""
    known = _load(chunks, state, parts, field)
    is_least_text = field.type == STRING and which is Extreme.MIN
    if known is None or known.nulls.null_count or known.nans.null_count:
        return Unknown.UNKNOWN
    if not (_is_exact(field) or is_least_text):
        return Unknown.UNKNOWN
    firm = known.firm
    found = _extreme(known.keep(firm), which)
    loose = known.keep(pc.invert(firm))
    if len(loose.rows):  # none of its rows may come before what was found
        limit = _extreme(loose, which)
        if Unknown.UNKNOWN in (found, limit) or found is None or not _is_before(found, limit, which):
            return Unknown.UNKNOWN
    if found is None or found is Unknown.UNKNOWN:
        return found
    is_cut = is_least_text and len(found.encode()) > _WHOLE_BYTES
    return Unknown.UNKNOWN if is_cut or (_is_real(field) and found == 0) else found


def _extreme(known: _Known, which: Extreme) -> Any:  # noqa: ANN401 -- as `answer_extreme` returns
    """Return the least or the greatest bound of parts, or NaN, if there is one and nothing is at that end."""
    numbers = pc.subtract(pc.subtract(known.rows, known.nulls), known.nans)
    has = pc.greater(numbers, 0)
    bounds = (known.low if which is Extreme.MIN else known.high).filter(has)
    if bounds.null_count:
        return Unknown.UNKNOWN
    has_nan = bool(pc.any(pc.greater(known.nans, 0)).as_py())
    if has_nan and (which is Extreme.MAX or not len(bounds)):
        return float("nan")
    if not len(bounds):
        return None
    return (pc.min if which is Extreme.MIN else pc.max)(_stored(bounds)).as_py()


def _is_before(found: Any, limit: Any, which: Extreme) -> bool:  # noqa: ANN401 -- two values of one type
    """Whether a value comes before all that have a limit, or is equal to it; NaN is the greatest."""
    found_last, limit_last = (isinstance(value, float) and value != value for value in (found, limit))  # noqa: PLR0124
    if found_last or limit_last:
        return found_last if which is Extreme.MAX else limit_last
    return bool(found <= limit if which is Extreme.MIN else found >= limit)


def answer_groups(
    chunks: ChunkReader,
    state: TableState,
    parts: PartSet,
    keys: Sequence[Field],
    questions: Sequence[Question],
) -> list[tuple[Any, ...]] | Unknown:
    """Answer questions for each group of rows: the values of the keys, then the answers.

    Keys are columns that are the same, or null, in all rows of each part: a part belongs to one group.
    """
    known = {
        field.id: _load(chunks, state, parts, field)
        for field in (*keys, *(own.field for own in questions if own.field))
    }
    columns: dict[str, pa.Array] = {}
    for at, field in enumerate(keys):
        own = known[field.id]
        column = None if own is None else _constant(own, field)
        if column is None:
            return Unknown.UNKNOWN
        columns[f"key{at}"] = column
    names = list(columns)
    asked = []
    for at, question in enumerate(questions):
        column = _by_part(parts, question, None if question.field is None else known[question.field.id])
        if column is None:
            return Unknown.UNKNOWN
        columns[f"answer{at}"] = column
        asked.append((f"answer{at}", "sum" if question.extreme is None else question.extreme.value))
    grouped = pa.table(columns).group_by(names, use_threads=False).aggregate(asked)
    found = list(zip(*(grouped.column(at).to_pylist() for at in range(grouped.num_columns)), strict=True))
    for at, question in enumerate(questions, len(keys)):
        if question.extreme is not None and _is_real(question.field) and any(row[at] == 0 for row in found):
            return Unknown.UNKNOWN
    return found


def _by_part(parts: PartSet, question: Question, known: _Known | None) -> pa.Array | None:
    """Return what a question is answered with for each part by itself; None if that is not known."""
    if question.field is None:
        return parts.rows_left
    if known is None or known.nulls.null_count:
        return None
    if question.extreme is None:
        return None if known.values.null_count else known.values
    if not pc.all(known.firm).as_py():
        return None
    if not _is_exact(question.field) or known.nans.null_count or pc.any(pc.greater(known.nans, 0)).as_py():
        return None
    bounds = _stored(known.low if question.extreme is Extreme.MIN else known.high)
    has = pc.greater(known.rows, known.nulls)
    if bounds.filter(has).null_count:
        return None
    return pc.if_else(has, bounds, pa.scalar(None, bounds.type))


def _constant(known: _Known, field: Field) -> pa.Array | None:
    """Return the one value that a column has in each part, or null; None if it may have several somewhere.

    Between two bounds that are equal there is nothing else, whether or not these have been cut.
    """
    if not (_is_exact(field) or field.type == STRING) or known.nulls.null_count or known.nans.null_count:
        return None
    low, high = _stored(known.low), _stored(known.high)
    empty = pc.equal(known.nulls, known.rows)
    one = pc.and_(pc.equal(known.nulls, 0), pc.fill_null(pc.equal(low, high), False))  # noqa: FBT003
    if _is_real(field):  # of a zero the sign is not known, and beside a NaN there may be anything
        one = pc.and_(one, pc.equal(known.nans, 0))
        one = pc.and_(one, pc.fill_null(pc.not_equal(low, 0), False))  # noqa: FBT003
    if not pc.all(pc.or_(empty, one)).as_py():
        return None
    return pc.if_else(empty, pa.scalar(None, low.type), low)


def tells_apart(chunks: ChunkReader, state: TableState, parts: PartSet, field: Field) -> bool:
    """Whether a value of a column is in the bounds of few parts, so that it pays to look which.

    That is measured on some parts: by how many of all their bounds lie between the two of one part.
    """
    if len(parts) > _MOST_MEASURED:
        return True
    known = _load(chunks, state, parts, field) if isinstance(field.type, Primitive | Decimal) else None
    if known is None or len(parts) < 2:  # noqa: PLR2004 -- of a single part, nothing is pruned
        return False
    some = pa.array(np.unique(np.linspace(0, len(parts) - 1, _SOME).astype(np.int64)))
    low, high = _stored(known.low.take(some)), _stored(known.high.take(some))
    has = pc.and_(pc.is_valid(low), pc.is_valid(high))
    low, high = low.filter(has), high.filter(has)
    if len(low) * 2 < len(some):
        return False
    ranks = pc.rank(pa.concat_arrays([low, high]), sort_keys="ascending", tiebreaker="dense").to_numpy()
    ranks = ranks.astype(np.int64)
    between = ranks[len(low) :] - ranks[: len(low)] + 1
    return bool(between.mean() / ranks.max() <= _APART)


def first_parts(parts: PartSet, rows: int) -> PartSet:
    """Return as few of the first parts as have this many rows, if all parts together have them."""
    so_far = np.cumsum(parts.rows_left.to_numpy())
    needed = int(np.searchsorted(so_far, rows)) + 1
    return parts.keep(np.arange(len(parts)) < needed)


def top_parts(
    chunks: ChunkReader, state: TableState, parts: PartSet, field: Field, order: Order, rows: int
) -> PartSet:
    """Leave out parts that have none of the first rows in an order: enough rows come before all of theirs."""
    known = _load(chunks, state, parts, field)
    if known is None or not len(parts) or not rows:
        return parts
    near, far = (known.low, known.high) if order.ascending else (known.high, known.low)
    counted, kept = _before(known, order)
    usable = counted & _mask(pc.is_valid(far))
    if not usable.any():
        return parts
    sort = pc.sort_indices(
        _stored(far).filter(pa.array(usable)),
        sort_keys=[("", "ascending" if order.ascending else "descending")],
    ).to_numpy()
    sizes = _sizes(known, order)[usable][sort]
    enough = int(np.searchsorted(np.cumsum(sizes), rows))
    if enough >= len(sizes):
        return parts
    limit = _stored(far).filter(pa.array(usable))[int(sort[enough])]
    beyond = pc.greater(_stored(near), limit) if order.ascending else pc.less(_stored(near), limit)
    return parts.keep(kept | ~_mask(pc.fill_null(beyond, False)))  # noqa: FBT003 -- Arrow's own signature


def _before(known: _Known, order: Order) -> tuple[Mask, Mask]:
    """Tell for which parts the numbers of nulls and NaNs are known, and which have rows that come first.

    NaN is greater than all numbers, and outside of bounds: last in ascending order, and first in descending.
    """
    counts = _mask(pc.and_(pc.is_valid(known.nulls), pc.is_valid(known.nans)))
    first = np.zeros(len(counts), dtype=bool)
    if order.nulls_first:
        first |= ~_mask(pc.fill_null(pc.equal(known.nulls, 0), False))  # noqa: FBT003
    if not order.ascending:
        first |= ~_mask(pc.fill_null(pc.equal(known.nans, 0), False))  # noqa: FBT003
    return counts, first


def _sizes(known: _Known, order: Order) -> np.ndarray:
    """Return how many rows of each part come no later than its far bound, at least."""
    numbers = pc.subtract(pc.subtract(known.rows, known.nulls), known.nans)
    if order.nulls_first:
        numbers = pc.add(numbers, known.nulls)
    if not order.ascending:
        numbers = pc.add(numbers, known.nans)
    numbers = pc.max_element_wise(pc.subtract(numbers, pc.subtract(known.rows, known.left)), 0)
    return np.asarray(pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False))


def _load(chunks: ChunkReader, state: TableState, parts: PartSet, field: Field) -> _Known | None:
    """Load what is known about a column in some parts; None if it has no statistics in the type to read."""
    own = [each for each in stats_fields(state.history.latest) if each.id == field.id]
    if not own or own[0].type != field.type:
        return None
    known = load_parts(chunks, state, own, ()).keep(parts.mask)
    bounds = known.bounds[field.id]
    columns = (bounds.column(name) for name in ("nulls", "nans", "min", "max"))
    return _Known(known.rows, parts.rows_left, *columns)


def _is_real(field: Field | None) -> bool:
    return field is not None and isinstance(field.type, Primitive) and field.type.name in _REAL


def _is_exact(field: Field) -> bool:
    return isinstance(field.type, Decimal) or (
        isinstance(field.type, Primitive) and field.type.name in _EXACT
    )


def _stored(column: pa.Array) -> pa.Array:
    """Return dates and times as the integers that they are."""
    if pa.types.is_date(column.type):
        return column.cast(pa.int32())
    return column.cast(pa.int64()) if pa.types.is_temporal(column.type) else column


def _mask(column: pa.Array) -> Mask:
    return np.asarray(column.to_numpy(zero_copy_only=False), np.bool_)

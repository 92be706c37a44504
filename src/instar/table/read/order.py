"""Whether a table is sorted as a whole: parts that are read one after the other, each in its own order.

Only metadata is read. The answer may be no for rows that are sorted, but is never yes for others.
"""

from __future__ import annotations

from functools import cmp_to_key
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from instar.parts import compare_bounds, decode_row
from instar.schema import List, Map, Struct, stays_sorted_by
from instar.state.chunk import PLACES, ROWS, TIMES
from instar.table.log.manifest import load_parts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from instar.parts.rows import Bound
    from instar.schema import Field
    from instar.state import TableState
    from instar.table.log.manifest import ChunkReader

__all__ = ["arrange_parts"]


class _Component(NamedTuple):
    """Something that rows are compared by: its field, and what it is in rows from before that field."""

    field_id: int
    absent: bool | None


class _Stretch(NamedTuple):
    """A sorted part, and its least and greatest row as far as they are known."""

    at: int
    run: tuple[int, int]
    ordinal: int
    first: Bound
    last: Bound


def arrange_parts(chunks: ChunkReader, state: TableState, columns: Sequence[Field]) -> list[int] | None:
    """Return the live parts, by position, as they must be read for rows sorted by some columns, if possible.

    The columns are of the latest schema. Every part must be sorted by them, and end where the next begins.
    """
    history = state.history
    field_ids = [field.id for field in columns]
    sorted_under = [
        stays_sorted_by(schema, history.latest, state.order_by, field_ids) for schema in history.schemas
    ]
    components = list(_components(columns))
    known = [frozenset(field.id for _, field in schema.walk()) for schema in history.schemas]
    live = load_parts(chunks, state, (), (PLACES, TIMES, ROWS))
    stretches = []
    for at, (place, times, rows) in enumerate(
        zip(*(live.columns[name].to_pylist() for name in (PLACES, TIMES, ROWS)), strict=True)
    ):
        schema_id = times["schema_id"]
        if not place["ordered"] or not sorted_under[schema_id]:
            return None
        first, last = (
            _align(rows[name], components, known[schema_id], known[-1]) for name in ("first_row", "last_row")
        )
        stretches.append(_Stretch(at, (place["batch"], place["run"]), place["ordinal"], first, last))
    stretches.sort(key=cmp_to_key(_compare))
    complete = _length(components)
    if all(_follows(one, two, complete) for one, two in pairwise(stretches)):
        return [stretch.at for stretch in stretches]
    return None


def _components(columns: Sequence[Field]) -> Iterator[_Component | None]:
    """Yield what columns are compared by; None where that is more than a single value."""
    for field in columns:
        match field.type:
            case Struct(fields=members):
                yield _Component(field.id, absent=False)
                yield from _components(members)
            case List() | Map():
                yield None
            case _:
                yield _Component(field.id, absent=None)


def _length(components: Sequence[_Component | None]) -> int | None:
    """Return how long a bound is that says all of the columns, if one can."""
    return None if None in components else len(components)


def _align(
    row: bytes | None,
    components: Sequence[_Component | None],
    old: Collection[int],
    latest: Collection[int],
) -> Bound:
    """Return a bound as far as it speaks of the components: without what is gone, with what came later."""
    bound = iter(() if row is None else [item for item in decode_row(row) if item[0] in latest])
    found: list[tuple[int, object]] = []
    for component in components:
        if component is None:
            break
        if component.field_id not in old:
            found.append(component)
            continue
        item = next(bound, None)
        if item is None or item[0] != component.field_id:
            break
        found.append(item)
    return tuple(found)


def _compare(one: _Stretch, two: _Stretch) -> int:
    found = compare_bounds(one.first, two.first) or compare_bounds(one.last, two.last)
    return found or (-1 if (one.run, one.ordinal) < (two.run, two.ordinal) else 1)


def _follows(one: _Stretch, two: _Stretch, complete: int | None) -> bool:
    """Whether no row of the second part is less than one of the first."""
    if one.run == two.run and one.ordinal < two.ordinal:
        return True
    found = compare_bounds(one.last, two.first)
    return found < 0 or (found == 0 and len(one.last) == len(two.first) == complete)

"""Settling: rows that were retracted by value are found once, and then are left out by position.

A retraction by value removes any one row that equals it. Most parts that may hold such rows hold few.
So only a few columns of them are searched, only rows that may be meant are added up, and it is decided which
of them are left. All parts are then read without some positions, and nothing has to be added up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from instar.parts import DIFF, TS, group_rows
from instar.parts.read import ROW
from instar.schema import Primitive, Schema, arrow_schema, plan_migration
from instar.state.retractions import encode_bitmap
from instar.table.log.manifest import load_parts
from instar.table.log.sheets import Retracted, Retractions
from instar.table.read.locate_keys import find_keys, key_schema
from instar.table.read.rows import read_written

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import numpy.typing as npt

    from instar.state import Place
    from instar.table.log.part_set import PartSet
    from instar.table.read.filter import Filter
    from instar.table.read.settled import Positions
    from instar.table.read.snapshot import SnapshotPlan
    from instar.table.services import Services

__all__ = ["FindRows", "settle"]

_SAFE_SUM: Final = 2.0**62
_TELLING: Final = 3
"""How many columns are searched, at most, if the table has no key."""

FindRows = Callable[["SnapshotPlan", pa.Table, "Sequence[int]"], Mapping["Place", BitMap]]
"""Finds the rows of the parts that a plan scans that have one of some values in some fields."""


def settle(
    services: Services, plan: SnapshotPlan, condition: Filter | None = None, find: FindRows | None = None
) -> SnapshotPlan:
    """Return a plan of the same rows that has nothing to add up, if there is one.

    There is none if a row was retracted more often than added, or added several times in one update: then
    the plan stays as it is. If parts were left out because of a condition, it has to be given.
    """
    if not plan.merge:
        return plan

    def find_out() -> Positions | None:
        return _Settling(services, plan, find or _finder(services)).gone(condition)

    gone = find_out() if condition is not None else services.settled.find(_identity(plan), find_out)
    if gone is None:
        return plan
    known = plan.merge.retractions or plan.scan.retractions
    by_place = {} if known is None else dict(known.by_place)
    for place, rows in gone.items():
        own = Retracted(place.batch, plan.as_of, place, len(rows), encode_bitmap(rows))
        by_place[place] = [*by_place.get(place, ()), own]
    parts = load_parts(services.chunks, plan.state).keep(plan.scan.mask | plan.merge.mask)
    scan = parts.less(Retractions(services.chunks.sheets, by_place))
    return plan._replace(scan=scan, merge=scan.keep(np.zeros(len(scan), dtype=bool)))


def _finder(services: Services) -> FindRows:
    return lambda plan, wanted, key: find_keys(services, plan, wanted, key).positions


def _identity(plan: SnapshotPlan) -> Hashable:
    """Return what the outcome depends on: the parts, what is retracted of each, and what makes rows equal.

    The same file may be a part of several tables, and in each of them other rows may be retracted.
    """
    retracted = {at: len(rows) for at, rows in plan.merge.positions.items()}
    parts = tuple((plan.merge.place(at), key, retracted.get(at, 0)) for at, key in enumerate(plan.merge.keys))
    latest = max(plan.merge.times.latest)
    return plan.state.table_id, parts, min(plan.as_of, int(latest)), plan.state.history.latest_id


class _Rows(NamedTuple):
    """Updates under the latest schema, and where each is: the number of its part, and its position there."""

    updates: pa.Table
    part: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]


class _Settling:
    """One attempt to settle one plan."""

    def __init__(self, services: Services, plan: SnapshotPlan, find: FindRows) -> None:
        self._services = services
        self._plan = plan
        self._find = find
        self._history = plan.state.history
        self._latest = self._history.latest
        self._gone: dict[Place, BitMap] = {}

    def gone(self, condition: Filter | None) -> Positions | None:
        """Return the positions to leave out; None if positions cannot express it."""
        plain = self._plan.merge.times.plain
        once, other = self._plan.merge.keep(plain), self._plan.merge.keep(~plain)
        self._leave_later(once)
        changes = self._read_changes(other)
        negative = changes.updates.filter(pc.less(changes.updates.column(DIFF), 0))
        meant = self._read_meant(once, negative)
        kept = self._kept(_joined(changes, meant), condition)
        if kept is None:
            return None
        for parts, rows, chosen in (
            (other, changes, kept[: len(changes.row)]),
            (once, meant, kept[len(changes.row) :]),
        ):
            for number in np.unique(rows.part[~chosen]):
                self._leave(parts.place(int(number)), rows.row[~chosen & (rows.part == number)])
        return self._gone

    def _leave(self, place: Place, rows: npt.NDArray[np.int64]) -> None:
        if len(rows):
            self._gone.setdefault(place, BitMap()).update(rows.astype(np.uint32))

    def _leave_later(self, once: PartSet) -> None:
        """Leave out what is later than the plan, of parts that also have earlier rows."""
        late = np.flatnonzero(once.times.latest > self._plan.as_of)
        some = Schema(self._latest.fields[:1])
        for at, written in zip(late, once.take(late.tolist()).written(self._history), strict=True):
            for batch in read_written(self._services.blob, written, some, updates=True, numbered=True):
                later = pc.greater(batch.column(TS), self._plan.as_of)
                self._leave(once.place(int(at)), batch.column(ROW).filter(later).to_numpy())

    def _read_changes(self, other: PartSet) -> _Rows:
        """Read the parts that retract; rows that are later than the plan are left out."""
        found = []
        for number, written in enumerate(other.written(self._history)):
            batches = read_written(self._services.blob, written, self._latest, updates=True, numbered=True)
            for batch in batches:
                past = pc.less_equal(batch.column(TS), self._plan.as_of)
                self._leave(other.place(number), batch.column(ROW).filter(pc.invert(past)).to_numpy())
                found.append((number, batch.filter(past)))
        return self._as_rows(found)

    def _read_meant(self, once: PartSet, negative: pa.Table) -> _Rows:
        """Read the rows that may be meant by a retraction."""
        if not negative.num_rows or not once:
            return self._as_rows([])
        key = self._telling_fields(negative)
        searched = key_schema(self._latest, key)
        columns = [self._latest.fields.index(field) for field in searched.fields]
        wanted = pa.Table.from_arrays(negative.select(columns).columns, schema=arrow_schema(searched))
        nothing = once.keep(np.zeros(len(once), dtype=bool))
        positions = self._find(self._plan._replace(scan=once, merge=nothing), wanted, key)
        numbers = [number for number in range(len(once)) if once.place(number) in positions]
        found = []
        for number, written in zip(numbers, once.take(numbers).written(self._history), strict=True):
            place = once.place(number)
            only = positions[place] - self._gone.get(place, BitMap())
            batches = read_written(
                self._services.blob, written, self._latest, updates=True, numbered=True, only=only
            )
            found += [(number, batch) for batch in batches]
        return self._as_rows(found)

    def _telling_fields(self, negative: pa.Table) -> Sequence[int]:
        """Choose columns that tell rows apart: the key, or those in which what was retracted differs most."""
        top = {field.id for field in self._latest.fields}
        if self._plan.state.key and top.issuperset(self._plan.state.key):
            return self._plan.state.key
        simple = [
            (at, field)
            for at, field in enumerate(self._latest.fields)
            if isinstance(field.type, Primitive) and field.type.name not in {"float", "double"}
        ]
        leading = self._plan.state.order_by
        differ = {field.id: pc.count_distinct(negative.column(at)).as_py() for at, field in simple}
        chosen = sorted(differ, key=lambda field_id: (field_id not in leading, -differ[field_id]))[:_TELLING]
        return chosen or [field.id for field in self._latest.fields]

    def _as_rows(self, found: Sequence[tuple[int, pa.RecordBatch]]) -> _Rows:
        layout = arrow_schema(self._latest).append(pa.field(DIFF, pa.int64()))
        width = len(self._latest.fields)
        pieces = [
            pa.RecordBatch.from_arrays([*batch.columns[:width], batch.column(DIFF)], schema=layout)
            for _, batch in found
        ]
        none = np.zeros(0, np.int64)
        return _Rows(
            pa.Table.from_batches(pieces, schema=layout),
            np.concatenate([none, *(np.full(batch.num_rows, number) for number, batch in found)]),
            np.concatenate([none, *(batch.column(ROW).to_numpy() for _, batch in found)]),
        )

    def _kept(self, updates: pa.Table, condition: Filter | None) -> npt.NDArray[np.bool_] | None:
        """Tell which updates stay as rows: of equal ones, as many as their diffs add up to."""
        diffs = updates.column(DIFF).to_numpy()
        if not len(diffs):
            return np.zeros(0, np.bool_)
        if np.abs(diffs.astype(np.float64)).sum() >= _SAFE_SUM:
            return None
        rows = updates.drop_columns([DIFF])
        groups = group_rows(rows, self._latest)
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        counts = np.add.reduceat(diffs[order], starts)
        if self._is_wrong(rows.take(pa.array(order[starts[counts < 0]])), condition):
            return None
        single = (diffs == 1)[order]
        if (counts > np.add.reduceat(single.astype(np.int64), starts)).any():
            return None
        before = np.cumsum(single) - single  # how many single ones come before each, in all groups
        sizes = np.diff([*starts, len(order)])
        ordinal = before - np.repeat(before[starts], sizes)
        kept = np.empty(len(order), np.bool_)
        kept[order] = single & (ordinal < np.repeat(counts, sizes))
        return kept

    def _is_wrong(self, rows: pa.Table, condition: Filter | None) -> bool:
        """Whether rows whose count is negative matter: those that a condition leaves out do not."""
        if condition is None or not rows.num_rows:
            return bool(rows.num_rows)
        reader = self._plan.reader.schema
        shown = plan_migration(self._latest, reader)
        masks = [condition.rows(shown.apply(batch), reader) for batch in rows.to_batches()]
        return any(pc.any(mask).as_py() for mask in masks)


def _joined(*rows: _Rows) -> pa.Table:
    return pa.concat_tables([each.updates for each in rows])

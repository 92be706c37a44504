"""Views that follow their tables: every query reads the state that is current when it is planned.

A view stands for its table (`stand_ins.py`), and becomes the state of that moment: a plain scan where nothing
is retracted, or the plan of a snapshot. All parts of one query read one state of a table, and hold it until
Spark forgets the query's plan. The schema is the one that a table had when its view was made, and is checked
again in each state; where some of it can no longer be honoured, the columns that a query reads count.
"""

from __future__ import annotations

import threading
import warnings
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakValueDictionary, ref

from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from instar.errors import ReaderFencedError, UsageError
from instar.schema import Schema, check_reader, spark_json
from instar.spark.native.file_index import Keeper, Listing, PartIndex
from instar.spark.native.gateway import gateway_of
from instar.spark.native.names import widened_decimals
from instar.spark.native.relation import plan_of, struct_json
from instar.spark.native.scan import metadata_plan, plan_frame
from instar.spark.native.scan_source import Branch, SnapshotSource, table_origin
from instar.spark.native.settle import may_settle_here
from instar.spark.native.stand_ins import StandIn, stand_in_frame, why_no_stand_ins
from instar.spark.planner.table import is_planned, planned_table
from instar.table.read.settle import settle
from instar.table.read.snapshot import check_fence, plan_snapshot, resolve_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from instar.schema import Field
    from instar.spark.native.file_index import TableOrigin
    from instar.spark.native.filters import Filters
    from instar.spark.native.gateway import Gateway
    from instar.state import TableState
    from instar.table import Services, TableLog
    from instar.table.log.pin import Pin
    from instar.table.read.snapshot import Reader, SnapshotPlan

__all__ = ["following_frame", "make_view", "make_views", "without_views"]

_made: WeakKeyDictionary[SparkSession, dict[str, int | None]] = WeakKeyDictionary()
"""The views of tables that each session has, and what tells them from others of their names."""


class _Held(Keeper):
    """One state of a table, and the lease on it: as long as a query needs it."""

    def __init__(self, pin: Pin) -> None:
        self.pin = pin
        self.plans: dict[frozenset[int], SnapshotPlan] = {}
        """What is read of it, by the fields that are read."""
        self.indexes: WeakValueDictionary[frozenset[int], PartIndex] = WeakValueDictionary()
        """Those of plain scans over files, by the fields that are read."""


class _View(StandIn):
    """One table, as one view sees it."""

    def __init__(self, gateway: Gateway, services: Services, log: TableLog) -> None:
        state = log.load()
        self._services = services
        self._log = log
        self._reader = resolve_reader(state, None, None)
        self._by_query: WeakValueDictionary[str, _Held] = WeakValueDictionary()
        self._latest: Callable[[], _Held | None] = lambda: None
        self._lock = threading.Lock()
        fields = self._reader.schema.fields
        super().__init__(gateway, f"instar:/{log.name}", fields, widened_decimals(state.history, fields))
        self._schema = self.schema()

    def size(self) -> int:
        """Return the size of the whole table, as of now."""
        return self._log.load().totals.bytes

    def origin(self) -> TableOrigin:
        """Return the table that is followed."""
        return table_origin(self._services, self._log.load(), self.fields)

    def held_by(self, query: str) -> _Held:
        """Return what a query reads: on its first question, the current state."""
        with self._lock:
            held = self._by_query.get(query)
            if held is None:
                held = self._by_query[query] = self._current()
            return held

    def _current(self) -> _Held:
        """Hold the current state, together with other queries that do."""
        held = self._latest()
        if held is None or not held.pin.is_held or not _is_same(held.pin.state, self._log.load()):
            held = _Held(self._log.pinned())
            self._latest = ref(held)
        return held

    def replacement(self, query: str, columns: Sequence[str]) -> Any:  # noqa: ANN401 -- a Java object
        """Return what the view is in the state of a query, for these columns."""
        held = self.held_by(query)
        reads = frozenset(self.named[name].id for name in columns if name in self.named)
        known = held.indexes.get(reads)
        if known is not None:
            return known.relation(self._schema)
        plan = held.plans.get(reads) or self._plan(held.pin.state, reads)
        held.plans[reads] = plan

        def source(branch: Branch, read: Sequence[Field]) -> SnapshotSource:
            return _ViewSource(self, self._services, branch, read, plan, held, reads)

        whole = source(Branch.PLANNED, self.fields)
        is_whole = not plan.merge and not whole.adopted()
        only_fields = set(columns) <= set(self.named)
        spark = self.gateway.spark
        if is_whole and only_fields and is_planned(spark, whole):
            over_files = partial(metadata_plan, spark, plan, source)
            return planned_table(spark, whole, self.fields, self.widened, self.label, over_files)
        if is_whole and not plan.scan.partly.any():
            index = held.indexes[reads] = PartIndex(self.gateway, self.label, struct_json(()), whole)
            return index.relation(self._schema)
        if not only_fields:
            raise UsageError(
                f"a view of `{self._log.name}` has no column `_metadata`, because rows were retracted or "
                "files adopted: read it without that"
            )
        frame = plan_frame(spark, plan, source)
        if len(plan.reader.schema.fields) < len(self.fields):
            frame = self._complete(frame)
        return plan_of(frame)

    def check(self, reads: frozenset[int]) -> None:
        """Raise if fields that a query reads can no longer be honoured."""
        state = self._log.load()
        if reads:
            check_fence(state, self._reading(reads))

    def _plan(self, state: TableState, reads: frozenset[int]) -> SnapshotPlan:
        """Plan a state; if the view is fenced there, for the fields that are read, if that is enough."""
        try:
            plan = plan_snapshot(self._services.chunks, state, self._reader, None)
            return settle(self._services, plan) if may_settle_here(plan) else plan
        except ReaderFencedError:
            reader = self._reading(reads) if reads else self._readable(state)
            plan = plan_snapshot(self._services.chunks, state, reader, None)
            if plan.merge:  # rows are only equal by all the columns that there were
                raise
            return plan

    def _reading(self, reads: frozenset[int]) -> Reader:
        """Return a reader of some fields."""
        fields = tuple(field for field in self.fields if field.id in reads)
        return self._reader._replace(schema=Schema(fields))

    def _readable(self, state: TableState) -> Reader:
        """Return a reader of what can still be read: any field tells how many rows there are."""
        honoured = [field for field in self.fields if not check_reader(state.history, Schema((field,)))]
        return self._reader._replace(schema=Schema(tuple(honoured or self.fields)))

    def _complete(self, frame: DataFrame) -> DataFrame:
        """Put nulls for columns that can no longer be read, and that nobody asked for."""
        types = {column["name"]: column["type"] for column in spark_json(self._reader.schema)["fields"]}
        there = set(frame.columns)
        return frame.select(
            *[
                F.col(f"`{name}`") if name in there else F.lit(None).cast(types[name]).alias(name)
                for name in types
            ]
        )


class _ViewSource(SnapshotSource):
    """The parts that a query of a view reads; it is fenced until it has listed them."""

    def __init__(
        self,
        view: _View,
        services: Services,
        branch: Branch,
        fields: Sequence[Field],
        plan: SnapshotPlan,
        held: _Held,
        reads: frozenset[int],
    ) -> None:
        super().__init__(view.gateway, services, branch, fields, {}, plan, held.pin)
        self._view = view
        self._held = held
        self._reads = reads

    def check_fence(self) -> None:
        """Raise if a field that the query reads can no longer be honoured."""
        self._view.check(self._reads)

    def files(self, filters: Filters) -> Listing:
        """Return the files that the query reads, held as long as Spark knows of them."""
        return Listing(super().files(filters).groups, self._held)


def _is_same(one: TableState, other: TableState) -> bool:
    return (one.table_id, one.seqno) == (other.table_id, other.seqno)


def following_frame(spark: SparkSession, services: Services, log: TableLog) -> DataFrame:
    """Return the rows of a table as of whenever they are asked for, under the schema of now."""
    return stand_in_frame(spark, _View(gateway_of(spark), services, log))


def make_views(spark: SparkSession, frames: Mapping[str, Callable[[SparkSession], DataFrame]]) -> list[str]:
    """Make a temporary view of each table, under its name, and return the names.

    Of names that Spark cannot tell apart there is no view: which of the tables would it be? And there is none
    at all in a Spark that cannot have what stands for a table.
    """
    reason = why_no_stand_ins(gateway_of(spark)) if frames else None
    if reason is not None:
        warnings.warn(f"there are no views of tables: {reason}", RuntimeWarning, stacklevel=3)
        return []
    alike = set() if spark.conf.get("spark.sql.caseSensitive") == "true" else _alike(frames)
    for name, frame in frames.items():
        if name not in alike:
            make_view(name, frame(spark))
            _made.setdefault(spark, {})[name] = _view_number(spark, name)
    if alike:
        warnings.warn(
            f"there are no views of {', '.join(sorted(alike))}: Spark does not tell these names apart unless "
            "spark.sql.caseSensitive is true. Read them with store.table(name).read(spark)",
            stacklevel=3,
        )
    return [name for name in frames if name not in alike]


def make_view(name: str, frame: DataFrame) -> None:
    """Give a frame a name in SQL, whatever it is made of."""
    frame.createOrReplaceTempView(f"`{name.replace('`', '``')}`")


@contextmanager
def without_views(spark: SparkSession, wanted: Callable[[str], bool]) -> Iterator[None]:
    """Let the views of tables that `make_views` made, and whose names are wanted, be out of the way.

    A view that somebody has put in the place of one of them stays.
    """
    names = [name for name in _made.get(spark, {}) if wanted(name)]
    if not names:
        yield
        return
    catalog, hidden = gateway_of(spark).session.sessionState().catalog(), {}
    for name in names:
        if _view_number(spark, name) == _made[spark][name]:
            hidden[name] = catalog.getRawTempView(name).get()
            catalog.dropTempView(name)
    try:
        yield
    finally:
        for name, view in hidden.items():
            if catalog.getRawTempView(name).isEmpty():
                catalog.createTempView(name, view, True)  # noqa: FBT003 -- to replace what is there


def _view_number(spark: SparkSession, name: str) -> int | None:
    """Return what tells a view of a session from another that has its name later."""
    gateway = gateway_of(spark)
    found = gateway.session.sessionState().catalog().getRawTempView(name)
    return None if found.isEmpty() else int(gateway.jvm.java.lang.System.identityHashCode(found.get()))


def _alike(names: Iterable[str]) -> set[str]:
    """Return the names that differ only in the case of letters."""
    known: dict[str, list[str]] = {}
    for name in names:
        known.setdefault(name.lower(), []).append(name)
    return {name for spellings in known.values() if len(spellings) > 1 for name in spellings}

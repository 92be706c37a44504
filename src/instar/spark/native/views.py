"""Views that follow their tables: every query reads the state that is current when it is planned.

The schema is the one that a table had when its view was made, and is checked again in each state that is
read; where some of it can no longer be honoured, what counts are the columns that a query reads. All parts
of one query read one state of a table, and hold it until Spark forgets the query's plan.
"""

from __future__ import annotations

import threading
import warnings
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakValueDictionary

from instar.errors import ReaderFencedError, UsageError
from instar.schema import Schema, check_reader
from instar.spark.native.adopted import split_by_layout
from instar.spark.native.file_index import Keeper, Listing
from instar.spark.native.gateway import gateway_of
from instar.spark.native.names import by_column_name, widened_decimals
from instar.spark.native.plans import columns_read
from instar.spark.native.scan import merge_frame, scan_frame, taken_frame
from instar.spark.native.scan_source import Branch, ScanSource
from instar.spark.native.settle import may_settle_here
from instar.state.chunk import FILES, PLACES, TIMES
from instar.table.log.manifest import load_parts
from instar.table.read.settle import settle
from instar.table.read.snapshot import plan_snapshot, resolve_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from instar.schema import Field
    from instar.spark.native.adopted import FileLayout
    from instar.spark.native.file_index import TableOrigin
    from instar.spark.native.filters import Filters
    from instar.spark.native.gateway import Gateway
    from instar.state import ConfigValue, TableState
    from instar.table import Services, TableLog
    from instar.table.log.pin import Pin
    from instar.table.read.report import ScanReport
    from instar.table.read.snapshot import Reader, SnapshotPlan

__all__ = ["following_frame", "make_view", "make_views"]


class _Held(Keeper):
    """What one query reads of one table, and the lease on it."""

    def __init__(self, plan: SnapshotPlan, pin: Pin) -> None:
        self.plan = plan
        self.release = pin.release
        self._pin = pin


class _Running:
    """What the queries of a session hold while they run, whatever becomes of their plans meanwhile."""

    def __init__(self) -> None:
        self._held: dict[int, set[_Held]] = {}
        self._lock = threading.Lock()

    def hold(self, gateway: Gateway, execution: int, held: _Held) -> None:
        """Hold something until an execution has ended, and let go of what others held that have."""
        with self._lock:
            for other in [known for known in self._held if not gateway.is_running(known)]:
                del self._held[other]
            self._held.setdefault(execution, set()).add(held)


_running: WeakKeyDictionary[Gateway, _Running] = WeakKeyDictionary()


class _Following:
    """One table, as one view sees it."""

    def __init__(self, gateway: Gateway, services: Services, log: TableLog, reader: Reader) -> None:
        self._gateway = gateway
        self._services = services
        self._log = log
        self._reader = reader
        self._running = _running.setdefault(gateway, _Running())
        self._by_query: WeakValueDictionary[int, _Held] = WeakValueDictionary()
        self._lock = threading.Lock()
        self.layouts: list[FileLayout] = []
        """The layouts of adopted files that the view reads."""
        if log.load_known().adopted is not None:
            plan = self.readable()
            parts = load_parts(services.chunks, plan.state, (), (PLACES, TIMES, FILES))
            found = split_by_layout(parts, plan.state.history, reader.schema.fields)
            self.layouts = [layout for layout in found if layout is not None]

    @property
    def name(self) -> str:
        """The table's name."""
        return self._log.name

    @property
    def label(self) -> str:
        """What the scan is called in plans."""
        return f"instar:/{self._log.name}"

    def source(self, branch: Branch) -> ScanSource:
        """Return the parts of one branch, the scan or the merge."""
        fields = self._reader.schema.fields
        return _FollowingSource(self._gateway, self._services, branch, fields, {}, self)

    def total_bytes(self) -> int:
        """Return the size of the whole table, as of now."""
        return self._log.load().totals.bytes

    def readable(self) -> SnapshotPlan:
        """Plan the current state, for the columns that can still be read."""
        return self._plan(self._readable).plan

    def current(self, *, listing: bool = True) -> _Held:
        """Return what the query reads that Spark is asking for: on its first question, the current state."""
        running = self._gateway.running_query()
        if running is None:
            return self._unknown(listing=listing)
        execution, query = running
        with self._lock:
            held = self._by_query.get(query)
            if held is None:
                read = partial(self._read_by, execution) if listing else None
                held = self._by_query[query] = self._plan(read)
            self._running.hold(self._gateway, execution, held)
            return held

    def _plan(self, narrow: Callable[[TableState], Reader | None] | None = None) -> _Held:
        """Plan the current state; if the reader is fenced, for what is left of it, and if that is enough."""
        pin = self._log.pinned()
        try:
            return _Held(self._plan_for(pin.state, narrow), pin)
        except BaseException:
            pin.release()
            raise

    def _plan_for(
        self, state: TableState, narrow: Callable[[TableState], Reader | None] | None
    ) -> SnapshotPlan:
        try:
            plan = plan_snapshot(self._services.chunks, state, self._reader, None)
            return settle(self._services, plan) if may_settle_here(plan) else plan
        except ReaderFencedError:
            reader = None if narrow is None else narrow(state)
            if reader is None:
                raise
            plan = plan_snapshot(self._services.chunks, state, reader, None)
            if plan.merge:  # rows are only equal by all the columns that there were
                raise
            return plan

    def _read_by(self, execution: int, state: TableState) -> Reader | None:
        """Return a reader of what an execution reads, or of anything if that is nothing; None if unknown."""
        plan = self._gateway.physical_plan(execution)
        read = None if plan is None else columns_read(self._gateway, plan, self.label)
        if read is None:
            return None
        named = by_column_name(self._reader.schema.fields)
        fields = tuple(field for name, field in named.items() if name in read)
        return self._reader._replace(schema=Schema(fields)) if fields else self._readable(state)

    def _readable(self, state: TableState) -> Reader | None:
        """Return a reader of the columns that can still be read, if there are any."""
        fields = self._reader.schema.fields
        honoured = tuple(field for field in fields if not check_reader(state.history, Schema((field,))))
        return self._reader._replace(schema=Schema(honoured)) if honoured else None

    def _unknown(self, *, listing: bool) -> _Held:
        """Answer a query that cannot be told from others, and so may ask its questions of several states.

        As long as nothing has to be consolidated, whatever the scan lists is complete by itself.
        """
        held = self._plan()
        if listing and (held.plan.merge or held.plan.scan.partly.any()):
            held.release()
            raise UsageError(
                f"`{self._log.name}` holds retractions, and this is not a query of Spark SQL (perhaps "
                "`.rdd`): read it through a snapshot, table.read(spark)"
            )
        return held


class _FollowingSource(ScanSource):
    """The parts of a table as of each query; both branches of one view read one state."""

    def __init__(
        self,
        gateway: Gateway,
        services: Services,
        branch: Branch,
        fields: Sequence[Field],
        options: Mapping[str, ConfigValue | None],
        following: _Following,
    ) -> None:
        super().__init__(gateway, services, branch, fields, options)
        self._following = following

    def files(self, filters: Filters) -> Listing:
        """Return the files that the query reads, held as long as Spark knows its plan."""
        held = self._following.current()
        unknown = [layout for layout in self.layouts_in(held.plan) if layout not in self._following.layouts]
        if unknown:
            raise UsageError(
                f"`{self._following.name}` has adopted files with other columns since this view was made: "
                "make it again, with instar.register or table.follow"
            )
        return Listing(self.select(held.plan, filters), held)

    def layouts(self) -> Sequence[FileLayout]:
        """Return the layouts of all adopted files as of now, which later ones have to have too."""
        return self._following.layouts

    def size(self) -> int:
        """Return the size of all files of the state that the query reads."""
        try:
            return self._parts(self._following.current(listing=False).plan).bytes
        except ReaderFencedError:  # perhaps not of what this query reads, which only its plan can tell
            return self._following.total_bytes()

    def report(self, filters: Filters) -> ScanReport | None:
        """Report on a scan of the current state with these filters."""
        plan = self._following.readable()
        return None if self.is_idle(plan) else self.explain(plan, filters)

    def origin(self) -> TableOrigin:
        """Return the table that is followed."""
        return self.origin_in(self._following.readable().state)


def following_frame(spark: SparkSession, services: Services, log: TableLog) -> DataFrame:
    """Return the rows of a table as of whenever they are asked for, under the schema of now."""
    state = log.load()
    reader = resolve_reader(state, None, None)
    following = _Following(gateway_of(spark), services, log, reader)
    label = following.label
    fields = reader.schema.fields
    widened = widened_decimals(state.history, fields)
    scan = scan_frame(spark, label, fields, following.source(Branch.SCAN), widened)
    taken = taken_frame(spark, label, fields, following.source(Branch.TAKEN), widened)
    merged = following.source(Branch.MERGE)
    merge = merge_frame(spark, log.name, f"{label}/merge", fields, merged, widened=widened)
    return scan.unionAll(taken).unionAll(merge)


def make_views(spark: SparkSession, frames: Mapping[str, Callable[[SparkSession], DataFrame]]) -> list[str]:
    """Make a temporary view of each table, under its name, and return the names.

    Of names that Spark cannot tell apart there is no view: which of the tables would it be?
    """
    alike = set() if spark.conf.get("spark.sql.caseSensitive") == "true" else _alike(frames)
    for name, frame in frames.items():
        if name not in alike:
            make_view(name, frame(spark))
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


def _alike(names: Iterable[str]) -> set[str]:
    """Return the names that differ only in the case of letters."""
    known: dict[str, list[str]] = {}
    for name in names:
        known.setdefault(name.lower(), []).append(name)
    return {name for spellings in known.values() if len(spellings) > 1 for name in spellings}

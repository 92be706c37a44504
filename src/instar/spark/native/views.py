"""Views that follow their tables: every query reads the state that is current when it is planned.

The plan of a view has one relation, which stands for the table. While Spark optimises a query, a rule
(`views.java`) replaces it by the state of that moment: by a plain scan where nothing is retracted, or by the
plan of a snapshot. All parts of one query read one state of a table, and hold it until Spark forgets the
query's plan. The schema is the one that a table had when its view was made, and is checked again in each
state; where some of it can no longer be honoured, what counts are the columns that a query reads.
"""

from __future__ import annotations

import itertools
import threading
import warnings
from typing import TYPE_CHECKING, Any, ClassVar, Final
from weakref import WeakValueDictionary, ref

from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from instar.errors import ReaderFencedError, UsageError
from instar.schema import Schema, check_reader, spark_json
from instar.spark.native.file_index import FileSource, Keeper, Listing, PartIndex
from instar.spark.native.gateway import gateway_of
from instar.spark.native.java import compiled_object
from instar.spark.native.names import by_column_name, column_name, widened_decimals
from instar.spark.native.relation import make_relation, physical_json, struct_json
from instar.spark.native.relay import relayed
from instar.spark.native.scan import plan_frame, scan_frame
from instar.spark.native.scan_source import Branch, SnapshotSource, table_origin
from instar.spark.native.settle import may_settle_here
from instar.table.read.settle import settle
from instar.table.read.snapshot import check_fence, plan_snapshot, resolve_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from instar.schema import Field
    from instar.spark.native.file_index import TableOrigin
    from instar.spark.native.filters import Filters
    from instar.spark.native.gateway import Gateway
    from instar.state import TableState
    from instar.table import Services, TableLog
    from instar.table.log.pin import Pin
    from instar.table.read.snapshot import Reader, SnapshotPlan

__all__ = ["following_frame", "make_view", "make_views"]

_OPTION: Final = "instar.view"
"""The option of a relation that says which view it stands for."""
_numbers = itertools.count(1)
_views: WeakValueDictionary[str, _View] = WeakValueDictionary()


class _Held(Keeper):
    """One state of a table, and the lease on it: as long as a query needs it."""

    def __init__(self, pin: Pin) -> None:
        self.pin = pin
        self.indexes: WeakValueDictionary[frozenset[int], PartIndex] = WeakValueDictionary()
        """Those of plain scans, by the fields that are read."""


class _View(FileSource):
    """One table, as one view sees it."""

    def __init__(self, gateway: Gateway, services: Services, log: TableLog) -> None:
        state = log.load()
        self._gateway = gateway
        self._services = services
        self._log = log
        self._reader = resolve_reader(state, None, None)
        self._by_query: WeakValueDictionary[str, _Held] = WeakValueDictionary()
        self._latest: Callable[[], _Held | None] = lambda: None
        self._lock = threading.Lock()
        self.widened = widened_decimals(state.history, self.fields)
        physical = [physical_json(field, column_name(field.id, self.widened)) for field in self.fields]
        self._schema = gateway.schema(struct_json(physical))
        self.number = str(next(_numbers))
        self.options: Mapping[str, str] = {_OPTION: self.number}
        _views[self.number] = self

    @property
    def fields(self) -> Sequence[Field]:
        """The fields that the view shows."""
        return self._reader.schema.fields

    @property
    def label(self) -> str:
        """What the scan is called in plans."""
        return f"instar:/{self._log.name}"

    def files(self, filters: Filters) -> Listing:  # noqa: ARG002 -- which these are does not matter
        """Refuse: only a rule of the session can tell what a query reads."""
        raise UsageError(
            f"this session does not know the view of `{self._log.name}`, which another session made: "
            "make one here, with instar.register or table.follow"
        )

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

    def answer(self, held: _Held, columns: Sequence[str]) -> Any:  # noqa: ANN401 -- a Java object
        """Return what the view is in a state, for these columns: a relation over files, or a plan."""
        named = by_column_name(self.fields)
        reads = frozenset(named[name].id for name in columns if name in named)
        known = held.indexes.get(reads)
        if known is not None:
            return make_relation(self._gateway, known, self._schema)
        plan = self._plan(held.pin.state, reads)

        def source(branch: Branch, read: Sequence[Field]) -> SnapshotSource:
            return _ViewSource(self, self._gateway, self._services, branch, read, plan, held, reads)

        scan = source(Branch.SCAN, self.fields)
        if not plan.merge and not plan.scan.partly.any() and not scan.adopted():
            index = held.indexes[reads] = PartIndex(self._gateway, self.label, struct_json(()), scan)
            return make_relation(self._gateway, index, self._schema)
        if not set(columns) <= set(named):
            raise UsageError(
                f"a view of `{self._log.name}` has no column `_metadata`, because rows were retracted or "
                "files adopted: read it without that"
            )
        frame = plan_frame(self._gateway.spark, plan, source)
        if len(plan.reader.schema.fields) < len(self.fields):
            frame = self._complete(frame)
        return frame._jdf.queryExecution().analyzed()  # noqa: SLF001 -- PySpark has no public way to it

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

    plannable = False

    def __init__(
        self,
        view: _View,
        gateway: Gateway,
        services: Services,
        branch: Branch,
        fields: Sequence[Field],
        plan: SnapshotPlan,
        held: _Held,
        reads: frozenset[int],
    ) -> None:
        super().__init__(gateway, services, branch, fields, {}, plan, held.pin)
        self._view = view
        self._held = held
        self._reads = reads

    def files(self, filters: Filters) -> Listing:
        """Return the files that the query reads, held as long as Spark knows of them."""
        self._view.check(self._reads)
        return Listing(super().files(filters).groups, self._held)


class _Answers:
    """What the rule asks: the relations of views in a query, and which columns of each are read."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @relayed
    def apply(self, query: str, wanted: str) -> Any:  # noqa: ANN401 -- a Scala sequence
        """Return what each relation is replaced by."""
        made: dict[str, Any] = {}
        held = []
        for line in dict.fromkeys(wanted.splitlines()):
            number, *columns = line.split(" ")
            view = _views[number]
            held.append(view.held_by(query))
            made[line] = view.answer(held[-1], columns)
        return self._gateway.seq([made[line] for line in wanted.splitlines()])

    class Java:
        """What the JVM takes this for."""

        implements: ClassVar = ["java.util.function.BiFunction"]


def _install_rule(gateway: Gateway) -> None:
    """Have the session of a gateway replace views in its queries."""
    views = compiled_object(gateway.py4j, "views.java", "instar.views.Views", _OPTION, _Answers(gateway))
    views.install(gateway.session)


def _is_same(one: TableState, other: TableState) -> bool:
    return (one.table_id, one.seqno) == (other.table_id, other.seqno)


def following_frame(spark: SparkSession, services: Services, log: TableLog) -> DataFrame:
    """Return the rows of a table as of whenever they are asked for, under the schema of now."""
    gateway = gateway_of(spark)
    _install_rule(gateway)
    view = _View(gateway, services, log)
    return scan_frame(spark, view.label, view.fields, view, view.widened)


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

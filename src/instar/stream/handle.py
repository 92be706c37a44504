"""`StreamHandle`: one stream of a store, through its journals, and the tables that it has open."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from instar.errors import StreamNotFoundError, TableExistsError
from instar.stream.batches import (
    BatchChange,
    Batches,
    BatchesImage,
    apply_batch_change,
    batches_image,
    restore_batches,
)
from instar.stream.catalog import (
    Catalog,
    CatalogChange,
    CatalogImage,
    TableRecord,
    apply_change,
    image_of,
    restore,
    time_field,
)
from instar.stream.commands import add_tables, add_version, create_stream
from instar.stream.journal import Codec, Journal
from instar.stream.kinds import Kind
from instar.stream.stamp import create_stamped, load_stamp, stamp_table
from instar.stream.version import Version, as_version
from instar.table import TableLog, check_table_name
from instar.table.log.tables import INTERNAL, begin_table, find_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from instar.schema import Schema
    from instar.state import Step, TableState
    from instar.stream.catalog import VersionRecord
    from instar.stream.routing import TablePlace
    from instar.table import Services
    from instar.table.log.table_log import Decide

    _Opened = tuple[TableLog, TableState]

__all__ = ["RowsOf", "StreamHandle", "Target", "list_streams", "stream_names"]

_CATALOG: Final = f"{INTERNAL}streams/"
_BATCHES: Final = f"{INTERNAL}batches/"
_READERS: Final = 16


class RowsOf(NamedTuple):
    """The versions of rows, and the oldest schema of the stream that holds them."""

    versions: tuple[Version, ...]
    schema_id: int

    @staticmethod
    def version(record: VersionRecord) -> RowsOf:
        """Say that rows are of one version."""
        return RowsOf((as_version(record.version),), record.schema_id)


class Target(NamedTuple):
    """A table that rows of some versions can be written to, as of the last look at it."""

    place: TablePlace
    log: TableLog
    table_id: str
    schema: Schema
    schema_id: int
    stream_schema_id: int
    order_by: tuple[int, ...]
    versions: frozenset[Version]

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.log.name

    def takes(self, rows: RowsOf) -> bool:
        """Whether rows can be written now."""
        return self.stream_schema_id >= rows.schema_id and self.versions.issuperset(rows.versions)


class StreamHandle:
    """A stream by name. Threads may share it; what it remembers of tables only saves requests."""

    def __init__(self, services: Services, name: str) -> None:
        check_table_name(name)
        self.services = services
        self.name = name
        self.journal: Journal[Catalog, CatalogChange] = Journal(
            services, _CATALOG + name, _catalog_codec(name)
        )
        self._stream_id: str | None = None
        self._batches: Journal[Batches, BatchChange] | None = None
        self._targets: dict[str, Target] = {}
        self._readers: dict[str, TableLog] = {}
        self._lock = threading.Lock()

    def create(self, schema: Schema, *, version: str, time: str, kinds: Mapping[str, str]) -> Catalog:
        """Begin the stream."""
        stream_id = self.services.new_id()
        decide = partial(
            create_stream,
            name=self.name,
            stream_id=stream_id,
            schema=schema,
            version=version,
            time=time,
            kinds=kinds,
        )
        return self._found(self.journal.commit(decide))

    def load(self) -> Catalog:
        """Return the current catalog; the stream must exist."""
        return self._found(self.journal.refresh())

    def known(self) -> Catalog:
        """Return the catalog as of the last look, without a request if there was one."""
        return self.load() if self.journal.known is None else self._found(self.journal.known)

    def commit(self, decide: Callable[[Catalog], Sequence[CatalogChange]]) -> Catalog:
        """Commit the changes that `decide` returns for the current catalog; the stream must exist."""
        return self._found(self.journal.commit(lambda catalog: decide(self._found(catalog))))

    @property
    def batches(self) -> Journal[Batches, BatchChange]:
        """The writes of the stream, and the progress of jobs."""
        if self._batches is None:
            self._batches = Journal(self.services, _BATCHES + self.known().key, _BATCHES_CODEC)
        return self._batches

    def add_version(self, version: str, schema: Schema, *, by_id: bool = False) -> Catalog:
        """Declare a version; only a new version costs a commit."""
        return self.commit(lambda catalog: add_version(catalog, version, schema, by_id=by_id))

    def find_version(self, version: str) -> VersionRecord | None:
        """Find a version; if the last look did not show it, look again."""
        wanted = as_version(version)
        return self.known().versions.get(wanted) or self.load().versions.get(wanted)

    def target(self, place: TablePlace, rows: RowsOf, *, fresh: bool = False) -> Target:
        """Return the table for rows of some versions, created or stamped if it has to be.

        A table that took these versions before is returned without a request, unless `fresh`.
        """
        name = self.known().layout.table_name(place.kind, place.start)
        known = self._targets.get(name)
        if not fresh and known is not None and known.takes(rows):
            return known
        log, state = self._open(name, place, rows)
        stamp = load_stamp(state, self.known())
        is_fit = stamp.schema_id >= rows.schema_id
        if place.kind is Kind.HOURLY and not is_fit:
            # Its schema was set once: rows that need a newer one get a table of their own.
            return self._sibling(f"{name}_{max(rows.versions)}", place, rows)
        catalog = self.known()
        evolve = place.kind is not Kind.HOURLY and not is_fit
        return self._stamped((log, state), place, rows, catalog, evolve=evolve)

    def _sibling(self, name: str, place: TablePlace, rows: RowsOf) -> Target:
        known = self._targets.get(name)
        if known is not None and known.takes(rows):
            return known
        return self._stamped(self._open(name, place, rows), place, rows, self.known(), evolve=False)

    def _stamped(
        self, opened: _Opened, place: TablePlace, rows: RowsOf, catalog: Catalog, *, evolve: bool
    ) -> Target:
        """Note that versions are about to be written to a table, and remember what was found."""
        log, state = opened

        def decide(state: TableState | None) -> tuple[Step, ...]:
            current = log.check_exists(state)
            return stamp_table(current, catalog, written=rows.versions, evolve=evolve)

        if decide(state):
            state = log.commit(decide).state
        stamp = load_stamp(state, self.known())
        target = Target(
            place,
            log,
            state.table_id,
            state.history.latest,
            state.history.latest_id,
            stamp.schema_id,
            state.order_by,
            frozenset(stamp.versions),
        )
        with self._lock:
            self._targets[log.name] = target
        return target

    def find_table(self, name: str) -> tuple[TableLog, TableState | None]:
        """Return the log of the table that has a name now, and its state; that may be one of somebody else.

        Tables are renamed: another one may have the name, or have had it first.
        """
        known = self._targets.get(name)
        if known is not None:
            state = known.log.refresh()
            if state is not None and state.is_at(name) and state.table_id == known.table_id:
                return known.log, state
        return find_log(self.services, name)

    def open_table(self, name: str, table_id: str) -> TableLog:
        """Return the log of the table with an id, and what is known about it, if it still has a name."""
        known = self._targets.get(name)
        return known.log if known is not None and known.table_id == table_id else self.find_table(name)[0]

    def newest(self, name: str) -> TableState | None:
        """Return the state of the table that has a name; what was seen of it before is not read again."""
        known = self._targets.get(name)
        log = known.log if known is not None else self._readers.get(name, TableLog(self.services, name))
        state = log.newest()
        if state is not None and not state.is_at(name):
            log, _ = find_log(self.services, name)
            state = log.newest()
        self._readers[name] = log
        return state if state is not None and state.is_at(name) else None

    def forget(self, name: str) -> None:
        """Look at a table again before the next write to it."""
        with self._lock:
            self._targets.pop(name, None)

    def _open(self, name: str, place: TablePlace, rows: RowsOf) -> _Opened:
        """Open a table, or create it: known to the stream first, so that nobody can miss it."""
        log, state = find_log(self.services, name)
        if state is not None and state.is_at(name):
            if name not in self.known().tables:
                load_stamp(state, self.known())
                self._add_table(name, place, state.table_id, None)
            return log, state
        self._add_table(name, place, self.services.new_id(), None if state is None else state.table_id)
        catalog = self.load()  # so that the table begins with the latest version
        table = catalog.tables[name]
        order_by = time_field(catalog, place.kind)

        def decide(log: TableLog) -> Decide:
            own = None if log.key == name else name
            return lambda state: create_stamped(
                state, catalog, table, order_by=order_by, written=rows.versions, name=own
            )

        try:
            log = begin_table(self.services, name, table.table_id, decide).log
        except TableExistsError:  # somebody else was faster
            log, state = find_log(self.services, name)
            return log, log.check_exists(state)
        return log, log.load_known()

    def announce(self, places: Iterable[TablePlace]) -> None:
        """Make tables known that do not exist yet, in one commit however many they are."""
        layout, tables = self.known().layout, self.known().tables
        named = {layout.table_name(*place): place for place in places}
        new = {name: place for name, place in named.items() if name not in tables}
        if new:
            self._add_tables([(name, place, self.services.new_id()) for name, place in new.items()], None)

    def _add_table(self, name: str, place: TablePlace, table_id: str, replacing: str | None) -> Catalog:
        known = self.known().tables.get(name)
        if known is not None and known.table_id != replacing:
            return self.known()
        return self._add_tables([(name, place, table_id)], replacing)

    def _add_tables(self, tables: Sequence[tuple[str, TablePlace, str]], replacing: str | None) -> Catalog:
        def decide(catalog: Catalog) -> Sequence[CatalogChange]:
            stamp = catalog.schema_id, str(catalog.max_version)
            records = [
                TableRecord(name, place.kind.value, place.start, table_id, *stamp)
                for name, place, table_id in tables
            ]
            return add_tables(catalog, records, replacing)

        return self.commit(decide)

    def _found(self, catalog: Catalog | None) -> Catalog:
        """Return a catalog of the stream that was found first, and not of a later one of its name."""
        if catalog is None:
            raise StreamNotFoundError(self.name)
        if catalog.dropped_at is not None or self._stream_id not in {None, catalog.stream_id}:
            raise StreamNotFoundError(self.name, dropped=True)
        self._stream_id = catalog.stream_id
        return catalog


def stream_names(services: Services) -> list[str]:
    """Return the names that streams have or had, in order."""
    prefix = services.log_prefix + _CATALOG
    return [key.removeprefix(prefix) for key in services.consensus.keys(prefix)]


def list_streams(services: Services) -> list[str]:
    """Return the names of the streams of a store, in order, reading one log of each."""

    def exists(name: str) -> bool:
        catalog = StreamHandle(services, name).journal.refresh()
        return catalog is not None and catalog.dropped_at is None

    names = stream_names(services)
    with ThreadPoolExecutor(_READERS) as pool:
        return [name for name, there in zip(names, pool.map(exists, names), strict=True) if there]


def _catalog_codec(name: str) -> Codec[Catalog, CatalogChange]:
    return Codec(
        "stream",
        CatalogChange,
        CatalogImage,
        lambda catalog, change: apply_change(catalog, name, change),
        image_of,
        restore,  # type: ignore[arg-type]
    )


_BATCHES_CODEC: Final = Codec[Batches, BatchChange](
    "batches",
    BatchChange,
    BatchesImage,
    apply_batch_change,
    batches_image,
    restore_batches,  # type: ignore[arg-type]
)

"""`Catalog`: what a stream is, as one immutable value: its kinds, versions, schemas, and tables by name.

Changes are facts, kept in the stream's journal; the functions that decide on them are in `commands.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Union

import msgspec

from instar.errors import UsageError
from instar.schema import History, Schema
from instar.stream.kinds import Kind, Layout
from instar.stream.period import parse_period
from instar.stream.version import Version, as_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "REPARTITION_BY",
    "Catalog",
    "CatalogChange",
    "CatalogImage",
    "JobDone",
    "StreamCreated",
    "StreamDropped",
    "StreamUndropped",
    "TableForgotten",
    "TableRecord",
    "TablesAdded",
    "VersionAdded",
    "VersionRecord",
    "apply_change",
    "image_of",
    "restore",
    "time_field",
]

REPARTITION_BY: Final = "repartition.by"
"""The setting that names the field by which rows are routed to repartitioned tables."""


class VersionRecord(msgspec.Struct, frozen=True, array_like=True):
    """A version: its own schema, and the first schema of the stream that holds its rows."""

    version: str
    schema: Schema
    schema_id: int


class TableRecord(msgspec.Struct, frozen=True, array_like=True):
    """A table that was, or is about to be, created: where its time begins, and what it was stamped with."""

    name: str
    kind: str
    start: int | None
    table_id: str
    schema_id: int
    version: str
    number: int = 0
    """How many tables the stream knew before this one: a later table has a greater number."""

    @property
    def kind_of(self) -> Kind:
        """The kind of the table."""
        return Kind(self.kind)


class StreamCreated(msgspec.Struct, frozen=True, array_like=True, tag="created"):
    """A stream begins, with its first version."""

    stream_id: str
    kinds: dict[str, str]
    time: int
    version: str
    schema: Schema
    key: str | None = None


class StreamDropped(msgspec.Struct, frozen=True, array_like=True, tag="dropped"):
    """A stream ends; its tables are dropped after that."""

    at: int


class StreamUndropped(msgspec.Struct, frozen=True, array_like=True, tag="undropped"):
    """A stream that had ended is back, with its tables."""


class VersionAdded(msgspec.Struct, frozen=True, array_like=True, tag="version"):
    """A version is known; `merged` is the stream's new schema, if the version changes it."""

    version: str
    schema: Schema
    merged: Schema | None


class TablesAdded(msgspec.Struct, frozen=True, array_like=True, tag="tables"):
    """Tables are about to be created, or created again."""

    tables: tuple[TableRecord, ...]


class TableForgotten(msgspec.Struct, frozen=True, array_like=True, tag="forgotten"):
    """A table was dropped."""

    name: str


class JobDone(msgspec.Struct, frozen=True, array_like=True, tag="job"):
    """A setting of a job, such as the column that tables are repartitioned by."""

    name: str
    value: str


CatalogChange = Union[  # noqa: UP007 -- resolved by msgspec
    StreamCreated, StreamDropped, StreamUndropped, VersionAdded, TablesAdded, TableForgotten, JobDone
]


@dataclass(frozen=True)
class Catalog:
    """A stream at one moment. `time` is the field that rows are routed by."""

    stream_id: str
    layout: Layout
    time: int
    versions: Mapping[Version, VersionRecord]
    history: History
    tables: Mapping[str, TableRecord]
    settings: Mapping[str, str]
    counter: int = 0
    """The number of the next table."""
    dropped_at: int | None = None
    """When the stream was dropped, in milliseconds; None if it was not."""
    own_key: str | None = None

    @property
    def key(self) -> str:
        """What the keys of its other journals end in: its name, unless it is not the first that has it."""
        return self.own_key or self.name

    @property
    def name(self) -> str:
        """The name of the stream."""
        return self.layout.name

    @cached_property
    def max_version(self) -> Version:
        """The highest version that anybody has written or declared."""
        return max(self.versions)

    @property
    def schema(self) -> Schema:
        """The schema of the stream: each column as the highest version that has it defines it."""
        return self.history.latest

    @property
    def schema_id(self) -> int:
        """The id of the latest schema of the stream."""
        return self.history.latest_id

    def load_version(self, version: str) -> VersionRecord:
        """Return what is known about a version, or raise an error that names the highest."""
        found = self.versions.get(as_version(version))
        if found is None:
            raise UsageError(
                f"stream `{self.name}` has no version {version}: the highest is {self.max_version}. "
                "Declare it with stream.evolve(schema, version=…)"
            )
        return found

    def tables_of(self, kinds: Sequence[Kind], *, newest_first: bool = False) -> Iterator[TableRecord]:
        """Yield the tables of some kinds, in that order, the oldest first or the newest."""
        by_kind: dict[str, list[TableRecord]] = {}
        for record in self.tables.values():
            by_kind.setdefault(record.kind, []).append(record)
        for kind in kinds:
            yield from sorted(by_kind.get(kind.value, ()), key=_age, reverse=newest_first)


def _age(record: TableRecord) -> tuple[float, str]:
    return float("-inf") if record.start is None else record.start, record.name


class CatalogImage(msgspec.Struct, frozen=True, array_like=True):
    """A whole catalog as bytes have it."""

    name: str
    stream_id: str
    kinds: dict[str, str]
    time: int
    versions: tuple[VersionRecord, ...]
    schemas: tuple[Schema, ...]
    tables: tuple[TableRecord, ...]
    settings: dict[str, str]
    counter: int
    dropped_at: int | None = None
    key: str | None = None


def image_of(catalog: Catalog) -> CatalogImage:
    """Return a catalog as it is stored."""
    return CatalogImage(
        catalog.name,
        catalog.stream_id,
        {kind.value: str(period) for kind, period in catalog.layout.periods.items()},
        catalog.time,
        tuple(catalog.versions.values()),
        catalog.history.schemas,
        tuple(catalog.tables.values()),
        dict(catalog.settings),
        catalog.counter,
        catalog.dropped_at,
        catalog.own_key,
    )


def restore(image: CatalogImage) -> Catalog:
    """Return the catalog that was stored."""
    return Catalog(
        image.stream_id,
        _layout(image.name, image.kinds),
        image.time,
        {as_version(record.version): record for record in image.versions},
        History.fold(image.schemas),
        {record.name: record for record in image.tables},
        image.settings,
        image.counter,
        image.dropped_at,
        image.key,
    )


def apply_change(catalog: Catalog | None, name: str, change: CatalogChange) -> Catalog:
    """Fold a change into a catalog."""
    if isinstance(change, StreamCreated):
        first = as_version(change.version)
        return Catalog(
            change.stream_id,
            _layout(name, change.kinds),
            change.time,
            {first: VersionRecord(str(first), change.schema, 0)},
            History.start(change.schema),
            {},
            {},
            own_key=change.key,
        )
    if catalog is None:
        raise ValueError(f"a change of stream {name}, which was never created")
    match change:
        case StreamDropped(at=at):
            return replace(catalog, dropped_at=at)
        case StreamUndropped():
            return replace(catalog, dropped_at=None)
        case VersionAdded(version=text, schema=schema, merged=merged):
            history = catalog.history
            if merged is not None:
                history = History((*history.schemas, merged), history.migration_type.extend(merged))
            version = as_version(text)
            record = VersionRecord(str(version), schema, history.latest_id)
            return replace(catalog, versions={**catalog.versions, version: record}, history=history)
        case TablesAdded(tables=added):
            tables = {**catalog.tables}
            for number, table in enumerate(added, catalog.counter):
                tables[table.name] = msgspec.structs.replace(table, number=number)
            return replace(catalog, tables=tables, counter=catalog.counter + len(added))
        case TableForgotten(name=gone):
            kept = {other: record for other, record in catalog.tables.items() if other != gone}
            return replace(catalog, tables=kept)
        case JobDone(name=job, value=value):
            return replace(catalog, settings={**catalog.settings, job: value})


def time_field(catalog: Catalog, kind: Kind) -> int:
    """Return the field by which rows are routed to the tables of a kind."""
    by = catalog.settings.get(REPARTITION_BY) if kind is Kind.REPARTITIONED else None
    return catalog.time if by is None else int(by)


def _layout(name: str, kinds: Mapping[str, str]) -> Layout:
    return Layout(name, {Kind(kind): parse_period(period) for kind, period in kinds.items()})

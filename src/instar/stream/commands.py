"""What may happen to a stream: each function looks at its catalog and answers with changes, or raises.

An empty answer means that there is nothing to do.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

from instar.errors import StreamExistsError, UsageError, VersionConflictError
from instar.schema import Primitive, Schema
from instar.stream.catalog import (
    JobDone,
    StreamCreated,
    TableForgotten,
    TablesAdded,
    VersionAdded,
)
from instar.stream.kinds import plan_layout
from instar.stream.merge import check_holds, merge_schemas, number_schema, sort_fields
from instar.stream.version import as_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from instar.schema import Field
    from instar.stream.catalog import Catalog, CatalogChange, TableRecord

__all__ = [
    "add_tables",
    "add_version",
    "check_time_column",
    "create_stream",
    "forget_table",
    "set_setting",
]

_TIMES: Final = tuple(Primitive(name) for name in ("timestamp", "timestamp_ntz", "date"))


def create_stream(
    catalog: Catalog | None,
    name: str,
    stream_id: str,
    schema: Schema,
    *,
    version: str,
    time: str,
    kinds: Mapping[str, str],
) -> Sequence[CatalogChange]:
    """Begin a stream under a name that is free. What it keeps is apart from what a stream before it kept."""
    if catalog is not None and catalog.dropped_at is None:
        raise StreamExistsError(name)
    layout = plan_layout(name, kinds)
    numbered = number_schema(schema, (), count(1))
    column = check_time_column(numbered, time)
    periods = {kind.value: str(period) for kind, period in layout.periods.items()}
    key = None if catalog is None else stream_id
    return (StreamCreated(stream_id, periods, column.id, str(as_version(version)), numbered, key),)


def check_time_column(schema: Schema, time: str) -> Field:
    """Return the column that rows are routed by: a timestamp or date at the top of the schema."""
    column = schema.select([time]).fields[0]
    if column.type not in _TIMES:
        raise UsageError(
            f"rows cannot be routed by `{time}`: it has to be a timestamp, timestamp_ntz or date"
        )
    return column


def add_version(
    catalog: Catalog, version: str, schema: Schema, *, by_id: bool = False
) -> Sequence[CatalogChange]:
    """Make a version known; one that is known with the same schema is no change.

    Columns are matched by name, or with `by_id` by their ids, which tells renamed columns from new ones.
    """
    wanted = as_version(version)
    known = catalog.versions.get(wanted)
    others = _by_weight(catalog, wanted)
    if known is not None:
        again = schema if by_id else number_schema(schema, (known.schema, *others), _fresh_ids(catalog))
        if sort_fields(again) == known.schema:
            return ()
        raise VersionConflictError(catalog.name, wanted, known=str(known.schema), given=str(schema))
    numbered = sort_fields(schema) if by_id else number_schema(schema, others, _fresh_ids(catalog))
    if wanted > catalog.max_version:
        merged = merge_schemas([numbered, catalog.schema])
    else:
        every = {**{number: record.schema for number, record in catalog.versions.items()}, wanted: numbered}
        merged = merge_schemas([every[number] for number in sorted(every, reverse=True)])
    # What holds the rows of the stream's schema so far holds those of every version in it.
    catalog.history.evolve(merged, catalog.name)
    check_holds(catalog.name, wanted, numbered, merged)
    changed = None if merged == catalog.schema else merged
    return (VersionAdded(str(wanted), numbered, changed),)


def _by_weight(catalog: Catalog, wanted: str) -> list[Schema]:
    """Return the schemas of the other versions: first the nearest below, whose names a new one continues."""
    descending = sorted(catalog.versions, reverse=True)
    below = [number for number in descending if number < wanted]
    above = [number for number in descending if number > wanted]
    return [catalog.versions[number].schema for number in (*below, *above)]


def _fresh_ids(catalog: Catalog) -> count[int]:
    return count(catalog.history.next_field_id)


def add_tables(
    catalog: Catalog, tables: Sequence[TableRecord], replacing: str | None = None
) -> Sequence[CatalogChange]:
    """Make tables known before they are created.

    One that is known already stays, unless it is the table with the id `replacing`, which was dropped.
    """
    known = {name: record.table_id for name, record in catalog.tables.items()}
    new = tuple(table for table in tables if known.get(table.name, replacing) == replacing)
    return (TablesAdded(new),) if new else ()


def forget_table(catalog: Catalog, name: str, table_id: str) -> Sequence[CatalogChange]:
    """Forget a table that was dropped, unless it has been created again."""
    known = catalog.tables.get(name)
    return () if known is None or known.table_id != table_id else (TableForgotten(name),)


def set_setting(catalog: Catalog, name: str, value: str) -> Sequence[CatalogChange]:
    """Remember a setting of a job."""
    return () if catalog.settings.get(name) == value else (JobDone(name, value),)

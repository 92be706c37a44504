"""Namespaces, sources and tags; search over names; and the events as they were received."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final

import msgspec
from sqlalchemy import ColumnElement, func, literal, or_, select, union_all
from sqlalchemy.orm import aliased

from instar.errors import EntityNotFoundError, UsageError
from instar.lineage.ids import namespace_id, source_id
from instar.lineage.models import DatasetRow, EventRow, JobRow, NamespaceRow, SourceRow, TagRow
from instar.lineage.queries.rows import Json, Page, count_rows, format_time

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from instar.lineage.events import EventKind

__all__ = [
    "list_events",
    "list_namespaces",
    "list_sources",
    "list_tags",
    "search",
    "show_namespace",
    "show_source",
]

_SORTS: Final = ("NAME", "UPDATE_AT")
_FILTERS: Final = ("DATASET", "JOB")


def list_namespaces(connection: Connection, page: Page) -> Json:
    """Return the namespaces by name."""
    shown = NamespaceRow.is_hidden.is_(False)
    statement = select(NamespaceRow.__table__).where(shown).order_by(NamespaceRow.name)
    rows = connection.execute(statement.limit(page.limit).offset(page.offset))
    total = connection.scalar(select(func.count()).select_from(NamespaceRow).where(shown))
    return {"namespaces": [_show_namespace(row) for row in rows], "totalCount": total}


def show_namespace(connection: Connection, name: str) -> Json:
    """Return one namespace, or raise."""
    wanted = select(NamespaceRow.__table__).where(NamespaceRow.uuid == namespace_id(name))
    row = connection.execute(wanted).first()
    if row is None:
        raise EntityNotFoundError("namespace", name)
    return _show_namespace(row)


def _show_namespace(row: Any) -> Json:  # noqa: ANN401 -- a row
    return {
        "name": row.name,
        "createdAt": format_time(row.created_at),
        "updatedAt": format_time(row.updated_at if row.updated_at is not None else row.created_at),
        "ownerName": row.owner_name or "anonymous",
        "description": row.description,
        "isHidden": row.is_hidden,
    }


def list_sources(connection: Connection, page: Page) -> Json:
    """Return the sources by name."""
    statement = select(SourceRow.__table__).order_by(SourceRow.name)
    rows = connection.execute(statement.limit(page.limit).offset(page.offset))
    total = connection.scalar(select(func.count()).select_from(SourceRow))
    return {"sources": [_show_source(row) for row in rows], "totalCount": total}


def show_source(connection: Connection, name: str) -> Json:
    """Return one source, or raise."""
    row = connection.execute(select(SourceRow.__table__).where(SourceRow.uuid == source_id(name))).first()
    if row is None:
        raise EntityNotFoundError("source", name)
    return _show_source(row)


def _show_source(row: Any) -> Json:  # noqa: ANN401 -- a row
    return {
        "type": row.type,
        "name": row.name,
        "createdAt": format_time(row.created_at),
        "updatedAt": format_time(row.updated_at),
        "connectionUrl": row.connection_url,
        "description": row.description,
    }


def list_tags(connection: Connection, page: Page) -> Json:
    """Return the tags by name."""
    statement = select(TagRow.name, TagRow.description).order_by(TagRow.name)
    rows = connection.execute(statement.limit(page.limit).offset(page.offset))
    return {"tags": [{"name": name, "description": description} for name, description in rows]}


def search(
    connection: Connection,
    text: str,
    page: Page,
    *,
    kind: str | None = None,
    sort: str = "NAME",
    namespace: str | None = None,
    before: int | None = None,
    after: int | None = None,
) -> Json:
    """Return the datasets and jobs whose name contains a text, whatever its case; `totalCount` is exact."""
    if sort not in _SORTS or kind not in (None, *_FILTERS):
        raise UsageError(f"sort is one of {', '.join(_SORTS)}, and filter one of {', '.join(_FILTERS)}")
    parts = []
    for name, row in (("DATASET", DatasetRow), ("JOB", JobRow)):
        if kind not in (None, name):
            continue
        called: Any = aliased(DatasetRow) if row is DatasetRow else row  # a dataset has several names
        wanted: list[ColumnElement[bool]] = [row.is_hidden.is_(False), _contains(called.name, text)]
        wanted += [called.namespace_uuid == namespace_id(namespace)] if namespace is not None else []
        wanted += [row.updated_at < before] if before is not None else []
        wanted += [row.updated_at > after] if after is not None else []
        part = select(
            literal(name).label("kind"), row.name, row.updated_at, NamespaceRow.name.label("namespace")
        ).join(NamespaceRow, NamespaceRow.uuid == row.namespace_uuid)
        if row is DatasetRow:
            part = part.join(called, called.root_uuid == DatasetRow.uuid).distinct()
        parts.append(part.where(*wanted))
    found = union_all(*parts).subquery()
    order = (found.c.updated_at.desc(), found.c.name) if sort == "UPDATE_AT" else (found.c.name,)
    statement = select(found).order_by(*order, found.c.namespace, found.c.kind)
    rows = connection.execute(statement.limit(page.limit).offset(page.offset))
    results = [
        {
            "type": row.kind,
            "name": row.name,
            "updatedAt": format_time(row.updated_at),
            "namespace": row.namespace,
            "nodeId": f"{row.kind.lower()}:{row.namespace}:{row.name}",
        }
        for row in rows
    ]
    total = connection.scalar(select(func.count()).select_from(found))
    return {"totalCount": total, "results": results}


def _contains(name: Any, text: str) -> ColumnElement[bool]:  # noqa: ANN401 -- a column
    """Say that a name has a text in it; in PostgreSQL, its locale says which letters are the same."""
    ignoring_case = func.lower(name).contains(text.lower(), autoescape=True)
    return or_(ignoring_case, name.contains(text, autoescape=True)) if not text.isascii() else ignoring_case


def list_events(
    connection: Connection,
    page: Page,
    *,
    before: int | None = None,
    after: int | None = None,
    descending: bool = True,
    namespace: str | None = None,
    kind: EventKind | None = None,
) -> Json:
    """Return events as they were received, by their time; all of them, or those of one kind."""
    wanted: list[ColumnElement[bool]] = [EventRow.kind == kind.value] if kind is not None else []
    wanted += [EventRow.event_time < before] if before is not None else []
    wanted += [EventRow.event_time >= after] if after is not None else []
    wanted += [EventRow.namespace_uuid == namespace_id(namespace)] if namespace is not None else []
    order = (EventRow.event_time, EventRow.uuid)
    ordered = [column.desc() for column in order] if descending else list(order)
    statement = select(EventRow.payload).where(*wanted).order_by(*ordered)
    rows = connection.scalars(statement.limit(page.limit).offset(page.offset))
    total = count_rows(connection, EventRow, page, *wanted)
    return {"events": [msgspec.json.decode(zlib.decompress(row)) for row in rows], "totalCount": total}

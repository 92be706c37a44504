"""How rows are asked for and shown: times, pages, facets, and many ids at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec
from sqlalchemy import func, literal, select

from instar.lineage.models import FacetContentRow, FacetRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from uuid import UUID

    from sqlalchemy import ColumnElement, Connection

    from instar.lineage.models import Base

__all__ = ["Json", "Page", "chunks", "count_rows", "facets_of", "format_time"]

Json = dict[str, Any]
T = TypeVar("T")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CHUNK: Final = 400  # SQLite joins at most 500 selects


class Page(NamedTuple):
    """Which part of a list is wanted."""

    limit: int = 100
    offset: int = 0


COUNTED: Final = 10_000
"""How many rows after a page are counted: long lists must not get slower and slower."""


def count_rows(connection: Connection, row: type[Base], page: Page, *wanted: ColumnElement[bool]) -> int:
    """Return how many rows there are, or if more than 10,000 are behind the page, those up to there."""
    some = select(literal(1)).select_from(row).where(*wanted).limit(page.offset + page.limit + COUNTED)
    return int(connection.scalar(select(func.count()).select_from(some.subquery())) or 0)


def format_time(at: int | None) -> str | None:
    """Write a time as ISO 8601 in UTC."""
    if at is None:
        return None
    moment = _EPOCH + timedelta(microseconds=at)
    return moment.isoformat(timespec="microseconds" if at % 1000 else "milliseconds").replace("+00:00", "Z")


def chunks(values: Iterable[T], size: int = _CHUNK) -> Iterator[Sequence[T]]:
    """Yield values a few hundred at a time."""
    found = list(values)
    for start in range(0, len(found), size):
        yield found[start : start + size]


def facets_of(connection: Connection, owners: Iterable[UUID], *scopes: str) -> dict[UUID, dict[str, Json]]:
    """Return the facets of owners by name, without those that were deleted."""
    found = stamped_facets(connection, owners, *scopes)
    return {owner: {name: facet for name, (_, facet) in facets.items()} for owner, facets in found.items()}


def stamped_facets(
    connection: Connection, owners: Iterable[UUID], *scopes: str
) -> dict[UUID, dict[str, tuple[str, Json]]]:
    """Return the facets of owners by name, each with the stamp of the event that gave it."""
    found: dict[UUID, dict[str, tuple[str, Json]]] = {}
    for some in chunks(set(owners)):
        rows = connection.execute(
            select(FacetRow.owner_uuid, FacetRow.name, FacetRow.stamp, FacetContentRow.payload)
            .join(FacetContentRow, FacetContentRow.uuid == FacetRow.content_uuid)
            .where(FacetRow.owner_uuid.in_(some), FacetRow.scope.in_(scopes))
            .order_by(FacetRow.name)
        )
        for owner, name, stamp, payload in rows:
            facet = msgspec.json.decode(payload)
            if facet.get("_deleted") is not True:
                found.setdefault(owner, {})[name] = stamp, facet
    return found

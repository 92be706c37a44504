"""Names that mean the same dataset: groups of names, and the main name of each group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import or_, select, update

from instar.lineage.database import add_missing
from instar.lineage.models import DatasetRow, DatasetSymlinkRow, NamespaceRow

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from sqlalchemy import Connection

__all__ = ["record_symlinks"]


def record_symlinks(
    connection: Connection, links: list[tuple[UUID, UUID, str | None]], aged: Iterable[UUID]
) -> set[UUID]:
    """Store symlinks; return the datasets whose group of names, or main name, changed.

    A dataset that is older than it seemed may now be the first of its group.
    """
    seen = {*aged, *(one for link in links for one in link[:2])}
    if not seen:
        return set()
    rows = [
        {"dataset_uuid": one, "alias_uuid": other, "type": kind} for one, other, kind in sorted(set(links))
    ]
    add_missing(connection, DatasetSymlinkRow, rows)
    changed: set[UUID] = set()
    linked = or_(DatasetSymlinkRow.dataset_uuid.in_(list(seen)), DatasetSymlinkRow.alias_uuid.in_(list(seen)))
    waiting = set(connection.scalars(select(DatasetSymlinkRow.dataset_uuid).where(linked)))
    while waiting:
        group, declared = _group(connection, waiting.pop())
        waiting -= group
        changed |= _choose_root(connection, group, declared)
    return changed


def _group(connection: Connection, start: UUID) -> tuple[set[UUID], set[UUID]]:
    """Return all names that are connected with one, and those that another one declared to be its alias."""
    group, declared, frontier = {start}, set(), {start}
    while frontier:
        found = connection.execute(
            select(DatasetSymlinkRow.dataset_uuid, DatasetSymlinkRow.alias_uuid).where(
                or_(
                    DatasetSymlinkRow.dataset_uuid.in_(list(frontier)),
                    DatasetSymlinkRow.alias_uuid.in_(list(frontier)),
                )
            )
        ).all()
        declared |= {row.alias_uuid for row in found}
        frontier = {uuid for row in found for uuid in row} - group
        group |= frontier
    return group, declared


def _choose_root(connection: Connection, group: set[UUID], declared: set[UUID]) -> set[UUID]:
    """Choose the main name of the group: preferably one that is nobody's alias, then the oldest."""
    rows = connection.execute(
        select(
            DatasetRow.uuid, DatasetRow.root_uuid, DatasetRow.created_at, NamespaceRow.name, DatasetRow.name
        )
        .join(NamespaceRow, NamespaceRow.uuid == DatasetRow.namespace_uuid)
        .where(DatasetRow.uuid.in_(list(group)))
    ).all()
    root = min(rows, key=lambda row: (row[0] in declared, *row[2:]))[0]
    changed = {row[0] for row in rows if row[1] != root}
    if changed:
        connection.execute(update(DatasetRow).where(DatasetRow.uuid.in_(list(group))).values(root_uuid=root))
    return changed

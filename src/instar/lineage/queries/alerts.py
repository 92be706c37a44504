"""Alerts about schemas: those of a dataset or of all, and those that wait to be delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import ColumnElement, select, update

from instar.lineage.models import AlertRow, DatasetRow, NamespaceRow
from instar.lineage.queries.rows import Json, Page, count_rows, format_time

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy import Connection

__all__ = ["list_alerts", "pending_alerts", "record_delivery"]

MAX_ATTEMPTS = 5


def list_alerts(connection: Connection, page: Page, root: UUID | None = None) -> Json:
    """Return alerts, the newest first."""
    wanted: list[ColumnElement[bool]] = [AlertRow.dataset_uuid == root] if root is not None else []
    statement = _select().where(*wanted).order_by(AlertRow.created_at.desc(), AlertRow.uuid)
    rows = connection.execute(statement.limit(page.limit).offset(page.offset))
    total = count_rows(connection, AlertRow, page, *wanted)
    return {"alerts": [_show(row) for row in rows], "totalCount": total}


def pending_alerts(connection: Connection, limit: int = 1000) -> list[tuple[UUID, str, Json]]:
    """Return alerts that wait to be delivered: their ids, where to, and what."""
    statement = _select().where(AlertRow.delivery == "pending").order_by(AlertRow.created_at).limit(limit)
    return [(row.uuid, row.webhook_url, _show(row)) for row in connection.execute(statement)]


def record_delivery(connection: Connection, uuid: UUID, problem: str | None) -> None:
    """Remember how an attempt to deliver an alert went; after a few, no more are made."""
    attempts = connection.scalar(select(AlertRow.attempts).where(AlertRow.uuid == uuid)) or 0
    state = "delivered" if problem is None else "failed" if attempts + 1 >= MAX_ATTEMPTS else "pending"
    connection.execute(
        update(AlertRow)
        .where(AlertRow.uuid == uuid)
        .values(attempts=attempts + 1, delivery=state, problem=problem)
    )


def _select() -> Any:  # noqa: ANN401 -- a select of many columns
    return (
        select(AlertRow.__table__, DatasetRow.name, NamespaceRow.name.label("namespace"))
        .join(DatasetRow, DatasetRow.uuid == AlertRow.dataset_uuid)
        .join(NamespaceRow, NamespaceRow.uuid == DatasetRow.namespace_uuid)
    )


def _show(row: Any) -> Json:  # noqa: ANN401 -- a row
    return {
        "id": str(row.uuid),
        "dataset": {"namespace": row.namespace, "name": row.name},
        "datasetVersion": str(row.dataset_version_uuid),
        "policy": row.policy,
        "from": str(row.old_schema_version_uuid),
        "to": str(row.new_schema_version_uuid),
        "changes": msgspec.json.decode(row.changes),
        "createdAt": format_time(row.created_at),
        "delivery": row.delivery,
        "attempts": row.attempts,
        "problem": row.problem,
    }

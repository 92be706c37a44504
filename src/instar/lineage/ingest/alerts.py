"""Alerts: what a dataset's compatibility policy does not allow is stored, and waits to be delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import select

from instar.lineage.database import add_missing
from instar.lineage.ids import stable_id
from instar.lineage.ingest.schema_versions import load_content
from instar.lineage.models import AlertRow, DatasetRow, DatasetVersionRow
from instar.lineage.verdicts import diff, violations

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy import Connection

__all__ = ["raise_alert"]


def raise_alert(connection: Connection, root: UUID, earlier: Any, latest: Any) -> None:  # noqa: ANN401 -- rows
    """Compare the schemas of two versions that follow one another, and raise an alert if the policy says so.

    Only the latest version is looked at: an old event that comes late alarms nobody.
    """
    column = DatasetVersionRow.dataset_schema_version_uuid
    pair = [
        connection.scalar(select(column).where(DatasetVersionRow.uuid == one.uuid))
        for one in (earlier, latest)
    ]
    old, new = pair
    if old is None or new is None or old == new:
        return
    policy, webhook = connection.execute(
        select(DatasetRow.compatibility, DatasetRow.webhook_url).where(DatasetRow.uuid == root)
    ).one()
    verdict = diff(load_content(connection, old).fields, load_content(connection, new).fields)
    changes = violations(policy, verdict)
    if not changes:
        return
    row = {
        "uuid": stable_id("alert", root, latest.uuid, policy, old, new),
        "dataset_uuid": root,
        "dataset_version_uuid": latest.uuid,
        "policy": policy,
        "old_schema_version_uuid": old,
        "new_schema_version_uuid": new,
        "changes": msgspec.json.encode(changes).decode(),
        "created_at": latest.current_at,
        "webhook_url": webhook,
        "delivery": "pending" if webhook else None,
        "attempts": 0,
    }
    add_missing(connection, AlertRow, [row])

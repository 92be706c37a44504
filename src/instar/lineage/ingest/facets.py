"""Facets: each content is kept once, and each owner points at what the latest event gave it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from instar.lineage.database import add_missing, insert
from instar.lineage.ids import content_id
from instar.lineage.models import FacetContentRow, FacetRow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from sqlalchemy import Connection

    from instar.lineage.ingest.mentions import Mentions

__all__ = ["record_facets"]


def record_facets(connection: Connection, mentions: Mentions) -> None:
    """Store all facets of an event."""
    contents: dict[UUID, str] = {}
    uses: dict[tuple[UUID, str, str], dict[str, Any]] = {}
    for owner, scope, name, facet in _reports(mentions):
        payload = msgspec.json.encode(facet, order="sorted")
        content = content_id(payload)
        contents[content] = payload.decode()
        uses[owner, scope, name] = {
            "owner_uuid": owner,
            "scope": scope,
            "name": name,
            "content_uuid": content,
            "stamp": mentions.event.stamp,
        }
    if not uses:
        return
    rows = [{"uuid": uuid, "payload": payload} for uuid, payload in sorted(contents.items())]
    add_missing(connection, FacetContentRow, rows)
    connection.execute(_merge_facet(connection.dialect.name), [uses[key] for key in sorted(uses)])


@cache
def _merge_facet(dialect: str) -> Any:  # noqa: ANN401 -- an INSERT of either dialect
    statement = insert(dialect, FacetRow)
    given = statement.excluded
    return statement.on_conflict_do_update(
        index_elements=["owner_uuid", "scope", "name"],
        set_={"content_uuid": given.content_uuid, "stamp": given.stamp},
        where=given.stamp > FacetRow.stamp,
    )


def _reports(mentions: Mentions) -> Iterator[tuple[UUID, str, str, dict[str, Any]]]:
    event = mentions.event
    groups: list[tuple[UUID | None, str, dict[str, dict[str, Any] | None] | None]] = [
        (mentions.run_uuid, "run", event.run_facets),
        (mentions.job_uuid, "job", event.job.facets if event.job else None),
    ]
    for mention in mentions.datasets:
        dataset = mention.dataset
        groups.append((mention.uuid, "dataset", dataset.facets))
        if mention.is_input:
            groups.append((mention.made, "input", dataset.input_facets))
        else:
            groups.append((mention.made, "version", dataset.facets))
            groups.append((mention.made, "output", dataset.output_facets))
    for owner, scope, facets in groups:
        for name, facet in (facets or {}).items():
            if owner is not None and facet is not None:
                yield owner, scope, name, facet

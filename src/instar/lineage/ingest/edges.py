"""Edges that outlive single runs: which job reads and writes what, and what columns are made from."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import case, or_

from instar.lineage.database import insert
from instar.lineage.ids import dataset_id, stable_id
from instar.lineage.models import ColumnLineageRow, JobEdgeRow

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy import Connection

    from instar.lineage.ingest.mentions import Mentions
    from instar.lineage.models import Base

__all__ = ["record_columns", "record_edges"]


def record_edges(connection: Connection, mentions: Mentions) -> None:
    """Remember which datasets the job of an event reads and writes."""
    values = [
        {
            "job_uuid": mentions.job_uuid,
            "dataset_uuid": mention.uuid,
            "io": "input" if mention.is_input else "output",
        }
        for mention in mentions.datasets
        if mentions.job_uuid is not None
    ]
    _record_seen(connection, JobEdgeRow, ("job_uuid", "dataset_uuid", "io"), values, mentions.event.at)


def record_columns(connection: Connection, mentions: Mentions) -> None:
    """Remember which columns of the outputs are made from which columns."""
    found: dict[UUID, dict[str, Any]] = {}
    for mention in mentions.outputs:
        for column, made in mention.dataset.columns().items():
            for source in made.input_fields or []:
                values: dict[str, Any] = {
                    "output_dataset_uuid": mention.uuid,
                    "output_field": column,
                    "input_dataset_uuid": dataset_id(source.namespace, source.name),
                    "input_field": source.field,
                    "transformations": msgspec.json.encode(
                        source.transformations or [], order="sorted"
                    ).decode(),
                    "transformation_type": made.transformation_type,
                    "transformation_description": made.transformation_description,
                    "job_uuid": mentions.job_uuid,
                }
                uuid = stable_id("column lineage", *values.values())
                found[uuid] = {"uuid": uuid, **values}
    rows = [found[uuid] for uuid in sorted(found)]
    _record_seen(connection, ColumnLineageRow, ("uuid",), rows, mentions.event.at)


def _record_seen(
    connection: Connection, row: type[Base], key: tuple[str, ...], values: list[dict[str, Any]], at: int
) -> None:
    """Add what is new, and widen the span of time in which the rest was seen."""
    if not values:
        return
    statement = _merge_seen(connection.dialect.name, row, key)
    connection.execute(statement, [{**value, "first_seen_at": at, "last_seen_at": at} for value in values])


@cache
def _merge_seen(dialect: str, row: type[Base], key: tuple[str, ...]) -> Any:  # noqa: ANN401 -- an INSERT of either dialect
    statement = insert(dialect, row)
    first, last, given = row.first_seen_at, row.last_seen_at, statement.excluded  # type: ignore[attr-defined]
    return statement.on_conflict_do_update(
        index_elements=list(key),
        set_={
            "first_seen_at": case((given.first_seen_at < first, given.first_seen_at), else_=first),
            "last_seen_at": case((given.last_seen_at > last, given.last_seen_at), else_=last),
        },
        where=or_(given.first_seen_at < first, given.last_seen_at > last),
    )

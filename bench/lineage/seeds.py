"""Databases of a size: real events first, and then copies of the versions that they made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from instar.lineage import decode_event, ingest_event
from testbed.lineage import dataset, run_event

if TYPE_CHECKING:
    from instar.lineage import Database

__all__ = [
    "COLUMNS",
    "OLD_LAYOUT",
    "add_old_layout",
    "add_versions",
    "chain",
    "events_of",
    "forget_schema_versions",
    "write_events",
]

COLUMNS: Final = 20
OLD_LAYOUT: Final = "dataset_versions_field_mapping"
_FIELDS: Final = ", ".join(f"column_{number} string" for number in range(COLUMNS))


def write_events(database: Database, runs: int, datasets: int = 1) -> None:
    """Let a job run again and again, and write the same columns each time."""
    for number in range(runs):
        for event in events_of(number, datasets):
            ingest_event(database, decode_event(event), received_at=0)


def events_of(number: int, datasets: int = 1) -> list[dict[str, Any]]:
    """Return the event of one run, with a schema that never changes."""
    outputs = [dataset(f"out{one}", _FIELDS) for one in range(datasets)]
    return [run_event("COMPLETE", number % 86_000, number + 1, outputs=outputs)]


def chain(database: Database, length: int) -> None:
    """Let each job read what the one before it wrote."""
    for step in range(length):
        event = run_event(
            "COMPLETE",
            step,
            10_000_000 + step,
            job=f"step{step}",
            inputs=[dataset(f"link{step}")],
            outputs=[dataset(f"link{step + 1}", _FIELDS)],
        )
        ingest_event(database, decode_event(event), received_at=0)


def add_versions(database: Database, count: int) -> None:
    """Copy the current versions of all datasets until so many have been added."""
    if count <= 0:
        return
    new_id = "lower(hex(randomblob(16)))" if database.is_sqlite else "gen_random_uuid()"
    numbers = (
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :copies)"
        if database.is_sqlite
        else "WITH numbers(n) AS (SELECT generate_series(1, CAST(:copies AS bigint)))"
    )
    copy = (
        "INSERT INTO dataset_versions (uuid, dataset_uuid, run_uuid, created_at, current_at, "
        "declared_schema_version_uuid, declared_stamp, dataset_schema_version_uuid) "
        f"{numbers} SELECT {new_id}, v.dataset_uuid, v.run_uuid, v.created_at - n * 600000000, "
        "v.current_at - n * 600000000, v.declared_schema_version_uuid, v.declared_stamp, "
        "v.dataset_schema_version_uuid FROM dataset_versions v "
        "JOIN datasets d ON d.current_version_uuid = v.uuid, numbers"
    )
    if database.is_sqlite:  # SQLite wants the WITH in front
        copy = f"{numbers} " + copy.replace(f"{numbers} ", "")
    recount = (
        "UPDATE datasets SET version_count = (SELECT count(*) FROM dataset_versions v "
        "WHERE v.dataset_uuid = datasets.uuid)"
    )
    with database.engine.begin() as connection:
        known = connection.scalar(
            text("SELECT count(*) FROM datasets WHERE current_version_uuid IS NOT NULL")
        )
        connection.execute(text(copy), {"copies": max(1, count // (known or 1))})
        connection.execute(text(recount))
    with database.engine.connect() as connection:
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")  # noqa: PLW2901
        connection.execute(text("ANALYZE"))


def add_old_layout(database: Database) -> None:
    """Add the table that others keep: a row for each field of each dataset version, with its two indexes."""
    fields = (
        "SELECT v.uuid AS dataset_version_uuid, m.dataset_field_uuid FROM dataset_versions v "
        "JOIN dataset_schema_versions_field_mapping m "
        "ON m.dataset_schema_version_uuid = v.dataset_schema_version_uuid"
    )
    statements = [
        f"CREATE TABLE {OLD_LAYOUT} AS {fields}",
        f"CREATE UNIQUE INDEX {OLD_LAYOUT}_key ON {OLD_LAYOUT} (dataset_version_uuid, dataset_field_uuid)",
        f"CREATE INDEX {OLD_LAYOUT}_index ON {OLD_LAYOUT} (dataset_field_uuid)",
    ]
    with database.engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def forget_schema_versions(database: Database) -> None:
    """Leave what a database had before schema versions: the old layout alone."""
    with database.engine.begin() as connection:
        connection.execute(
            text(
                "UPDATE dataset_versions SET dataset_schema_version_uuid = NULL, "
                "declared_schema_version_uuid = NULL"
            )
        )
        connection.execute(text("DELETE FROM dataset_schema_versions"))
    with database.engine.connect() as connection:
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")  # noqa: PLW2901
        connection.execute(text("VACUUM ANALYZE"))

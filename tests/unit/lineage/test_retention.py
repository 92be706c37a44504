"""Retention: what was superseded goes, in small batches, and what is current stays whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from instar.lineage.models import DatasetVersionRow, SchemaVersionRow
from instar.lineage.queries.datasets import list_versions, show_dataset
from instar.lineage.queries.names import load_dataset
from instar.lineage.queries.rows import Page
from instar.lineage.retention import retire
from testbed.lineage import dataset, run_event
from tests.lineage import dump, send

if TYPE_CHECKING:
    from instar.lineage import Database

START = 1_767_225_600_000_000  # 2026


def test_old_versions_go_and_then_the_schemas_that_nothing_refers_to(database: Database) -> None:
    """Of a dataset stay the versions since the one that was current at the time, and their schemas."""
    for run, fields in enumerate(["a int", "a int, b int", "a int", "a int, c int", "a int"], start=1):
        send(database, run_event("COMPLETE", run, run, outputs=[dataset("x", fields)]))
    send(database, run_event("FAIL", 2, 9, outputs=[dataset("x", "z int")]))
    send(database, run_event("COMPLETE", 1, 10, outputs=[dataset("rare", "a int")]))
    retired = retire(database, START + 4_500_000, batch=2)
    assert retired.dataset_versions == 4  # three that were superseded, and the one that failed
    assert retired.events == 6
    with database.reading() as connection:
        root = load_dataset(connection, "db", "x")
        versions = list_versions(connection, root, Page())
        assert versions["totalCount"] == len(versions["versions"]) == 2
        assert show_dataset(connection, root)["currentVersion"] == versions["versions"][0]["version"]
        mine = select(SchemaVersionRow.uuid).where(SchemaVersionRow.dataset_uuid == root)
        assert len(list(connection.scalars(mine))) == 2
        rare = load_dataset(connection, "db", "rare")
        assert show_dataset(connection, rare)["fields"][0]["name"] == "a", "however old, it is current"


def test_what_readers_saw_of_a_version_that_stays_is_kept(database: Database) -> None:
    """The schema of a version does not change because its readers are old."""
    send(
        database,
        run_event("COMPLETE", 1, 1, outputs=[dataset("x", "a int")]),
        run_event("COMPLETE", 2, 2, inputs=[dataset("x", "a int, b int")]),
    )
    retire(database, START + 60_000_000)
    send(database, run_event("COMPLETE", 90, 3, inputs=[dataset("x", "a int")]))
    with database.reading() as connection:
        shown = show_dataset(connection, load_dataset(connection, "db", "x"))
    assert [field["name"] for field in shown["fields"]] == ["a", "b"]


def test_retention_that_has_nothing_to_do_changes_nothing(database: Database) -> None:
    """Everything that is younger stays as it is."""
    send(
        database, run_event("COMPLETE", 5, 1, inputs=[dataset("y", "q int")], outputs=[dataset("x", "a int")])
    )
    before = dump(database)
    assert sum(retire(database, START).to_json().values()) == 0
    assert dump(database) == before
    with database.reading() as connection:
        assert len(list(connection.scalars(select(DatasetVersionRow.uuid)))) == 2

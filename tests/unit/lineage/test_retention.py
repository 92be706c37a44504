"""Retention: what was superseded goes, in small batches, and what is current stays whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event as listening
from sqlalchemy import func, select

from instar.lineage import open_database, retention
from instar.lineage.database import lock
from instar.lineage.models import DatasetRow, DatasetVersionRow, SchemaVersionRow
from instar.lineage.queries.datasets import list_versions, show_dataset
from instar.lineage.queries.names import load_dataset
from instar.lineage.queries.rows import Page
from instar.lineage.retention import retire
from testbed.lineage import dataset, new_postgres_url, run_event
from tests.lineage import dump, send

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from instar.lineage import Database
    from testbed.servers import PostgresServer

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


# PostgreSQL lets others write between the moment in which retention looks and the one in which it deletes


@pytest.fixture
def served(postgres: PostgresServer) -> Iterator[Database]:
    """Open an empty database of PostgreSQL."""
    with open_database(new_postgres_url(postgres)) as database:
        yield database


def _before_locking(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> None:
    """Let something happen when retention has chosen its first rows."""
    todo = [work]

    def wait_and_lock(*given: Any) -> None:  # noqa: ANN401 -- as the real one
        while todo:
            todo.pop()()
        lock(*given)

    monkeypatch.setattr(retention, "lock", wait_and_lock)


def _versions(database: Database) -> tuple[int, int]:
    """Return how many versions there are, counted and as the dataset says."""
    with database.reading() as connection:
        counted = connection.scalar(select(func.count()).select_from(DatasetVersionRow))
        return counted or 0, connection.scalar(select(DatasetRow.version_count)) or 0


def test_a_version_that_becomes_current_meanwhile_stays(
    served: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that completes after all keeps what it wrote, with its schema."""
    send(served, run_event("START", 1, 1, outputs=[dataset("x", "a int")]))
    complete = run_event("COMPLETE", 2, 1, outputs=[dataset("x", "a int, b int")])
    _before_locking(monkeypatch, lambda: send(served, complete))
    assert retire(served, START + 60_000_000).dataset_versions == 0
    with served.reading() as connection:
        shown = show_dataset(connection, load_dataset(connection, "db", "x"))
    assert [field["name"] for field in shown["fields"]] == ["a", "b"]
    assert shown["currentVersion"] is not None


def test_two_retentions_at_once_count_what_they_delete_once(
    served: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two services with the same database may both have the option."""
    for run in range(1, 6):
        send(served, run_event("COMPLETE", run, run, outputs=[dataset("x", f"c{run} int")]))
    _before_locking(monkeypatch, lambda: retire(served, START + 60_000_000))
    assert retire(served, START + 60_000_000).dataset_versions == 0
    assert _versions(served) == (1, 1)
    with served.reading() as connection:
        assert len(list(connection.scalars(select(SchemaVersionRow.uuid)))) == 1


def test_a_facet_that_comes_back_while_it_is_deleted_is_kept(served: Database) -> None:
    """What nothing referred to a moment ago is no longer deleted, and no event fails because of it."""
    old = dataset("x", "a int", documentation={"description": "once"})
    send(served, run_event("COMPLETE", 1, 1, outputs=[old]))
    for run in (2, 3):
        send(
            served,
            run_event("COMPLETE", run, run, outputs=[dataset("x", documentation={"description": "now"})]),
        )
    todo = [run_event("COMPLETE", 90, 9, outputs=[dataset("y", documentation={"description": "once"})])]

    def note(_: object, __: object, statement: str, *___: object) -> None:
        while todo and statement.startswith("DELETE FROM facet_contents"):
            send(served, todo.pop())

    listening.listen(served.engine, "before_cursor_execute", note)
    retire(served, START + 60_000_000)
    assert todo == []
    with served.reading() as connection:
        assert show_dataset(connection, load_dataset(connection, "db", "y"))["description"] == "once"

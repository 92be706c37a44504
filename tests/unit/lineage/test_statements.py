"""What an event costs, in statements: each is a round trip to a database that may be far away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event as listening

from instar.errors import EntityNotFoundError
from instar.lineage.ids import dataset_id
from instar.lineage.queries import names
from testbed.lineage import dataset, run_event
from tests.lineage import send

if TYPE_CHECKING:
    from uuid import UUID

    from instar.lineage import Database


def statements(database: Database, event: dict[str, Any]) -> int:
    """Return how many statements it takes to store an event."""
    seen: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        seen.append(statement)

    listening.listen(database.engine, "before_cursor_execute", note)
    send(database, event)
    listening.remove(database.engine, "before_cursor_execute", note)
    return len(seen)


def test_an_event_like_those_before_it_takes_few_statements(database: Database) -> None:
    """A run that writes what others wrote before takes no more than these, however many those were."""
    events = [run_event("COMPLETE", run, run, outputs=[dataset("x", "a int, b int")]) for run in range(1, 9)]
    counts = [statements(database, event) for event in events]
    assert counts[-1] == counts[-2] <= 23
    assert statements(database, events[-1]) <= 4, "a retry is known at once"


def test_new_outputs_take_a_statement_each(database: Database) -> None:
    """An event with very many outputs does not keep others waiting for long."""
    few, many = (
        statements(
            database, run_event("COMPLETE", 1, size, outputs=[dataset(f"{size}.{n}") for n in range(size)])
        )
        for size in (50, 150)
    )
    assert many - few <= 100


def test_an_id_with_very_many_colons_is_read_in_few_ways(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two colons among hundreds could be anywhere; nobody is kept waiting by trying all pairs of them."""
    send(database, run_event("COMPLETE", 1, 1, outputs=[dataset("a:b|x:y", "c:d int")]))
    tried: list[str] = []

    def counted(namespace: str, name: str) -> UUID:
        tried.append(namespace)
        return dataset_id(namespace, name)

    monkeypatch.setattr(names, "dataset_id", counted)
    with database.reading() as connection:
        assert names.load_node(connection, "datasetField:a:b:x:y:c:d").field == "c:d"
        assert {*tried} == {"a:b"}, "only namespaces that exist"
        for colons in (150, 5000):
            tried.clear()
            with pytest.raises(EntityNotFoundError):
                names.load_node(connection, "datasetField:a:b" + ":" * colons)
            assert len(tried) <= 200

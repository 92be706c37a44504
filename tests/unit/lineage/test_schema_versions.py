"""Every schema is kept once: what makes two schemas the same, and which dataset version points at which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from instar.lineage.models import DatasetVersionRow, SchemaVersionFieldRow, SchemaVersionRow
from instar.lineage.schema_content import SchemaContent
from testbed.lineage import dataset, run_event
from tests.lineage import send

if TYPE_CHECKING:
    from instar.lineage import Database
    from instar.lineage.models import Base

Fields = list[dict[str, Any]]


def count(database: Database, row: type[Base]) -> int:
    """Return how many rows a table has."""
    with database.reading() as connection:
        return connection.scalar(select(func.count()).select_from(row)) or 0


def test_a_stable_schema_is_kept_once(database: Database) -> None:
    """Many runs with the same twenty columns make many versions, one schema version and twenty mappings."""
    fields = ", ".join(f"c{number} int" for number in range(20))
    for run in range(1, 6):
        send(database, run_event("COMPLETE", run, run, outputs=[dataset("x", fields)]))
    assert count(database, DatasetVersionRow) == 5
    assert count(database, SchemaVersionRow) == 1
    assert count(database, SchemaVersionFieldRow) == 20


def test_order_and_descriptions_make_no_new_schema() -> None:
    """A schema is its names and types: neither the order nor the description of its fields."""
    one: Fields = [{"name": "a", "type": "int", "description": "x"}, {"name": "b"}]
    other: Fields = [{"name": "b", "type": None}, {"name": "a", "type": "int", "fields": []}]
    assert SchemaContent.from_facet(one).fingerprint == SchemaContent.from_facet(other).fingerprint


def test_no_names_or_types_can_make_different_schemas_look_alike() -> None:
    """Delimiters inside names, missing types and nested fields all count."""
    schemas: list[Fields] = [
        [{"name": "a", "type": "b"}, {"name": "c", "type": "d"}],
        [{"name": "a", "type": "b:c:d"}],
        [{"name": "a", "type": None}],
        [{"name": "a", "type": ""}],
        [{"name": "a", "type": "null"}],
        [{"name": "a", "type": "struct", "fields": [{"name": "b", "type": "int"}]}],
        [{"name": "a", "type": "struct", "fields": [{"name": "b", "type": "bigint"}]}],
        [{"name": "a", "type": "struct"}, {"name": "b", "type": "int"}],
    ]
    assert len({SchemaContent.from_facet(fields).fingerprint for fields in schemas}) == len(schemas)


def test_any_earlier_schema_is_found_again(database: Database) -> None:
    """A schema that comes back after others is the one that it was before."""
    for run, fields in enumerate(["a int", "a int, b int", "a int, c int", "a int"], start=1):
        send(database, run_event("COMPLETE", run, run, outputs=[dataset("x", fields)]))
    assert count(database, SchemaVersionRow) == 3


def test_an_input_with_other_fields_repoints_the_version_that_was_read(database: Database) -> None:
    """A reader's fields never edit a schema version: there is a new one, and the version points at it."""
    send(
        database,
        run_event("COMPLETE", 1, 1, outputs=[dataset("x", "a int, b string")]),
        run_event("COMPLETE", 2, 2, inputs=[dataset("x", "a int, b string, c date")]),
    )
    assert count(database, DatasetVersionRow) == 1
    assert count(database, SchemaVersionRow) == 2
    with database.reading() as connection:
        version = connection.execute(select(DatasetVersionRow.__table__)).one()
    assert version.declared_schema_version_uuid != version.dataset_schema_version_uuid


def test_an_input_with_some_of_the_fields_changes_nothing(database: Database) -> None:
    """A reader that selects one column does not make the others disappear."""
    send(
        database,
        run_event("COMPLETE", 1, 1, outputs=[dataset("x", "a int, b string")]),
        run_event("COMPLETE", 2, 2, inputs=[dataset("x", "b string")]),
    )
    assert count(database, SchemaVersionRow) == 1


def test_a_run_makes_one_version_of_an_output(database: Database) -> None:
    """START without a schema and COMPLETE with one are about the same version."""
    send(
        database,
        run_event("START", 1, outputs=[dataset("x")]),
        run_event("COMPLETE", 2, outputs=[dataset("x", "a int")]),
    )
    assert count(database, DatasetVersionRow) == 1
    assert count(database, SchemaVersionRow) == 1

"""From the old layout to schemas kept once: both are written, the rest is converted, checked and dropped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import delete, func, inspect, select, text, update
from typer.testing import CliRunner

from instar.cli.app import app
from instar.errors import CorruptTableError, UsageError
from instar.lineage import Database, open_database
from instar.lineage.ingest.schema_versions import load_content
from instar.lineage.models import DatasetVersionRow, SchemaVersionRow
from instar.lineage.old_layout import phases
from instar.lineage.old_layout.convert import Converter
from instar.lineage.old_layout.phases import backfill, cleanup, open_any_layout, status
from instar.lineage.old_layout.tables import OLD_MAPPING, OLD_METADATA, OLD_TABLE, MappingLayout
from testbed.lineage import dataset, new_postgres_url, run_event
from tests.lineage import dump, send

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from testbed.servers import PostgresServer

_SCHEMAS = ["a int, b string", "a int, b string, c date", "b string", None]


def _events(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [
        run_event(
            "COMPLETE",
            at,
            at + 1,
            job=f"job{at % 3}",
            outputs=[dataset(f"t{at % 3}", _SCHEMAS[at // 10 % len(_SCHEMAS)])],
        )
        for at in range(first, first + count)
    ]


def _forget(database: Database) -> None:
    """Make a database what it was before schema versions: only the old layout knows the fields."""

    def forget(connection: Any) -> None:  # noqa: ANN401 -- a connection
        nothing = {
            "dataset_schema_version_uuid": None,
            "declared_schema_version_uuid": None,
            "declared_stamp": "",
        }
        connection.execute(update(DatasetVersionRow).values(nothing))
        connection.execute(delete(SchemaVersionRow))

    database.write(forget)


@pytest.fixture
def early(database_url: str) -> Database:
    """Open a database in the old layout, with 40 versions that nobody has converted."""
    with open_database(database_url) as database:
        database.write(OLD_METADATA.create_all)
    database = open_database(database_url)
    send(database, *_events(40))
    _forget(database)
    return database


def _unconverted(database: Database) -> int:
    with database.reading() as connection:
        column = DatasetVersionRow.dataset_schema_version_uuid
        return connection.scalar(select(func.count()).where(column.is_(None))) or 0


def _count(database: Database, table: Any) -> int:  # noqa: ANN401 -- any table
    with database.reading() as connection:
        return connection.scalar(select(func.count()).select_from(table)) or 0


def test_three_phases_end_in_the_database_that_events_alone_would_have_made(
    early: Database,
    tmp_path: Any,  # noqa: ANN401 -- a path
) -> None:
    """Converting an old database gives every version the schema that it would have today."""
    assert status(early)["backfill"] == "not started"
    assert _unconverted(early) == 40
    found = backfill(early, batch=7)
    assert (found["write both"], found["backfill"], found["cleanup"]) == ("on", "done", "ready")
    assert found["progress"] == {"versions": 40, "total": 40, "converted": 30, "mismatches": 0}
    assert _unconverted(early) == 10  # ten events had no schema
    assert cleanup(early)["cleanup"] == "done"
    assert status(early)["write both"] == "off"
    send(early, *_events(10, first=40))  # the table is gone, and the service goes on
    with open_database(f"sqlite:///{tmp_path}/fresh.db") as fresh:
        send(fresh, *_events(50))
        expected, converted = dump(fresh), dump(early)
    for name in ("dataset_schema_versions", "dataset_schema_versions_field_mapping", "dataset_fields"):
        assert converted[name] == expected[name], name
    with early.reading() as connection:
        assert not inspect(connection).has_table(OLD_TABLE)
    early.close()


def test_events_are_written_in_both_layouts_as_long_as_there_are_two(early: Database) -> None:
    """What arrives in phase 1 needs no backfill, and an old service can read it."""
    rows = _count(early, OLD_MAPPING)
    send(early, *_events(2, first=50))
    assert _count(early, OLD_MAPPING) == rows + 6  # two versions with three fields
    send(early, run_event("COMPLETE", 60, 61, inputs=[dataset("t0", "z int")]))  # a reader saw another field
    backfill(early)
    early.close()


def test_a_read_of_a_version_that_was_not_converted_loses_none_of_its_fields(early: Database) -> None:
    """A reader that saw one field adds to what the old layout says, and does not replace it."""
    send(early, run_event("COMPLETE", 20, 99, inputs=[dataset("t0", "z int")]))  # after the version at 18
    with early.reading() as connection:
        column = DatasetVersionRow.dataset_schema_version_uuid
        schemas = set(connection.scalars(select(column)))
        fields = [load_content(connection, schema).fields for schema in schemas if schema is not None]
    assert ["a", "b", "c", "z"] in [[field.name for field in some] for some in fields]
    assert backfill(early)["backfill"] == "done"
    early.close()


def test_a_database_without_the_old_layout_needs_nothing(database: Database) -> None:
    """A new database says that there is nothing to do, and does nothing."""
    assert status(database)["cleanup"] == "not needed"
    for phase in (backfill, cleanup):
        with pytest.raises(UsageError, match="nothing to convert"):
            phase(database)


@pytest.mark.parametrize(
    "damage",
    [
        (
            f"DELETE FROM {OLD_TABLE} WHERE dataset_version_uuid = "
            f"(SELECT dataset_version_uuid FROM {OLD_TABLE} ORDER BY 1 LIMIT 1)"
        ),
        (
            "DELETE FROM dataset_schema_versions_field_mapping WHERE dataset_field_uuid = "
            "(SELECT dataset_field_uuid FROM dataset_schema_versions_field_mapping ORDER BY 1 LIMIT 1)"
        ),
        (
            "UPDATE dataset_versions SET dataset_schema_version_uuid = "
            "(SELECT s.uuid FROM dataset_schema_versions s "
            "WHERE s.uuid <> dataset_schema_version_uuid LIMIT 1) "
            "WHERE uuid = (SELECT v.uuid FROM dataset_versions v "
            "WHERE v.dataset_schema_version_uuid IS NOT NULL LIMIT 1)"
        ),
    ],
    ids=["old row", "new row", "pointer"],
)
def test_a_damaged_row_stops_the_clean_up(early: Database, damage: str) -> None:
    """The old table is dropped only if both layouts say the same of every version."""
    backfill(early)
    early.write(lambda connection: connection.execute(text(damage)))
    with pytest.raises(CorruptTableError, match="The old table stays"):
        cleanup(early)
    assert status(early)["backfill"] == "failed"
    assert _count(early, OLD_MAPPING) > 0
    with pytest.raises(CorruptTableError, match="version"):
        backfill(early)
    early.close()


def test_the_clean_up_waits_for_the_backfill(early: Database) -> None:
    """Nothing is dropped before everything was converted."""
    with pytest.raises(UsageError, match="run it first"):
        cleanup(early)
    early.close()


_SLOW = """
import sys
from instar.lineage.old_layout.phases import backfill, open_any_layout
def report(progress):
    print(progress.done, flush=True)
    sys.stdin.readline()
backfill(open_any_layout(sys.argv[1]), batch=3, report=report)
"""


def test_a_backfill_that_was_killed_goes_on_where_it_was(early: Database, database_url: str) -> None:
    """SIGKILL leaves a whole number of batches, and the next call does the rest and nothing twice."""
    command = [sys.executable, "-c", _SLOW, database_url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        done = 0
        for _ in range(3):
            before, done = done, int(process.stdout.readline())
            assert before < done <= before + 3, "a batch may be smaller than it could be"
            process.stdin.write("\n")
            process.stdin.flush()
        os.kill(process.pid, signal.SIGKILL)
    found = status(early)
    assert found["backfill"] == "converting"
    assert done <= found["progress"]["versions"] < 40
    first: list[int] = []
    found = backfill(early, batch=3, report=lambda progress: first.append(progress.done))
    assert first[0] > done
    assert found["progress"] == {"versions": 40, "total": 40, "converted": 30, "mismatches": 0}
    early.close()


def test_events_may_come_in_while_the_backfill_runs(early: Database) -> None:
    """Old versions are converted while new ones, and news of old runs, arrive."""
    failures: list[BaseException] = []

    def ingest() -> None:
        try:
            send(early, *_events(20, first=100), *(run_event("FAIL", 200, run) for run in range(1, 20)))
        except BaseException as error:  # noqa: BLE001 -- shown by the test
            failures.append(error)

    thread = threading.Thread(target=ingest)
    thread.start()
    found = backfill(early, batch=2)
    thread.join()
    assert not failures
    assert found["backfill"] == "done"
    cleanup(early)
    assert _unconverted(early) == 20  # ten of the old events and ten of the new ones had no schema
    early.close()


def test_a_batch_keeps_only_its_own_datasets_from_being_written(early: Database) -> None:
    """Versions are converted dataset by dataset, so events about all others never wait."""
    if early.is_sqlite:
        pytest.skip("SQLite has one writer at a time")

    def convert(connection: Connection) -> int:
        batch, _ = Converter(MappingLayout.INSTAR).convert(connection, None, 5)
        assert len({version.dataset_uuid for version in batch.versions}) == 1
        mine = (
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() "
            "AND mode = 'ExclusiveLock'"
        )
        return connection.scalar(text(mine)) or 0

    assert early.write(convert) == 1
    early.close()


def test_a_service_that_writes_only_the_old_layout_stops_the_drop(
    early: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an old service wrote after the last check is not lost."""
    backfill(early)
    monkeypatch.setattr(phases, "_verify_all", lambda *_: _forget(early))
    with pytest.raises(UsageError, match="old layout alone"):
        cleanup(early)
    assert _count(early, OLD_MAPPING) > 0
    early.close()


# Marquez

# The columns, keys and indexes of Marquez 0.51 on the tables that a backfill touches.
_MARQUEZ = """
CREATE TABLE flyway_schema_history (installed_rank int PRIMARY KEY, version varchar(50));
CREATE TABLE namespaces (
  uuid uuid PRIMARY KEY, name varchar UNIQUE NOT NULL, created_at timestamp NOT NULL,
  updated_at timestamp NOT NULL, description text, current_owner_name varchar(64),
  is_hidden boolean DEFAULT false);
CREATE TABLE sources (
  uuid uuid PRIMARY KEY, name varchar UNIQUE NOT NULL, type varchar(64) NOT NULL,
  created_at timestamp NOT NULL, updated_at timestamp NOT NULL, connection_url varchar, description text);
CREATE TABLE datasets (
  uuid uuid PRIMARY KEY, type varchar(64) NOT NULL, name varchar(255) NOT NULL,
  physical_name varchar(255) NOT NULL, namespace_uuid uuid REFERENCES namespaces ON DELETE CASCADE,
  namespace_name varchar, source_uuid uuid REFERENCES sources ON DELETE CASCADE, source_name varchar,
  current_version_uuid uuid, created_at timestamp NOT NULL, updated_at timestamp NOT NULL,
  last_modified_at timestamp, description text, is_deleted boolean DEFAULT false,
  is_hidden boolean DEFAULT false);
CREATE TABLE dataset_fields (
  uuid uuid PRIMARY KEY, dataset_uuid uuid REFERENCES datasets ON DELETE CASCADE, name varchar(255) NOT NULL,
  type text, description text, created_at timestamp NOT NULL, updated_at timestamp NOT NULL,
  UNIQUE (dataset_uuid, name, type));
CREATE TABLE dataset_versions (
  uuid uuid PRIMARY KEY, dataset_uuid uuid REFERENCES datasets ON DELETE CASCADE, version uuid NOT NULL,
  run_uuid uuid, created_at timestamp NOT NULL, fields jsonb, namespace_name varchar,
  dataset_name varchar(255), lifecycle_state varchar, UNIQUE (dataset_uuid, version));
CREATE INDEX dataset_versions_run_uuid ON dataset_versions (run_uuid);
CREATE TABLE dataset_versions_field_mapping (
  dataset_version_uuid uuid REFERENCES dataset_versions ON DELETE CASCADE,
  dataset_field_uuid uuid REFERENCES dataset_fields ON DELETE CASCADE,
  PRIMARY KEY (dataset_version_uuid, dataset_field_uuid));
CREATE INDEX dataset_versions_field_mapping_index ON dataset_versions_field_mapping (dataset_field_uuid);
CREATE VIEW datasets_view AS SELECT uuid, name, namespace_name FROM datasets WHERE NOT is_hidden;
"""
_MARQUEZ_048 = """
CREATE TABLE dataset_schema_versions (
  uuid uuid PRIMARY KEY, dataset_uuid uuid REFERENCES datasets ON DELETE CASCADE,
  created_at timestamptz NOT NULL);
CREATE TABLE dataset_schema_versions_field_mapping (
  dataset_schema_version_uuid uuid REFERENCES dataset_schema_versions ON DELETE CASCADE,
  dataset_field_uuid uuid REFERENCES dataset_fields ON DELETE CASCADE,
  PRIMARY KEY (dataset_schema_version_uuid, dataset_field_uuid));
ALTER TABLE dataset_versions ADD COLUMN dataset_schema_version_uuid uuid REFERENCES dataset_schema_versions;
"""


def _marquez_field(key: uuid.UUID, name: str, kind: str | None) -> str:
    shown = "NULL" if kind is None else f"'{kind}'"
    return (
        "INSERT INTO dataset_fields (uuid, dataset_uuid, name, type, created_at, updated_at) "
        f"VALUES ('{key}', '{uuid.UUID(int=1)}', '{name}', {shown}, now(), now());"
    )


def _marquez_version(key: uuid.UUID, at: str) -> str:
    return (
        "INSERT INTO dataset_versions (uuid, dataset_uuid, version, created_at, namespace_name, "
        f"dataset_name) VALUES ('{key}', '{uuid.UUID(int=1)}', '{key}', '{at}', 'food', 'orders');"
    )


def _run(database: Database, script: str) -> None:
    def run(connection: Any) -> None:  # noqa: ANN401 -- a connection
        for statement in filter(str.strip, script.split(";")):
            connection.exec_driver_sql(statement)

    database.write(run)


@pytest.fixture
def marquez(postgres: PostgresServer) -> Database:
    """Open a database as Marquez 0.48 and later make it, with two versions of one dataset."""
    database = open_any_layout_of(postgres)
    _run(database, _MARQUEZ + _MARQUEZ_048)
    data, a, b = (uuid.UUID(int=number) for number in (1, 2, 3))
    script = (
        "INSERT INTO datasets (uuid, type, name, physical_name, namespace_name, created_at, updated_at) "
        f"VALUES ('{data}', 'DB_TABLE', 'orders', 'public.orders', 'food', now(), now());"
    )
    script += _marquez_field(a, "id", "int") + _marquez_field(b, "at", None)
    for number in (10, 11):
        key = uuid.UUID(int=number)
        script += _marquez_version(key, f"2026-01-01T00:00:{number}Z")
        script += f"INSERT INTO {OLD_TABLE} VALUES ('{key}', '{a}'), ('{key}', '{b}');"
    _run(database, script)
    return database


def open_any_layout_of(server: PostgresServer) -> Database:
    """Return an empty database that instar has created nothing in."""
    return Database(new_postgres_url(server))


def test_marquez_finds_the_schema_versions_of_its_database_again(marquez: Database) -> None:
    """In a database of Marquez, a schema version has the id that Marquez would give it."""
    found = backfill(marquez)
    assert found["progress"]["converted"] == 2
    with marquez.reading() as connection:
        rows = connection.execute(
            text("SELECT DISTINCT dataset_schema_version_uuid FROM dataset_versions")
        ).all()
    # MD5 of `food:orders:at:id:int`, as Java's UUID.nameUUIDFromBytes writes it
    assert [str(row[0]) for row in rows] == ["84ed78aa-79c4-3deb-83f5-4f8aaedcd252"]
    marquez.close()


def test_two_schemas_that_marquez_takes_for_one_stay_two(marquez: Database) -> None:
    """Where the ids of Marquez collide, each dataset version still gets its own fields."""
    c, key = uuid.UUID(int=4), uuid.UUID(int=12)
    _run(
        marquez,
        _marquez_field(c, "at", "id:int")
        + _marquez_version(key, "2026-01-02T00:00:00Z")
        + f"INSERT INTO {OLD_TABLE} VALUES ('{key}', '{c}')",
    )
    backfill(marquez)
    with marquez.reading() as connection:
        count = text("SELECT count(DISTINCT dataset_schema_version_uuid) FROM dataset_versions")
        assert connection.scalar(count) == 2
    marquez.close()


def test_what_a_reader_added_in_marquez_becomes_a_schema_version(marquez: Database) -> None:
    """Marquez adds what readers saw to the old layout alone; the backfill repoints such versions."""
    backfill(marquez)
    c, key = uuid.UUID(int=4), uuid.UUID(int=10)
    _run(
        marquez,
        _marquez_field(c, "seen", "int") + f"INSERT INTO {OLD_TABLE} VALUES ('{key}', '{c}')",
    )
    with pytest.raises(CorruptTableError, match="seen"):
        cleanup(marquez, marquez_stopped=True)
    assert backfill(marquez)["progress"]["converted"] == 1
    with pytest.raises(UsageError, match="--marquez-stopped"):
        cleanup(marquez)
    assert cleanup(marquez, marquez_stopped=True)["cleanup"] == "done"
    marquez.close()


def test_fields_that_marquez_has_twice_are_one_schema(marquez: Database) -> None:
    """Marquez stores a field of an unknown type again with each event; what the fields say is compared."""
    script = ""
    for number in range(20, 24):
        field, key = uuid.UUID(int=number), uuid.UUID(int=100 + number)
        script += _marquez_field(field, "at", None) + _marquez_version(key, f"2026-01-02T00:00:{number}Z")
        script += f"INSERT INTO {OLD_TABLE} VALUES ('{key}', '{uuid.UUID(int=2)}'), ('{key}', '{field}');"
    _run(marquez, script)
    assert backfill(marquez, batch=3)["progress"]["converted"] == 6
    with marquez.reading() as connection:
        count = text("SELECT count(DISTINCT dataset_schema_version_uuid) FROM dataset_versions")
        assert connection.scalar(count) == 1
    assert cleanup(marquez, marquez_stopped=True)["cleanup"] == "done"
    marquez.close()


def test_a_database_of_marquez_is_not_mistaken_for_ours(postgres: PostgresServer) -> None:
    """No table is created in a database of Marquez, and one before 0.48 is refused in words."""
    database = open_any_layout_of(postgres)
    _run(database, _MARQUEZ)
    with pytest.raises(UsageError, match="belongs to Marquez"):
        open_database(database.url)
    with open_any_layout(database.url) as opened, pytest.raises(UsageError, match=r"0\.48"):
        status(opened)
    database.close()


def test_commands_tell_the_state_and_move_it(early: Database, database_url: str) -> None:
    """`instar lineage status`, `backfill` and `cleanup` print the state of each phase."""
    early.close()
    for command, expected in (
        ("status", {"backfill": "not started", "cleanup": "waiting"}),
        ("backfill", {"backfill": "done", "cleanup": "ready"}),
        ("cleanup", {"backfill": "done", "cleanup": "done", "write both": "off"}),
    ):
        result = CliRunner().invoke(app, ["lineage", command, "--db", database_url, "--json"])
        assert result.exit_code == 0, result.output
        assert expected.items() <= json.loads(result.stdout).items()

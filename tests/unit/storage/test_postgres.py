"""PostgreSQL: restarts, lost connections, races inside the server, and what is created when."""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from instar.errors import StorageError, StorageTimeoutError, UsageError
from instar.storage import AppendResult, Versioned
from instar.storage.postgres import PostgresConsensus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from testbed.servers import PostgresServer

KEY = "a/b"


@pytest.fixture
def schema(postgres: PostgresServer) -> str:
    """Return a schema that does not exist yet."""
    return postgres.url().rpartition("=")[2]


@pytest.fixture
def consensus(postgres: PostgresServer, schema: str) -> Iterator[PostgresConsensus]:
    """Return a handle to that schema."""
    consensus = PostgresConsensus(postgres.url(schema))
    yield consensus
    consensus.close()


@pytest.fixture
def admin(postgres: PostgresServer) -> Iterator[psycopg.Connection]:
    """Return a connection that is not ours, to look and to meddle."""
    with psycopg.connect(postgres.url().partition("&schema=")[0], autocommit=True) as connection:
        yield connection


def log(statement: str, schema: str) -> sql.Composed:
    """Put the name of a log's table into a statement."""
    return sql.SQL(statement).format(log=sql.Identifier(schema, "log"), schema=sql.Identifier(schema))


def wait_until_blocked(admin: psycopg.Connection) -> int:
    """Return the backend that waits for a lock, once there is one."""
    for _ in range(500):
        row = admin.execute("SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchone()
        if row:
            return int(row[0])
        time.sleep(0.01)
    raise AssertionError("nobody waits")


def test_reading_creates_nothing(
    consensus: PostgresConsensus, admin: psycopg.Connection, schema: str
) -> None:
    """Neither a schema nor a table, until the first entry is written; then there is one of each."""
    assert consensus.head(KEY) is None
    assert consensus.scan(KEY) == []
    assert list(consensus.keys()) == []
    consensus.truncate(KEY, 5)
    assert consensus.append(KEY, 3, b"") is AppendResult.MISMATCH
    exists = "SELECT count(*) FROM pg_namespace WHERE nspname = %s"
    assert admin.execute(exists, [schema]).fetchone() == (0,)
    assert consensus.append(KEY, None, b"")
    assert admin.execute(exists, [schema]).fetchone() == (1,)


def test_keys_are_compared_as_bytes(
    consensus: PostgresConsensus, admin: psycopg.Connection, schema: str
) -> None:
    """Whatever language the database speaks, é and e with an accent are two names."""
    assert consensus.append(KEY, None, b"")
    query = (
        "SELECT collation_name FROM information_schema.columns WHERE table_schema = %s AND data_type = 'text'"
    )
    assert admin.execute(query, [schema]).fetchone() == ("C",)


def test_many_may_write_the_very_first_entry(postgres: PostgresServer, schema: str) -> None:
    """Creating the table at the same time is no failure, and each key has one first entry."""
    handles = [PostgresConsensus(postgres.url(schema)) for _ in range(6)]
    with ThreadPoolExecutor(len(handles)) as pool:
        results = list(pool.map(lambda handle: handle.append(KEY, None, b""), handles))
    assert results.count(AppendResult.LANDED) == 1
    for handle in handles:
        handle.close()


def test_stores_can_share_a_database(postgres: PostgresServer) -> None:
    """Each in a schema of its own."""
    first, second = PostgresConsensus(postgres.url()), PostgresConsensus(postgres.url())
    assert first.append(KEY, None, b"1")
    assert second.head(KEY) is None
    assert second.append(KEY, None, b"2")
    assert first.head(KEY) == Versioned(0, b"1")
    first.close()
    second.close()


def test_a_role_that_may_create_nothing_can_use_what_exists(
    postgres: PostgresServer, consensus: PostgresConsensus, admin: psycopg.Connection, schema: str
) -> None:
    """An administrator makes the table; the writer needs only rights to rows."""
    assert consensus.append(KEY, None, b"0")
    role = f"role_{schema}"
    for statement in (
        "CREATE ROLE {role} LOGIN",
        "GRANT USAGE ON SCHEMA {schema} TO {role}",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON {log} TO {role}",
    ):
        names = {
            "role": sql.Identifier(role),
            "schema": sql.Identifier(schema),
            "log": sql.Identifier(schema, "log"),
        }
        admin.execute(sql.SQL(statement).format(**names))
    limited = PostgresConsensus(postgres.url(schema).replace("postgres:@", f"{role}:@"))
    assert limited.append("other", None, b"")
    assert limited.append(KEY, 0, b"1")
    limited.truncate(KEY, 1)
    assert limited.scan(KEY) == [Versioned(1, b"1")]
    limited.close()
    nowhere = PostgresConsensus(postgres.url().replace("postgres:@", f"{role}:@"))
    with pytest.raises(StorageError, match="permission denied") as raised:
        nowhere.append(KEY, None, b"")
    assert type(raised.value) is StorageError
    nowhere.close()


def test_a_restart_of_the_server_is_survived(postgres: PostgresServer, consensus: PostgresConsensus) -> None:
    """Entries are there, and pooled connections that died are not used for the next append."""
    with ThreadPoolExecutor(4) as pool:
        assert consensus.append(KEY, None, b"0")
        list(pool.map(lambda _: consensus.head(KEY), range(20)))
    for round_ in range(2):
        postgres.crash()
        postgres.start()
        assert consensus.append(KEY, round_, b"1") is AppendResult.LANDED
        assert len(consensus.scan(KEY)) == round_ + 2


def test_a_server_that_is_down_is_waited_for(postgres: PostgresServer, consensus: PostgresConsensus) -> None:
    """A read or write that begins while it restarts succeeds when it is back."""
    assert consensus.append(KEY, None, b"0")
    postgres.crash()
    with ThreadPoolExecutor(2) as pool:
        read = pool.submit(consensus.head, KEY)
        time.sleep(0.3)
        postgres.start()
        assert read.result() == Versioned(0, b"0")
    assert consensus.append(KEY, 0, b"1")


def blocked(
    admin: psycopg.Connection, schema: str, call: Callable[[], object], meddle: Callable[[int], object]
) -> object:
    """Make a call wait for a lock inside the server, do something to its backend, and return its outcome."""
    with ThreadPoolExecutor(1) as pool:
        admin.execute("BEGIN")
        admin.execute(log("LOCK TABLE {log}", schema))
        future = pool.submit(call)
        meddle(wait_until_blocked(admin))
        if not admin.closed:
            admin.execute("ROLLBACK")
        return future.result()


def test_a_connection_that_dies_during_an_append_leaves_it_unknown(
    consensus: PostgresConsensus, admin: psycopg.Connection, schema: str
) -> None:
    """The server was working on it; nobody says whether it had finished."""
    assert consensus.append(KEY, None, b"0")

    def meddle(backend: int) -> None:
        admin.execute("SELECT pg_terminate_backend(%s)", [backend])

    with pytest.raises(StorageTimeoutError):
        blocked(admin, schema, lambda: consensus.append(KEY, 0, b"1"), meddle)
    assert consensus.head(KEY) == Versioned(0, b"0")
    assert consensus.append(KEY, 0, b"1")


def test_a_server_that_dies_during_an_append_leaves_it_unknown(
    postgres: PostgresServer, consensus: PostgresConsensus, admin: psycopg.Connection, schema: str
) -> None:
    """As above, but there is not even an error from the server."""
    assert consensus.append(KEY, None, b"0")

    def meddle(_: int) -> None:
        postgres.crash()
        admin.close()

    with pytest.raises(StorageTimeoutError):
        blocked(admin, schema, lambda: consensus.append(KEY, 0, b"1"), meddle)
    postgres.start()
    assert consensus.append(KEY, 0, b"1")


def test_a_read_whose_connection_dies_is_repeated(
    consensus: PostgresConsensus, admin: psycopg.Connection, schema: str
) -> None:
    """The caller notices nothing."""
    assert consensus.append(KEY, None, b"0")

    def meddle(backend: int) -> None:
        admin.execute("SELECT pg_terminate_backend(%s)", [backend])

    assert blocked(admin, schema, lambda: consensus.head(KEY), meddle) == Versioned(0, b"0")


def test_an_append_that_is_cancelled_did_not_happen(
    consensus: PostgresConsensus, admin: psycopg.Connection, schema: str
) -> None:
    """The server says so itself, as it does when a statement takes too long."""
    assert consensus.append(KEY, None, b"0")

    def meddle(backend: int) -> None:
        admin.execute("SELECT pg_cancel_backend(%s)", [backend])

    with pytest.raises(StorageError, match="cancel") as raised:
        blocked(admin, schema, lambda: consensus.append(KEY, 0, b"1"), meddle)
    assert type(raised.value) is StorageError


def test_an_append_waits_for_a_truncation_that_takes_its_place_away(
    consensus: PostgresConsensus, admin: psycopg.Connection, schema: str
) -> None:
    """A slow append expects entry 0, while another transaction appends 1 and 2 and cuts off 0 and 1.

    A plain look at the last entry would still see 0, find place 1 free, and write a ghost.
    """
    assert consensus.append(KEY, None, b"0")
    with ThreadPoolExecutor(1) as pool:
        admin.execute("BEGIN")
        admin.execute(log("INSERT INTO {log} VALUES ('a/b', 1, ''), ('a/b', 2, '')", schema))
        admin.execute(log("DELETE FROM {log} WHERE key = 'a/b' AND seqno < 2", schema))
        future = pool.submit(consensus.append, KEY, 0, b"ghost")
        wait_until_blocked(admin)
        admin.execute("COMMIT")
        assert future.result() is AppendResult.MISMATCH
    assert consensus.scan(KEY) == [Versioned(2, b"")]


def test_the_first_append_and_a_truncation_exclude_each_other(
    consensus: PostgresConsensus, admin: psycopg.Connection, schema: str
) -> None:
    """Otherwise the first entry could be written anew after it was cut off."""
    assert consensus.append("other", None, b"")
    assert consensus.append(KEY, None, b"0")
    assert consensus.append(KEY, 0, b"1")
    with ThreadPoolExecutor(2) as pool:
        admin.execute("BEGIN")
        admin.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"{schema}.log/{KEY}"])
        append = pool.submit(consensus.append, KEY, None, b"ghost")
        truncate = pool.submit(consensus.truncate, KEY, 1)
        wait_until_blocked(admin)
        time.sleep(0.1)
        assert not append.done()
        assert not truncate.done()
        admin.execute("COMMIT")
        assert append.result() is AppendResult.MISMATCH
        truncate.result()
    assert consensus.scan(KEY) == [Versioned(1, b"1")]


def test_commits_are_durable_and_see_each_other_whatever_the_server_says(
    postgres: PostgresServer, consensus: PostgresConsensus, admin: psycopg.Connection
) -> None:
    """The guarantees do not hang on a server's defaults."""
    admin.execute("ALTER ROLE postgres SET synchronous_commit = off")
    admin.execute("ALTER ROLE postgres SET default_transaction_isolation = 'serializable'")
    try:
        with consensus._connections.borrow() as connection:
            for setting, value in (
                ("synchronous_commit", "on"),
                ("default_transaction_isolation", "read committed"),
            ):
                assert connection.execute("SELECT current_setting(%s)", [setting]).fetchone() == (value,)
    finally:
        admin.execute("ALTER ROLE postgres RESET ALL")


def test_a_handle_survives_a_fork(consensus: PostgresConsensus) -> None:
    """Parent and child each have connections of their own."""
    assert consensus.append(KEY, None, b"0")
    child = multiprocessing.get_context("fork").Process(target=lambda: consensus.append(KEY, 0, b"1"))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert consensus.append(KEY, 1, b"2")


@pytest.mark.parametrize(
    "url",
    ["postgresql://localhost:1/db", "postgresql://nobody@/db?host=/nonexistent"],
    ids=["port", "socket"],
)
def test_a_server_that_is_not_there_is_a_clear_error(url: str) -> None:
    """At once, with the reason, and certain that nothing happened."""
    consensus = PostgresConsensus(url)
    begin = time.monotonic()
    for call in (lambda: consensus.head(KEY), lambda: consensus.append(KEY, None, b"")):
        with pytest.raises(StorageError, match=r"connection .* failed") as raised:
            call()
        assert type(raised.value) is StorageError
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://host/db?schema=Robert'); --",
        "postgresql://host/db?schema=",
        "postgresql://host/db?nonsense=1",
    ],
)
def test_a_url_that_makes_no_sense_is_refused(url: str) -> None:
    """Before anything is sent."""
    with pytest.raises(UsageError):
        PostgresConsensus(url)


def test_passwords_are_not_shown() -> None:
    """A handle is printed in messages."""
    assert "secret" not in repr(PostgresConsensus("postgresql://user:secret@host/db"))

"""Consensus in PostgreSQL: one table of entries, for many writers and high rates of commits.

Nothing of psycopg leaves this module. Blobs are stored elsewhere.
"""

# The protocol documents the methods.
# ruff: noqa: D102

from __future__ import annotations

import itertools
import re
import time
from typing import TYPE_CHECKING, Any, LiteralString
from urllib.parse import parse_qsl, quote, urlencode

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict

from instar.errors import StorageError, StorageTimeoutError, UsageError
from instar.storage.backoff import pauses
from instar.storage.connections import Connections
from instar.storage.consensus import TAIL, AppendResult, Versioned
from instar.storage.keys import check_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from instar.storage.blob import Data

__all__ = ["PostgresConsensus"]

_READ_ATTEMPTS = 5
_DEFAULTS = {
    "connect_timeout": 5,
    # A server that has vanished is noticed without waiting hours for the system to give up.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "application_name": "instar",
}

# The server says these as it goes away, and what it was told to do may have been done.
_GOING_AWAY = re.compile(r"08...|57P0.")
_QUOTED = re.compile('".*"', re.DOTALL)
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")

# What the guarantees below rely on must not depend on how a server happens to be configured.
_CONFIGURE: LiteralString = """
    SELECT set_config('default_transaction_isolation', 'read committed', false),
           set_config('statement_timeout', '30s', false),
           set_config('idle_in_transaction_session_timeout', '30s', false),
           CASE current_setting('synchronous_commit')
               WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END
"""
_CREATE: tuple[LiteralString, ...] = (
    "SELECT pg_advisory_xact_lock(hashtextextended({name}, 0))",
    "CREATE SCHEMA IF NOT EXISTS {schema}",
    """
    CREATE TABLE IF NOT EXISTS {log} (
        key text COLLATE "C" NOT NULL,
        seqno bigint NOT NULL,
        data bytea NOT NULL,
        PRIMARY KEY (key, seqno)
    )
    """,
)
# The lock on the expected entry makes this safe against a concurrent truncation, which cannot delete the next
# entry without that one: either it is there and stays until this has committed, or this finds nothing.
# Entries are contiguous, so if the expected one exists and the next one does not, it is the last.
_APPEND: LiteralString = """
    INSERT INTO {log} (key, seqno, data)
    SELECT %(key)s::text, %(expected)s::bigint + 1, %(data)s::bytea
    FROM (SELECT FROM {log} WHERE key = %(key)s AND seqno = %(expected)s FOR KEY SHARE) AS expected
    ON CONFLICT DO NOTHING
"""
# Before the first entry there is none to lock; so a lock on the key keeps truncations away.
_LOCK: LiteralString = "SELECT pg_advisory_xact_lock(hashtextextended({name} || %(key)s, 0))"
_APPEND_FIRST: LiteralString = """
    INSERT INTO {log} (key, seqno, data)
    SELECT %(key)s::text, 0, %(data)s::bytea
    WHERE NOT EXISTS (SELECT FROM {log} WHERE key = %(key)s)
    ON CONFLICT DO NOTHING
"""
_TRUNCATE: LiteralString = """
    DELETE FROM {log}
    WHERE key = %(key)s AND seqno < least(%(below)s, (SELECT max(seqno) FROM {log} WHERE key = %(key)s))
"""
_LAST: LiteralString = """
    SELECT seqno, data FROM {log} WHERE key = %(key)s ORDER BY seqno DESC LIMIT %(limit)s::bigint
"""
_SCAN: LiteralString = """
    SELECT seqno, data FROM {log}
    WHERE key = %(key)s AND seqno >= %(start)s ORDER BY seqno LIMIT %(limit)s::bigint
"""
# One step through the index for each key, however long the logs are.
_KEYS: LiteralString = """
    WITH RECURSIVE found (key) AS (
        (SELECT key FROM {log} WHERE key >= %(prefix)s ORDER BY key LIMIT 1)
        UNION ALL
        SELECT (SELECT log.key FROM {log} AS log WHERE log.key > found.key ORDER BY log.key LIMIT 1)
        FROM found WHERE starts_with(found.key, %(prefix)s)
    )
    SELECT key FROM found WHERE starts_with(key, %(prefix)s)
"""


class PostgresConsensus:
    """The `Consensus` that keeps its logs in one table of a PostgreSQL database.

    The table is `log` in the schema `instar`, or in the one that `?schema=…` names. The first append creates
    it; until then, reads find empty logs. Connections are pooled, and opened anew after a server's restart.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._parameters, schema = _parse(url)
        self._names = {
            "name": sql.Literal(f"{schema}.log/"),
            "schema": sql.Identifier(schema),
            "log": sql.Identifier(schema, "log"),
        }
        self._connections = Connections(str(self), self._parameters, _CONFIGURE)

    def __repr__(self) -> str:
        shown = {
            name: value for name, value in self._parameters.items() if name in {"host", "port", "dbname"}
        }
        return f"PostgresConsensus({shown})"

    def __str__(self) -> str:
        words = {"dbname": "", "host": " on ", "port": " port "}
        place = "".join(
            f"{word}{self._parameters[name]}" for name, word in words.items() if name in self._parameters
        )
        return f"the PostgreSQL database {place}".rstrip()

    def __reduce__(self) -> tuple[type[PostgresConsensus], tuple[str]]:
        return PostgresConsensus, (self._url,)

    def head(self, key: str) -> Versioned | None:
        check_key(key)
        rows = self._read(_LAST, key=key, limit=1)
        return Versioned(*rows[0]) if rows else None

    def tail(self, key: str) -> list[Versioned]:
        check_key(key)
        return [Versioned(*row) for row in reversed(self._read(_LAST, key=key, limit=TAIL))]

    def append(self, key: str, expected_seqno: int | None, data: Data) -> AppendResult:
        check_key(key)
        if expected_seqno is not None:
            count = self._write([_APPEND], key=key, expected=expected_seqno, data=data)
        else:
            count = self._write([_LOCK, _APPEND_FIRST], key=key, data=data)
            if count is None:
                self._write(_CREATE, key=key)
                count = self._write([_LOCK, _APPEND_FIRST], key=key, data=data)
        return AppendResult.LANDED if count else AppendResult.MISMATCH

    def scan(self, key: str, from_seqno: int = 0, limit: int | None = None) -> list[Versioned]:
        check_key(key)
        return [Versioned(*row) for row in self._read(_SCAN, key=key, start=from_seqno, limit=limit)]

    def truncate(self, key: str, below: int) -> None:
        check_key(key)
        self._write([_LOCK, _TRUNCATE], key=key, below=below)

    def keys(self, prefix: str = "") -> Iterator[str]:
        return iter([key for (key,) in self._read(_KEYS, prefix=prefix)])

    def close(self) -> None:
        self._connections.close()

    def _read(self, query: LiteralString, **values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query, none if there is no table, trying again if the connection is lost."""
        waits = itertools.islice(pauses(first=0.1, longest=5.0), _READ_ATTEMPTS - 1)
        while True:
            try:
                with self._connections.borrow() as connection:
                    return connection.execute(self._statement(query), values, binary=True).fetchall()
            except (errors.UndefinedTable, errors.InvalidSchemaName):
                return []
            except psycopg.Error as error:
                failure = self._failure("reading", error)
                pause = next(waits, None)
                if pause is None or not isinstance(failure, StorageTimeoutError):
                    raise failure from error
            time.sleep(pause)

    def _write(self, statements: Sequence[LiteralString], **values: object) -> int | None:
        """Execute statements as one transaction; return the last one's row count, or None without a table."""
        count = 0
        try:
            with self._connections.borrow() as connection:
                if len(statements) == 1:
                    # Alone, a statement is a transaction, without two more trips to the server.
                    return connection.execute(self._statement(statements[0]), values).rowcount
                with connection.transaction():
                    for statement in statements:
                        count = connection.execute(self._statement(statement), values).rowcount
        except (errors.UndefinedTable, errors.InvalidSchemaName):
            return None
        except psycopg.Error as error:
            raise self._failure("writing", error) from error
        return count

    def _statement(self, statement: LiteralString) -> sql.Composed:
        return sql.SQL(statement).format(**self._names)

    def _failure(self, verb: str, error: psycopg.Error) -> StorageError:
        """Say what an error means: it did not happen, or it is not known."""
        lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and error.sqlstate is None
        known = not lost and not _GOING_AWAY.fullmatch(error.sqlstate or "")
        return (StorageError if known else StorageTimeoutError)(f"{verb} in {self}", str(error).strip())


def _parse(url: str) -> tuple[dict[str, Any], str]:
    """Return the parameters for libpq, and the schema, which libpq does not know."""
    place, _, query_text = url.partition("?")  # as libpq reads it; it may name no host, and have no `//` then
    query = parse_qsl(query_text, keep_blank_values=True)
    schema = dict(query).get("schema", "instar")
    if not _SCHEMA.fullmatch(schema):
        raise UsageError(f"{schema!r} cannot name the schema of a log: use a-z, 0-9 and _")
    rest = urlencode([(name, value) for name, value in query if name != "schema"], quote_via=quote)
    try:
        given: Mapping[str, Any] = conninfo_to_dict(f"{place}?{rest}" if rest else place)
    except psycopg.Error as error:
        raise _unreadable(str(error)) from None
    if "@" in place.partition("://")[2].partition("/")[2]:  # it would be shown as the name of a database
        raise _unreadable("there is a / before the last @")
    return {**_DEFAULTS, **given}, schema


def _unreadable(said: str) -> UsageError:
    """Say what is wrong with a URL, without the pieces of it that libpq quotes: one may be the password."""
    why = _QUOTED.sub("…", said).strip()
    return UsageError(
        f"the URL of the PostgreSQL database cannot be read: {why}. "
        "Write postgresql://user:password@host/name, with %-escapes for special characters"
    )

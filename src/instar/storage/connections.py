"""A few connections to one PostgreSQL server, kept between uses and replaced when they die.

What is said over them is for `postgres` to know. psycopg's own pool tells nobody why it cannot connect, and
waits for seconds after a restart of the server, once for each connection that died.
"""

from __future__ import annotations

import os
import select
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
from psycopg.pq import TransactionStatus

from instar.errors import StorageError
from instar.storage.backoff import pauses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Connection = psycopg.Connection[tuple[Any, ...]]

__all__ = ["Connections"]

_LIMIT = 8
_PATIENCE = 15.0  # seconds: long enough for a server to restart


class Connections:
    """Lends out connections, each to one borrower at a time; the others wait."""

    def __init__(self, name: str, parameters: Mapping[str, Any], configure: LiteralString) -> None:
        self._name = name
        self._parameters = dict(parameters)
        self._configure = configure
        self._known = False  # whether the server was ever there
        self._start()

    def _start(self) -> None:
        self._owner = os.getpid()  # connections do not survive a fork
        self._turns = threading.BoundedSemaphore(_LIMIT)
        self._idle: list[Connection] = []

    @contextmanager
    def borrow(self) -> Iterator[Connection]:
        """Lend a connection that works, as far as one can know without asking.

        If none can be had, raises `StorageError`: nothing was sent. A server that was there before is given
        time to come back.
        """
        if self._owner != os.getpid():
            self._start()
        with self._turns:
            connection = self._take()
            try:
                yield connection
            finally:
                if connection.info.transaction_status is TransactionStatus.IDLE:
                    self._idle.append(connection)
                else:
                    connection.close()

    def close(self) -> None:
        """Close all connections that are not lent out."""
        if self._owner == os.getpid():
            while self._idle:
                self._idle.pop().close()

    def _take(self) -> Connection:
        with suppress(IndexError):
            while True:
                connection = self._idle.pop()
                if _is_quiet(connection):
                    return connection
                connection.close()
        return self._connect()

    def _connect(self) -> Connection:
        deadline = time.monotonic() + (_PATIENCE if self._known else 0)
        waits = pauses(first=0.1)
        while True:
            try:
                with ExitStack() as undo:
                    connection = undo.enter_context(psycopg.connect(**self._parameters, autocommit=True))
                    connection.execute(self._configure)
                    undo.pop_all()
            except psycopg.Error as error:
                pause = next(waits)
                if time.monotonic() + pause > deadline:
                    raise StorageError(f"connecting to {self._name}", str(error).strip()) from error
                time.sleep(pause)
            else:
                self._known = True
                return connection


def _is_quiet(connection: Connection) -> bool:
    """Say whether the server has sent nothing while nobody asked it anything.

    If it went away, it has said so or hung up, and either makes the connection readable.
    """
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)

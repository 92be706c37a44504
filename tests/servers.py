"""Real servers for tests, one of each for a session.

Import the fixtures `postgres` and `s3` where they are needed.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from testbed.servers import PostgresServer, S3Server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Start PostgreSQL in a directory that its own user may enter, unlike pytest's."""
    directory = Path(tempfile.mkdtemp(prefix="instar-postgres-"))
    server = PostgresServer(directory)
    yield server
    server.crash()
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """Start S3."""
    server = S3Server()
    yield server
    server.stop()

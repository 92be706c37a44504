"""A lineage service for tests.

Import the fixture `service` where it is needed, with `database_url` of `tests.lineage` and `postgres`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from testbed.service import Client, running

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def service(database_url: str) -> Iterator[Client]:
    """Return a client of a service on each kind of database."""
    with running(database_url) as client:
        yield client

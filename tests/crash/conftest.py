"""What the tests of crashes share: places that outlive a process, and somebody who forks and kills."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from testbed.nursery import Nursery, Place
from tests.servers import postgres, s3

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from testbed.servers import PostgresServer, S3Server

__all__ = ["postgres", "s3"]


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Return somebody who has children."""
    nursery = Nursery("tests.crash.children")
    yield nursery
    nursery.close()


@pytest.fixture(params=["directory", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return a place that a process can leave abruptly."""
    return make_place(request.param, request, tmp_path)


@pytest.fixture(params=["directory", "postgres", "s3"])
def shared_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return a place where many processes can meet."""
    return make_place(request.param, request, tmp_path)


def make_place(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return an empty place."""
    if kind == "directory":
        return Place(kind, str(tmp_path / "store"))
    if kind == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        return Place(kind, str(tmp_path / "store"), server.url())
    bucket: S3Server = request.getfixturevalue("s3")
    return Place(kind, bucket.url(), None, bucket.options)


@pytest.fixture
def effort() -> int:
    """Return how many times more than usual to try: 1, and many more under the soak."""
    return max(1, settings.default.max_examples // 1000) if settings.default else 1

"""The places that the conformance suites run in: every backend, each test in a place of its own."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from instar.storage import Blob, Consensus, open_blob, open_consensus
from tests.servers import postgres, s3

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from testbed.servers import PostgresServer, S3Server

__all__ = ["postgres", "s3"]


@dataclass
class Place:
    """Where a store is; every `open_*` gives a handle of its own, as another process would have."""

    name: str
    blob_url: str = "memory://"
    options: dict[str, str] = field(default_factory=dict)
    consensus_url: str | None = None
    opened: list[Consensus] = field(default_factory=list)

    @property
    def shared(self) -> bool:
        """Say whether other processes can come here."""
        return "memory" not in self.name

    def open_blob(self) -> Blob:
        """Open the blobs."""
        return open_blob(self.blob_url, self.options)

    def open_consensus(self) -> Consensus:
        """Open the logs; the fixture closes them."""
        consensus = open_consensus(self.consensus_url, self.open_blob(), self.options)
        self.opened.append(consensus)
        return consensus


def _blob_place(kind: str, request: pytest.FixtureRequest) -> Place:
    if kind == "memory":
        return Place("memory", f"memory://{uuid.uuid4().hex}")
    if kind == "directory":
        directory: Path = request.getfixturevalue("tmp_path") / uuid.uuid4().hex
        return Place("directory", str(directory))
    server: S3Server = request.getfixturevalue("s3")
    return Place("s3", server.url(), server.options)


@pytest.fixture(params=["memory", "directory", "s3"])
def blob_place(request: pytest.FixtureRequest) -> Place:
    """Return an empty place for blobs."""
    return _blob_place(request.param, request)


@pytest.fixture
def blob(blob_place: Place) -> Blob:
    """Return a handle to an empty place for blobs."""
    return blob_place.open_blob()


@pytest.fixture(params=["memory", "blob-memory", "blob-directory", "blob-s3", "postgres"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Return an empty place for logs."""
    kind: str = request.param
    if kind == "memory":
        place = Place(kind, consensus_url=f"memory://{uuid.uuid4().hex}")
    elif kind == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        place = Place(kind, consensus_url=server.url())
    else:
        place = _blob_place(kind.removeprefix("blob-"), request)
        place.name = kind
    yield place
    for consensus in place.opened:
        consensus.close()


@pytest.fixture
def consensus(place: Place) -> Consensus:
    """Return a handle to an empty place for logs."""
    return place.open_consensus()

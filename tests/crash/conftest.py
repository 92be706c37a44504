"""What the tests of crashes share: places that outlive a process, and somebody who forks and kills."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.servers import PostgresServer, S3Server, postgres, s3

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["postgres", "s3"]


@dataclass
class Place:
    """Where a store is."""

    kind: str
    location: str
    consensus: str | None = None
    options: dict[str, str] = field(default_factory=dict)


class Nursery:
    """Lets children do something in a place, and answers what they say."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("children.py")
        self._process = subprocess.Popen(
            [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, place: Place, do: str, **more: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - plain JSON
        """Ask for one thing."""
        task = {
            "do": do,
            "location": place.location,
            "consensus": place.consensus,
            "options": place.options,
            **more,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        answers: list[dict[str, Any]] = json.loads(self._process.stdout.readline())
        assert not any("failed" in answer for answer in answers), "a child failed; see its traceback"
        return answers

    def close(self) -> None:
        """End."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Return somebody who has children."""
    nursery = Nursery()
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

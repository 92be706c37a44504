"""What the tests of rows share: tables in memory, and commits that do not sleep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from instar.api.store import Store
from tests.tables import StillTime, World

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def world() -> Iterator[World]:
    """Return an empty place in memory."""
    world = World()
    yield world
    world.close()


@pytest.fixture
def store(world: World) -> Store:
    """Return a store in that place, whose clock stands still."""
    return Store("memory", world.services())


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("instar.table.log.table_log.time", StillTime())

"""What the tests of tables share: a place in memory, and commits that do not sleep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tables import StillTime, World

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def world() -> Iterator[World]:
    """Return an empty place in memory."""
    world = World()
    yield world
    world.close()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("instar.table.log.table_log.time", StillTime())

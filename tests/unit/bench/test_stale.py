"""`bench stale` runs from end to end, and says of instar what README says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from bench.__main__ import app

if TYPE_CHECKING:
    from pathlib import Path


def test_old_readers_and_writers_are_stopped(tmp_path: Path) -> None:
    """Nobody is told anything else, whoever else is here."""
    done = CliRunner().invoke(app, ["stale", "--json", "--directory", str(tmp_path)])
    assert done.exception is None, done.output
    (section,) = json.loads(done.stdout)["sections"]
    assert [row["instar"] for row in section["rows"]] == ["is stopped", "is stopped", "yes"]
    assert list(tmp_path.iterdir()) == []

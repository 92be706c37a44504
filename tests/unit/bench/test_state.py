"""`bench state` runs from end to end; what it measures is nobody's business here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from bench.__main__ import app
from bench.engines import ENGINES, installed

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what a run with tiny tables says."""
    directory: Path = tmp_path_factory.mktemp("bench")
    done = CliRunner().invoke(app, ["state", "--quick", "--json", "--directory", str(directory)])
    assert done.exception is None, done.output
    assert list(directory.iterdir()) == []
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_every_figure_is_a_ratio_first(report: dict[str, Any]) -> None:
    """Each row of each table has a ratio to something that was measured in the same run."""
    assert len(report["sections"]) == 3
    for section in report["sections"]:
        assert section["rows"]
        for row in section["rows"]:
            ratios = [value for name, value in row.items() if "ratio" in name and value is not None]
            assert ratios


def test_absent_peers_are_named(report: dict[str, Any]) -> None:
    """An engine is measured or is listed as left out; instar itself is always there."""
    measured = {row["engine"] for row in report["sections"][1]["rows"]}
    assert measured == {name for name in ENGINES if installed(name)}
    assert "instar" in measured
    left_out = [name for name in ENGINES if name not in measured]
    assert report["skipped"] == [f"{name}, which is not installed here" for name in left_out]

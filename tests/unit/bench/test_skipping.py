"""`bench skipping` runs from end to end without Spark, and its league counts what it says it counts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from bench.__main__ import app
from bench.opened import CAN_WATCH, Opened
from bench.skipping.filters import league_filters, league_rows

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what a run with tiny tables says."""
    directory: Path = tmp_path_factory.mktemp("bench")
    done = CliRunner().invoke(app, ["skipping", "--quick", "--json", "--directory", str(directory)])
    assert done.exception is None, done.output
    assert list(directory.iterdir()) == []
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.skipif(not CAN_WATCH, reason="only Linux tells what files are opened")
def test_instar_opens_the_ideal_number_of_files(report: dict[str, Any]) -> None:
    """For every filter of the league, files are opened that hold a match, and no others; no row is lost."""
    *filters, total = report["sections"][0]["rows"]
    assert len(filters) == 20
    assert [row["filter"] for row in filters if row["instar"] != row["ideal"]] == []
    assert total["instar"] == "20, 0"


def test_decisions_are_compared_with_the_smallest_table_and_with_instar(report: dict[str, Any]) -> None:
    """Each row has both ratios."""
    rows = report["sections"][-1]["rows"]
    assert {row["conditions"] for row in rows} == {"near", "scattered"}
    assert all(row["growth_ratio"] and row["peer_ratio"] for row in rows)


def test_who_is_left_out_is_named(report: dict[str, Any]) -> None:
    """A quick run says that it has asked nothing on Spark."""
    assert "queries on Spark, which a quick run does not start" in report["skipped"]
    assert any(line.startswith("DuckLake") for line in report["skipped"])


def test_every_filter_is_true_for_some_rows_of_some_parts() -> None:
    """No filter is trivial: what it asks for is somewhere, and not everywhere."""
    rows = sum(part.num_rows for part in league_rows())
    for one in league_filters():
        assert 0 < len(one.ids) < rows


@pytest.mark.skipif(not CAN_WATCH, reason="only Linux tells what files are opened")
def test_opened_files_are_told_once(tmp_path: Path) -> None:
    """What was opened since the last call is told, below subdirectories too; directories are not files."""
    (tmp_path / "in").mkdir()
    file, other = tmp_path / "in" / "a", tmp_path / "b"
    file.touch()
    other.touch()
    with Opened(tmp_path) as opened:
        assert opened.take() == set()
        file.read_bytes()
        file.read_bytes()
        list(tmp_path.iterdir())
        assert opened.take() == {file}
        other.read_bytes()
        assert opened.take() == {other}

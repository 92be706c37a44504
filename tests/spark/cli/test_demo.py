"""`instar demo` tells programs the story that it tells people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.command import instar

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.timeout(900)
def test_programs_are_told_the_whole_story(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every chapter has a title and what it found: words, rows and errors."""
    # A test of the documents runs the demo with all of its appends.
    monkeypatch.setattr("instar.cli.demo._APPENDS", 150)
    lake = str(tmp_path / "[bold]lake")
    done = instar("demo", "--keep", lake, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    story = json.loads(done.stdout)
    assert story["store"] == lake
    assert [bool(chapter["found"]) for chapter in story["chapters"]] == [True] * 10
    write, evolve = story["chapters"][:2]
    assert write["title"] == "Write events with Spark"
    assert write["found"][0].startswith("Appended 100,000 rows under schema 0")
    assert write["found"][1][0]["user"] == "user0"
    assert evolve["found"][-1]["error"]["code"] == "incompatible-schema"
    compacted, parts, same, found = story["chapters"][8]["found"]
    assert compacted == "Compaction wrote 150 parts as 1, without Spark."
    assert [row["parts in the table"] for row in parts] == ["150", "1"]
    assert same.startswith("The rows are the same.")
    assert found == [{"id": "101", "page": "/"}]
    before, after = (text for text in story["chapters"][9]["found"] if "2026-11" in text)
    assert "111122223" in before
    assert "3333333333" in after
    assert [line["schema"] for line in story["chapters"][7]["found"][0]][:2] == ["0", "0"]

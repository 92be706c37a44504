"""`instar demo` tells people and programs the same story."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.unit.cli.command import instar

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_programs_are_told_the_whole_story(spark: SparkSession, tmp_path: Path) -> None:
    """Every chapter has a title and what it found: words, rows and errors."""
    lake = str(tmp_path / "[bold]lake")
    done = instar("demo", "--keep", lake, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    story = json.loads(done.stdout)
    assert story["store"] == lake
    assert [bool(chapter["found"]) for chapter in story["chapters"]] == [True] * 8
    write, evolve = story["chapters"][:2]
    assert write["title"] == "Write events with Spark"
    assert write["found"][0].startswith("Appended 100,000 rows under schema 0")
    assert write["found"][1][0]["user"] == "user0"
    assert evolve["found"][-1]["error"]["code"] == "incompatible-schema"
    assert [line["schema"] for line in story["chapters"][7]["found"][0]][:2] == ["0", "0"]


def test_people_are_told_as_it_happens(spark: SparkSession, tmp_path: Path) -> None:
    """In numbered chapters, and in the end where the store is."""
    done = instar("demo", "--keep", str(tmp_path / "[bold]lake"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "1. Write events with Spark" in done.stdout
    assert "  IncompatibleSchemaError: " in done.stdout
    assert "8. What happened" in done.stdout
    assert f"The store is at {tmp_path}/[bold]lake" in done.stdout

"""What pages work out for themselves: steps between schemas, columns on both sides, bars and durations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from instar.lineage.queries.datasets import show_dataset
from instar.lineage.queries.names import load_dataset
from instar.service.pages.figures import columns_around, run_bars, schema_steps, show_duration
from testbed.lineage import dataset, run_event
from tests.lineage import send

if TYPE_CHECKING:
    from instar.lineage import Database


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [(None, ""), (-1, ""), (0, "0.0 s"), (59_900, "59.9 s"), (60_000, "1 min"), (3_780_000, "1 h 3 min"),
     (90_061_000, "1 d 1 h"), (3_600_500, "1 h")],
)  # fmt: skip
def test_durations_have_the_units_that_matter(milliseconds: int | None, words: str) -> None:
    """Nobody wants to divide 5,423.7 seconds by 3,600."""
    assert show_duration(milliseconds) == words


def test_a_step_says_what_came_went_and_changed() -> None:
    """Order and descriptions are no change; what is nested is."""

    def schema(*fields: tuple[str, str | None, list[Any]]) -> dict[str, Any]:
        some = [{"name": name, "type": type_, "fields": nested} for name, type_, nested in fields]
        return {"fields": some}

    inner = {"name": "x", "type": "int"}
    newest = schema(("s", "struct", [{**inner, "type": "bigint"}]), ("a", None, []))
    middle = schema(("a", None, []), ("s", "struct", [{**inner, "description": "of no matter"}]))
    oldest = schema(("s", "struct", [inner]), ("gone", "int", []))
    assert schema_steps([newest, middle, oldest]) == [
        {"added": [], "removed": [], "changed": ["s"]},
        {"added": ["a"], "removed": ["gone"], "changed": []},
        {"added": [], "removed": [], "changed": []},
    ]
    assert schema_steps([]) == []


def test_bars_are_as_high_as_runs_were_long() -> None:
    """The latest run is on the right, and one that goes on is still to be seen."""
    runs = [
        {"state": state, "durationMs": took, "startedAt": None, "createdAt": "2026-01-01T00:00:00.000Z"}
        for state, took in (("RUNNING", None), ("FAILED", 500), ("COMPLETED", 1000))
    ]
    bars = run_bars(runs)
    assert [bar["state"] for bar in bars] == ["completed", "failed", "running"]
    assert [bar["height"] for bar in bars] == [48, 24, 3]
    assert bars[0]["title"] == "completed 2026-01-01 00:00:00 1.0 s"
    assert run_bars([]) == []


def test_columns_are_followed_both_ways(database: Database) -> None:
    """A column says what it is made from and what is made from it, under whichever name it was reported."""
    link = {"symlinks": {"identifiers": [{"namespace": "db", "name": "alias", "type": "T"}]}}

    def made(name: str, source: str, field: str) -> dict[str, Any]:
        one = {"namespace": "db", "name": source, "field": field, "transformations": []}
        return {"columnLineage": {"fields": {name: {"inputFields": [one]}}}}

    send(
        database,
        run_event("COMPLETE", 1, 1, outputs=[dataset("t", "a int, b int", **link, **made("a", "raw", "x"))]),
        run_event("COMPLETE", 2, 2, outputs=[dataset("out", "z int", **made("z", "alias", "a"))]),
    )
    with database.reading() as connection:
        root = load_dataset(connection, "db", "t")
        (column,) = columns_around(connection, root, show_dataset(connection, root))
    assert column["name"] == "a"
    assert [(one["dataset"], one["field"]) for one in column["made_from"]] == [("raw", "x")]
    assert [(one["dataset"], one["field"]) for one in column["goes_to"]] == [("out", "z")]

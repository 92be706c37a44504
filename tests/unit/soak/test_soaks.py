"""The soaks themselves: a few turns of each that needs neither Spark nor a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from soak.clocks import run_clocks
from soak.families import run_families
from soak.histories import run_histories
from soak.keyed import run_keyed
from soak.names import run_names
from soak.races import run_races
from soak.turns import some_turns, turn, turns_for

if TYPE_CHECKING:
    from pathlib import Path


def test_random_histories_are_those_of_the_model(tmp_path: Path) -> None:
    """Whatever is written, retracted and evolved, every row is that of a model which shares no code."""
    assert run_histories(tmp_path, some_turns(2)).total() == 50


def test_every_kind_of_write_does_what_it_does_to_the_model(tmp_path: Path) -> None:
    """Tables with keys, orders and curves, with values at the ends of every type's range."""
    assert run_keyed(tmp_path, some_turns(2)).total() == 40


def test_compactions_and_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    """Two of each, with deletes, retractions by value, evolutions and vacuums: every row is in its place."""
    done = run_races(tmp_path, some_turns(2))
    assert done["turns"] == 2
    assert done["jobs"] > 0


def test_all_that_happens_to_a_stream_at_once_loses_nothing(tmp_path: Path) -> None:
    """Writers, evolvers, jobs that copy and drop, vacuums and readers: every row is once in every kind."""
    done = run_families(tmp_path, some_turns(1))
    assert done["turns"] == 1
    assert done["writes"] > 0


def test_wrong_clocks_lose_nothing(tmp_path: Path) -> None:
    """Machines that are days apart write to one table, and each sees every row once."""
    assert run_clocks(tmp_path, some_turns(2))["append"] > 0


def test_names_that_change_in_the_middle_of_each_other_lose_nothing(tmp_path: Path) -> None:
    """A step of one machine comes between two requests of another: what is there is what one order makes."""
    assert sum(count for what, count in run_names(tmp_path, some_turns(4)).items() if "around" in what) > 0


def test_a_history_that_went_wrong_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is missing is found, and the turn and step that found it are told."""
    monkeypatch.setattr("instar.api.snapshot.Snapshot.to_arrow", lambda self, **_: _without_a_row(self))
    with pytest.raises(AssertionError, match="turn 0:0, step"):
        run_histories(tmp_path, some_turns(1))


def _without_a_row(snapshot: object) -> object:
    import pyarrow as pa  # noqa: PLC0415 -- only this test needs it

    batches = list(snapshot.to_batches())  # type: ignore[attr-defined]
    return pa.Table.from_batches(batches, schema=batches[0].schema if batches else pa.schema([])).slice(1)


def test_a_turn_can_be_had_again() -> None:
    """The random numbers of a turn follow from its seed and number alone."""
    first = [each.random.random() for each in some_turns(3, seed=5)]
    assert turn(5, 2).random.random() == first[2]
    assert len(list(turns_for(0, 1))) == 1

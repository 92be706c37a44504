"""What a table is like, and what a compaction would do for filters, foretold and then counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import instar as library
from instar.parts import PartLimits
from instar.table.housekeeping.plan import Goals
from tests.unit.cli.command import instar

if TYPE_CHECKING:
    import pytest

    from instar.api.store import Store


def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let parts be ideal at 16 KiB."""
    monkeypatch.setattr("instar.table.write.append.PartLimits", lambda: PartLimits(16_384, 32_768))
    defaults = {**Goals._field_defaults, "target_bytes": 16_384}
    monkeypatch.setattr(Goals.__new__, "__defaults__", tuple(defaults.values()))


def test_what_filters_open_is_foretold(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly as it comes: in a table that is sorted, and in one that is clustered."""
    small_parts(monkeypatch)
    chance = np.random.default_rng(5)
    for name, layout in (("sorted", {"order_by": ["a"]}), ("clustered", {"cluster_by": ["a", "b"]})):
        table = store.create_table(name, "a double, b double", **layout)  # type: ignore[arg-type]
        for _ in range(6):
            table.append(pa.table({"a": chance.random(4000), "b": chance.random(4000)}))
        table.count("a between 0.5 and 0.52")
        table.count("b between 0.5 and 0.52")
        table.count("a between 0.5 and 0.52")
        foretold = table.forecast()
        assert [one.filter for one in foretold] == ["a between 0.5 and 0.52", "b between 0.5 and 0.52"]
        assert all(one.read_before == one.total_before == table.state.totals.parts for one in foretold)
        table.compact(full=True)
        for one in foretold:
            counted = table.explain(one.filter)
            assert abs(one.read_after / one.total_after - counted.read / counted.total) < 0.2, (name, one)


def test_what_was_asked_last_is_known_to_others(tmp_path: Path) -> None:
    """Until a purge; a table may keep it to itself, and what cannot be asked any more is left out."""
    path = str(tmp_path / "lake")
    with library.open(path) as opened:
        for name, options in (("t", {}), ("secret", {"queries": "off"})):
            table = opened.create_table(name, "a bigint, b string", options=options)
            for part in range(3):
                table.append(pa.table({"a": [part], "b": ["x"]}))
            table.count("a = 1")
            table.count("b = 'x'")
            table.evolve().drop_column("b").commit()
    with library.open(path) as opened:
        opened.table("t").count("a > 1")
        opened.table("t").vacuum(grace_ms=0)

    def foreseen(name: str) -> list[list[object]]:
        told = json.loads(instar("optimize", name, "--dry-run", "--json", "--store", path).stdout)
        return [[one["filter"], one["read_before"]] for one in told["filters"]]

    assert foreseen("t") == [["a > 1", 1], ["a = 1", 1]]
    assert foreseen("secret") == []
    next(Path(path).glob("tables/*/queries/*")).write_bytes(b"damaged")
    assert foreseen("t") == []
    with library.open(path) as opened:
        opened.table("t").count("a > 1")
    assert len(foreseen("t")) == 1
    with library.open(path) as opened:
        opened.table("t").count("a > 2")
        opened.table("t").purge(where="a = 1")
    assert not list(Path(path).glob("tables/*/queries/*"))


def test_a_table_says_what_state_it_is_in(tmp_path: Path) -> None:
    """To people and programs, and what a compaction would do; afterwards there is nothing to do."""
    path = str(tmp_path / "lake")
    with library.open(path) as opened:
        table = opened.create_table("t", "a bigint, b string", order_by=["a"])
        for part in range(4):
            table.append(pa.table({"a": [part, part + 100], "b": ["x", "y"]}))
        table.evolve().add_column("c", "int").commit()
        table.append(pa.table({"a": [7]}))
        table.delete("a = 100")
    told = json.loads(instar("describe", "t", "--json", "--store", path).stdout)["condition"]
    assert told == {
        "parts": 5,
        "small_parts": 5,
        "schemas": {"0": 4, "1": 1},
        "ordered": False,
        "retracted": 1,
        "work": {"overlap": 5},
    }
    shown = instar("describe", "t", "--store", path).stdout
    for words in ("5 of 5", "0 (4 parts), 1 (1 part)", "parts overlap", "would rewrite 5 parts (overlap)"):
        assert words in shown
    asked = ("--filter", "a = 3", "--filter", "a > 1000", "--store", path)
    plan = json.loads(instar("optimize", "t", "--dry-run", "--json", *asked).stdout)
    assert [(one["read_before"], one["read_after"]) for one in plan["filters"]] == [(4, 1), (0, 0)]
    assert "4 of 5" in instar("optimize", "t", "--dry-run", *asked).stdout
    done = instar("optimize", "t", *asked).stdout
    assert done.startswith("Rewrote 5 parts as 1 part")
    assert "1 of 1" in done
    assert "has nothing to do" in instar("describe", "t", "--store", path).stdout
    again = instar("optimize", "t", "--dry-run", *asked).stdout
    assert again.startswith("Nothing to do.\n")
    assert again.count("1 of 1") == 2

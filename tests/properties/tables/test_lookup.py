"""A lookup finds the rows that a look at every row finds, whatever the table has been through."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.api.store import Store
from instar.parts import PartLimits, write
from instar.schema import arrow_type
from instar.table.housekeeping import rewrite
from tests.tables import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.api.table import Table

MOMENTS = [dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in range(1, 9)]
COLUMNS: dict[str, tuple[str, Callable[[Random], Any]]] = {
    "i": ("int", lambda random: random.choice([None, -(2**31), *range(12)])),
    "f": ("float", lambda random: random.choice([None, math.nan, -0.0, 0.0, 1.5, -math.inf])),
    "t": ("string", lambda random: random.choice([None, "", "é", "z" * 70 + random.choice("ab"), "k"])),
    "d": ("decimal(9,2)", lambda random: random.choice([None, Decimal("1.50"), Decimal("-3.00")])),
    "at": ("timestamp", lambda random: random.choice([None, *MOMENTS])),
    "day": ("date", lambda random: random.choice([None, dt.date(1960, 1, random.randint(1, 9))])),
    "ok": ("boolean", lambda random: random.choice([None, True, False])),
    "raw": ("binary", lambda random: random.choice([None, b"", b"\xff\x00"])),
    "s": (
        "struct<x: int, y: string>",
        lambda random: random.choice([None, {"x": 1, "y": "a"}, {"x": None, "y": None}]),
    ),
}


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a handful of rows be many parts, and many row groups."""
    limits = PartLimits(file_bytes=6000, buffer_bytes=12000)
    monkeypatch.setattr("instar.table.write.append.PartLimits", lambda: limits)
    monkeypatch.setattr(write, "ROW_GROUP_ROWS", 7)
    monkeypatch.setattr(rewrite, "SORTED_BYTES", 5000)


def rows(table: Table, random: Random, count: int) -> pa.Table:
    """Draw rows under the table's schema."""
    made = [
        pa.array(
            [COLUMNS[field.name.partition("_")[0]][1](random) for _ in range(count)], arrow_type(field.type)
        )
        for field in table.schema.fields
    ]
    return pa.table(made, table.schema.names)


def act(table: Table, random: Random) -> None:
    """Append, retract by value or by position, evolve or compact."""
    names = table.schema.names
    match random.randint(0, 9):
        case 0:
            name = random.choice(names)
            table.evolve().rename_column(name, name.partition("_")[0] + f"_{random.randint(0, 99)}").commit()
        case 1 if "i" in names:
            table.evolve().widen_column("i", "bigint").commit()
        case 2 if "f" in names:
            table.evolve().widen_column("f", "double").commit()
        case 3:
            table.compact(full=random.random() < 0.5)
        case 4:
            some = table.head(3)
            if some.num_rows:
                table.apply(some.append_column("_diff", pa.array([-1] * some.num_rows)))
        case 5:
            some = table.head(40).to_pylist()
            integer = next(name for name in names if name.startswith("i"))
            if some and some[-1][integer] is not None:
                table.delete(f"{integer} = {some[-1][integer]}")
        case _:
            table.append(rows(table, random, random.choice((1, 5, 60))))


def same(one: Any, other: Any) -> bool:  # noqa: ANN401 -- any value of any column
    """Whether two values are equal as rows are."""
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other) and (one is None) == (other is None)


def bag(found: list[dict[str, Any]]) -> list[str]:
    """Return rows in no order."""
    return sorted(map(repr, found))


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32))
def test_a_lookup_equals_a_look_at_every_row(seed: int) -> None:
    """By any columns, now and at an earlier time, for keys that are there and keys that are not."""
    random = Random(seed)
    with_order = random.random() < 0.8
    chosen = ["i", *random.sample([name for name in COLUMNS if name != "i"], k=4)]
    order = random.sample(chosen, k=2) if with_order else []
    store = Store("memory", (world := World()).services())
    ddl = ", ".join(f"{name} {COLUMNS[name][0]}" for name in chosen)
    table = store.create_table("t", ddl, order_by=order)
    times: list[int] = []
    for _ in range(random.randint(2, 9)):
        act(table, random)
        times += [table.upper - 1] if table.upper > 0 else []
        world.clock.now += 1
    earlier = [time for time in times if time >= table.since]
    for as_of in (None, *random.sample(earlier, k=min(1, len(earlier)))):
        with table.snapshot(as_of=as_of) as snapshot:
            every = snapshot.to_arrow().to_pylist()
            for _ in range(8):
                names = random.sample(snapshot.schema.names, k=random.choice((1, 1, 2, 3)))
                key = {name: COLUMNS[name.partition("_")[0]][1](random) for name in names}
                if every and random.random() < 0.7:
                    key = {name: random.choice(every)[name] for name in names}
                if "s" in key and random.random() < 0.5:
                    key["s.x"] = (key.pop("s") or {}).get("x")
                expected = [row for row in every if all(same(reach(row, name), key[name]) for name in key)]
                assert bag(snapshot.lookup(key).to_pylist()) == bag(expected), key
    world.close()


def reach(row: dict[str, Any], path: str) -> Any:  # noqa: ANN401
    """Return the value at a path."""
    name, _, member = path.partition(".")
    return (row[name] or {}).get(member) if member else row[name]

"""Tables with keys, orders and curves under every kind of write, against a model in plain Python.

Rows are appended, upserted, updated, merged, deleted, overwritten, retracted by value and restored; columns
of every type at the ends of its range come, go, get other names and wider types, those of the key too; the
table is compacted, cloned, vacuumed and opened again. The model shares no code with instar. It keeps every
row of every version, and each version that is read later has to be as it was.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

import instar

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from instar import Table
    from soak.turns import Turn

__all__ = ["run_keyed"]

_STEPS: Final = 20
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 -- local times have no zone

Row = dict[int, Any]
"""A row by the numbers of its columns, which no two columns ever share; what is missing is null."""

_KINDS: Final[dict[str, tuple[pa.DataType, tuple[Any, ...]]]] = {
    "boolean": (pa.bool_(), (True, False)),
    "tinyint": (pa.int8(), (-128, 127, 0)),
    "int": (pa.int32(), (-(2**31), 2**31 - 1, 0, 7)),
    "bigint": (pa.int64(), (-(2**63), 2**63 - 1, 0, 2**53 + 1)),
    "float": (pa.float32(), (0.5, -math.inf, math.nan, -0.0)),
    "double": (pa.float64(), (0.0, -0.0, math.nan, math.inf, 5e-324, 1.5)),
    "string": (pa.string(), ("", "a", "Ä\u0301", "\U0010ffff" * 30, "x" * 100, "\x00")),
    "binary": (pa.binary(), (b"", b"\x00", b"\xff" * 80)),
    "date": (pa.date32(), (dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1582, 10, 10))),
    "timestamp_ntz": (pa.timestamp("us"), (_EPOCH, dt.datetime.max, dt.datetime.min)),  # noqa: DTZ901
    "decimal(10,2)": (pa.decimal128(10, 2), (Decimal("-99999999.99"), Decimal("0.01"))),
}
_WIDER: Final = {"tinyint": "int", "int": "bigint", "float": "double"}


@dataclass
class Column:
    """A column: a number for ever, a name and a kind."""

    number: int
    name: str
    kind: str

    def draw(self, draw: random.Random) -> Any:  # noqa: ANN401 -- of any kind
        """Return a value."""
        return draw.choice((None, *_KINDS[self.kind][1]))


def _same(value: Any) -> Any:  # noqa: ANN401 -- of any kind
    """Return what equal values have in common: NaN equals NaN, and -0.0 equals 0.0."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


class _Model:
    """A table as it should be, and what it was after each of its versions."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.last = 2
        self.columns = [Column(1, "k", "int"), Column(2, "v", draw.choice(sorted(_KINDS)))]
        self.rows: list[Row] = []
        self.past: dict[int, list[Row]] = {}

    @property
    def key(self) -> Column:
        """The column that keys are in."""
        return self.columns[0]

    def shown(self, rows: Iterable[Row]) -> Counter[tuple[Any, ...]]:
        """Return rows as the columns of now show them."""
        return Counter(tuple(_same(row.get(it.number)) for it in self.columns) for row in rows)

    def make(self, keys: Iterable[int | None]) -> list[Row]:
        """Return new rows."""
        others = self.columns[1:]
        return [{1: key, **{it.number: it.draw(self.draw) for it in others}} for key in keys]

    def arrow(self, rows: list[Row]) -> pa.Table:
        """Return rows as somebody would give them."""
        arrays = [pa.array([row.get(it.number) for row in rows], _KINDS[it.kind][0]) for it in self.columns]
        return pa.table(arrays, names=[it.name for it in self.columns])

    def some_keys(self) -> list[int | None]:
        """Return different keys, null among them."""
        return self.draw.sample([None, *range(12)], self.draw.randint(1, 5))

    def condition(self) -> tuple[str, Callable[[Row], bool]]:
        """Return a condition in SQL, and what it means."""
        at, name = self.draw.randrange(12), f"`{self.key.name}`"
        other = self.draw.choice(self.columns)
        return self.draw.choice(
            [
                (f"{name} = {at}", lambda row: row[1] == at),
                (f"{name} > {at}", lambda row: row[1] is not None and row[1] > at),
                (f"{name} is null or {name} in (1, {at})", lambda row: row[1] in {None, 1, at}),
                (f"not ({name} % 3 = 0)", lambda row: row[1] is not None and row[1] % 3 != 0),
                (f"`{other.name}` is null", lambda row: row.get(other.number) is None),
            ]
        )


def run_keyed(place: Path, turns: Iterable[Turn]) -> Counter[str]:
    """Let histories happen, and return what was done how often."""
    done: Counter[str] = Counter()
    for at, turn in enumerate(turns):
        done.update(_History(f"{place}/lake{at}", turn).run())
    return done


class _History:
    """One history: the table and its model."""

    def __init__(self, location: str, turn: Turn) -> None:
        self.draw, self.name, self.location = turn.random, turn.name, location
        self.model = model = _Model(turn.random)
        options: dict[str, Any] = {}
        layout = self.draw.choice(["plain", "order", "cluster"])
        if layout == "order":
            options["order_by"] = self.draw.choice([["k"], ["v", "k"]])
        elif layout == "cluster":
            options["cluster_by"] = ["k", "v"]
        columns = ", ".join(f"{it.name} {it.kind}" for it in model.columns)
        store = instar.open(location)
        self.table: Table = store.create_table("t", columns, key=["k"], **options)
        self.said: list[str] = [f"{columns} {options}"]

    def run(self) -> Counter[str]:
        """Do one thing after another, and compare after each."""
        names = [name.removeprefix("_do_") for name in dir(self) if name.startswith("_do_")]
        done: Counter[str] = Counter()
        for _ in range(_STEPS):
            kind = self.draw.choice(names)
            self.said.append(kind)
            try:
                getattr(self, f"_do_{kind}")()
                self._compare()
            except Exception as error:
                error.add_note(f"in turn {self.name}, after {self.said}")
                raise
            done[kind] += 1
        return done

    def _compare(self) -> None:
        model, table = self.model, self.table
        model.past[table.state.seqno] = list(model.rows)
        where, holds = model.condition()
        earlier = self.draw.choice(sorted(model.past))
        self._check(table.to_arrow(), model.rows, "now")
        self._check(table.to_arrow(where=where), filter(holds, model.rows), where)
        self._check(table.snapshot(version=earlier).to_arrow(), model.past[earlier], f"version {earlier}")
        key = self.draw.randrange(12)
        self._check(table.lookup(key), (row for row in model.rows if row[1] == key), f"lookup {key}")
        assert table.snapshot().count() == len(model.rows), "the count"

    def _check(self, found: pa.Table, rows: Iterable[Row], what: str) -> None:
        wanted = self.model.shown(rows)
        got = Counter(tuple(_same(value) for value in row.values()) for row in found.to_pylist())
        assert found.column_names == [it.name for it in self.model.columns], what
        assert got == wanted, f"{what}: {got - wanted} too many, {wanted - got} missing"

    def _replace(self, goes: Callable[[Row], bool], comes: Iterable[Row]) -> None:
        self.model.rows = [row for row in self.model.rows if not goes(row)] + list(comes)

    def _do_append(self) -> None:
        rows = self.model.make(self.model.some_keys())
        self.table.append(self.model.arrow(rows))
        self.model.rows += rows

    _do_append_again = _do_append

    def _do_upsert(self) -> None:
        keys = self.model.some_keys()
        rows = self.model.make(keys)
        self.table.upsert(self.model.arrow(rows))
        self._replace(lambda row: row[1] in keys, rows)

    def _do_delete(self) -> None:
        where, holds = self.model.condition()
        self.said.append(where)
        self.table.delete(where)
        self._replace(holds, ())

    def _do_overwrite(self) -> None:
        where, holds = self.model.condition()
        rows = self.model.make(self.model.some_keys())
        self.table.overwrite(self.model.arrow(rows), where)
        self._replace(holds, rows)

    def _do_update(self) -> None:
        where, holds = self.model.condition()
        key = self.draw.choice([None, 3, 11])
        self.said.append(f"{where} -> {key}")
        self.table.update({self.model.key.name: "null" if key is None else str(key)}, where)
        self._replace(holds, [{**row, 1: key} for row in self.model.rows if holds(row)])

    def _do_merge(self) -> None:
        keys = [key for key in self.model.some_keys() if key is not None]
        rows = self.model.make(keys)
        if not rows:
            return
        merge = self.table.merge(self.model.arrow(rows), on=[self.model.key.name])
        merge.when_matched_delete().when_not_matched_insert().execute()
        there = {row[1] for row in self.model.rows}
        self._replace(lambda row: row[1] in keys, [row for row in rows if row[1] not in there])

    def _do_retract(self) -> None:
        """Retract some rows by value, as they are shown now, and add some of them again."""
        gone = self.draw.sample(self.model.rows, min(len(self.model.rows), 3))
        if not gone:
            return
        counts = Counter(map(id, gone))
        diffs = pa.array([-1] * len(gone), pa.int64())
        self.table.apply(self.model.arrow(gone).append_column("_diff", diffs))
        self._replace(lambda row: id(row) in counts, ())

    def _do_restore(self) -> None:
        version = self.draw.choice(sorted(self.model.past) or [0])
        self.said.append(str(version))
        self.table.restore(version=version)
        self.model.rows = [dict(row) for row in self.model.past.get(version, [])]

    def _do_add(self) -> None:
        model = self.model
        model.last += 1
        column = Column(model.last, f"c{model.last}", self.draw.choice(sorted(_KINDS)))
        self.table.evolve().add_column(column.name, column.kind).commit()
        model.columns.append(column)

    def _do_drop(self) -> None:
        fixed = 2 if "order_by" in self.said[0] or "cluster_by" in self.said[0] else 1
        if len(self.model.columns) > fixed:
            column = self.draw.choice(self.model.columns[fixed:])
            self.table.evolve().drop_column(column.name).commit()
            self.model.columns.remove(column)

    def _do_rename(self) -> None:
        column = self.draw.choice(self.model.columns)
        new = f"r{self.draw.randrange(10**6)}"
        self.table.evolve().rename_column(column.name, new).commit()
        column.name = new

    def _do_widen(self) -> None:
        column = self.draw.choice(self.model.columns)
        if column.kind in _WIDER:
            column.kind = _WIDER[column.kind]
            self.table.evolve().widen_column(column.name, column.kind).commit()

    def _do_compact(self) -> None:
        self.table.compact(full=self.draw.random() < 0.5)

    def _do_vacuum(self) -> None:
        self.table.vacuum(grace_ms=0)

    def _do_clone(self) -> None:
        """Go on with a clone, and drop what it was made from."""
        old = self.table.name
        store = instar.open(self.location)
        self.table = self.table.clone(f"t{self.draw.randrange(10**9)}")
        store.drop_table(old)
        store.vacuum(grace_ms=0)
        self.model.past.clear()  # versions are counted anew

    def _do_reopen(self) -> None:
        self.table = instar.open(self.location).table(self.table.name)

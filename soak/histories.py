"""Random histories of a table, against a model in plain Python that shares no code with instar.

Rows are appended under the latest or an older schema, retracted and upserted, columns and members come, go,
get other names and wider types; after each step the table is read as it is now, as of an earlier time, under
an older schema, or under a condition, and every row has to be the model's.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

import instar
from instar.errors import ReaderFencedError

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable
    from pathlib import Path

    from instar import Table
    from soak.turns import Turn

__all__ = ["run_histories"]

_STEPS: Final = 25
_WIDER: Final = {"tinyint": "int", "int": "bigint", "float": "double"}
_ARROW: Final = {
    "tinyint": pa.int8(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
}


@dataclass(frozen=True)
class Part:
    """A column or a member: a number forever, a name, and a kind; `members` are those of a struct."""

    number: int
    name: str
    kind: str
    members: tuple[Part, ...] = ()

    @property
    def arrow(self) -> pa.DataType:
        """The type that its values have in Arrow."""
        match self.kind:
            case "struct":
                return pa.struct([(member.name, member.arrow) for member in self.members])
            case "array":
                return pa.list_(self.members[0].arrow)
            case "map":
                return pa.map_(pa.string(), self.members[0].arrow)
        return _ARROW[self.kind]

    @property
    def ddl(self) -> str:
        """The type, as a person writes it."""
        inner = [member.ddl for member in self.members]
        match self.kind:
            case "struct":
                pairs = zip(self.members, inner, strict=True)
                return f"struct<{', '.join(f'{member.name}: {ddl}' for member, ddl in pairs)}>"
            case "array":
                return f"array<{inner[0]}>"
            case "map":
                return f"map<string, {inner[0]}>"
        return self.kind


@dataclass
class Model:
    """What a table should be: every update, with values by the numbers of what they are in."""

    schemas: list[tuple[Part, ...]]
    updates: list[tuple[int, dict[int, Any], int]] = field(default_factory=list)
    last: int = 0

    @property
    def columns(self) -> tuple[Part, ...]:
        """The columns of now."""
        return self.schemas[-1]

    def rows(self, columns: tuple[Part, ...], as_of: int | None = None) -> Counter[tuple[Any, ...]]:
        """Return the rows as of a time, as these columns show them."""
        whole: Counter[tuple[Any, ...]] = Counter()
        sample: dict[tuple[Any, ...], dict[int, Any]] = {}
        for ts, values, diff in self.updates:
            if as_of is None or ts <= as_of:
                key = tuple(_shown(part, values.get(part.number)) for part in self.columns)
                whole[key] += diff
                sample[key] = values
        found: Counter[tuple[Any, ...]] = Counter()
        for key, count in whole.items():
            assert count >= 0, "the model itself retracts what is not there"
            if count:
                found[tuple(_shown(part, sample[key].get(part.number)) for part in columns)] += count
        return found

    def honours(self, columns: Iterable[Part]) -> bool:
        """Whether all that an old schema has is still there, and of the same type."""
        return _same(tuple(columns), self.columns)

    def number(self) -> int:
        """Return a number that nothing has had."""
        self.last += 1
        return self.last


def _same(old: tuple[Part, ...], new: tuple[Part, ...]) -> bool:
    known = {part.number: part for part in new}
    return all(
        part.number in known
        and part.kind == known[part.number].kind
        and _same(part.members, known[part.number].members)
        for part in old
    )


def _shown(part: Part, value: Any) -> Any:  # noqa: ANN401 -- any value
    """Return a value as something that can be compared and counted."""
    if value is None:
        return None
    match part.kind:
        case "struct":
            return ("struct", *(_shown(member, value.get(member.number)) for member in part.members))
        case "array":
            return tuple(_shown(part.members[0], each) for each in value)
        case "map":
            pairs = ((key, _shown(part.members[0], each)) for key, each in value.items())
            return ("map", *sorted(pairs, key=repr))
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    return float(value) + 0.0 if part.kind in {"float", "double"} else value


def _found(part: Part, value: Any) -> Any:  # noqa: ANN401 -- any value
    """Return what was read, as the model would show it."""
    if value is None:
        return None
    match part.kind:
        case "struct":
            return ("struct", *(_found(member, value[member.name]) for member in part.members))
        case "array":
            return tuple(_found(part.members[0], each) for each in value)
        case "map":
            return ("map", *sorted(((key, _found(part.members[0], each)) for key, each in value), key=repr))
    return _shown(part, value)


def _drawn(part: Part, draw: random.Random) -> Any:  # noqa: ANN401 -- any value
    """Draw a value: few different ones, so that many are equal."""
    if draw.random() < 0.2:
        return None
    match part.kind:
        case "struct":
            return {member.number: _drawn(member, draw) for member in part.members}
        case "array":
            return [_drawn(part.members[0], draw) for _ in range(draw.randint(0, 2))]
        case "map":
            keys = draw.sample(["a", "b", "é"], draw.randint(0, 2))
            return {key: _drawn(part.members[0], draw) for key in keys}
        case "string":
            return draw.choice(["", "a", "b", "é", "a\U0001f600", "x" * 70])
        case "float" | "double":
            return draw.choice([0.0, -0.0, 1.5, -2.0, math.nan, math.inf])
        case "tinyint":
            return draw.choice([-128, -1, 0, 1, 127])
    return draw.choice([-(2**31), -1, 0, 1, 2, 2**31 - 1])


def _given(part: Part, value: Any) -> Any:  # noqa: ANN401 -- any value
    """Return a value as Arrow takes it."""
    if value is None:
        return None
    match part.kind:
        case "struct":
            return {member.name: _given(member, value.get(member.number)) for member in part.members}
        case "array":
            return [_given(part.members[0], each) for each in value]
        case "map":
            return [(key, _given(part.members[0], each)) for key, each in value.items()]
    return float(value) if part.kind in {"float", "double"} else value


class _History:
    """One table and its model, and what may happen to them."""

    def __init__(self, place: str, turn: Turn) -> None:
        self.draw = turn.random
        self.place = place
        first = [
            Part(number, f"c{number}", kind) for number, kind in enumerate(("int", "string", "double"), 1)
        ]
        self.model = Model([tuple(first)], last=len(first))
        store = instar.open(place)
        columns = ", ".join(f"{part.name} {part.ddl}" for part in first)
        order = ["c2"] if self.draw.random() < 0.5 else []
        self.table: Table = store.create_table("t", columns, key=["c1"], order_by=order)
        self.times: list[int] = []

    def step(self) -> str:
        """Do something, look at what has become of it, and name it."""
        acts = [self.append] * 4 + [self.evolve] * 4 + [self.retract] * 3
        act = self.draw.choice([*acts, self.upsert, self.upsert, self.reopen, self.vacuum, self.compact])
        act()
        for look in (self.look_now, self.look_back, self.look_as_before, self.look_for):
            look()
        return act.__name__

    def append(self) -> None:
        """Add rows, sometimes under an older schema."""
        columns, schema = self.model.columns, None
        if self.draw.random() < 0.3:
            schema = self.draw.randrange(len(self.model.schemas))
            columns = self.model.schemas[schema]
            if not _kept(columns, self.model.columns):
                return  # values that nobody could read are refused, which others test
        rows = [self._row(columns) for _ in range(self.draw.randint(1, 6))]
        done = self.table.append(_table(columns, rows), schema=schema)
        self.model.updates += [(done.ts, row, 1) for row in rows]
        self.times.append(done.ts)

    def retract(self) -> None:
        """Take back rows that are there."""
        columns = self.model.columns
        counted: Counter[tuple[Any, ...]] = self.model.rows(columns)
        values = {
            tuple(_shown(p, row.get(p.number)) for p in columns): row for _, row, _ in self.model.updates
        }
        chosen = self.draw.sample(sorted(counted, key=repr), min(len(counted), self.draw.randint(1, 3)))
        if not chosen:
            return
        rows = [values[key] for key in chosen]
        diffs = [-self.draw.randint(1, counted[key]) for key in chosen]
        changes = _table(columns, rows).append_column("_diff", pa.array(diffs, pa.int64()))
        done = self.table.apply(changes)
        self.model.updates += [(done.ts, row, diff) for row, diff in zip(rows, diffs, strict=True)]
        self.times.append(done.ts)

    def upsert(self) -> None:
        """Put rows in the place of those with the same key."""
        columns = self.model.columns
        keys = self.draw.sample([-1, 0, 1, 2, None], 2)
        rows = [{**self._row(columns), 1: key} for key in keys]
        gone = []
        now = self.model.rows(columns)
        for _, row, _ in list(self.model.updates):
            key = tuple(_shown(part, row.get(part.number)) for part in columns)
            if row.get(1) in keys and now[key]:
                gone.append((row, -now.pop(key)))
        done = self.table.upsert(_table(columns, rows))
        self.model.updates += [(done.ts, row, diff) for row, diff in gone]
        self.model.updates += [(done.ts, row, 1) for row in rows]
        self.times.append(done.ts)

    def evolve(self) -> None:
        """Change the schema in one way, at the top or inside of a struct."""
        columns = list(self.model.columns)
        structs = [at for at, part in enumerate(columns) if part.kind == "struct"]
        inside = self.draw.choice(structs) if structs and self.draw.random() < 0.5 else None
        parts = list(columns[inside].members) if inside is not None else columns
        prefix = f"{columns[inside].name}." if inside is not None else ""
        update = self.table.evolve()
        match self.draw.choice(["add", "add", "drop", "rename", "widen"]):
            case "add":
                new = self._part(nested=inside is None)
                update.add_column(prefix + new.name, new.ddl)
                parts.append(new)
            case "drop":
                free = [part for part in parts if part.number != 1]
                if len(free) < 2:
                    return
                gone = self.draw.choice(free)
                update.drop_column(prefix + gone.name)
                parts.remove(gone)
            case "rename":
                at = self.draw.randrange(len(parts))
                name = f"r{self.model.number()}"
                update.rename_column(prefix + parts[at].name, name)
                parts[at] = replace(parts[at], name=name)
            case "widen":
                can = [at for at, part in enumerate(parts) if part.kind in _WIDER and part.number != 1]
                if not can:
                    return
                at = self.draw.choice(can)
                kind = _WIDER[parts[at].kind]
                update.widen_column(prefix + parts[at].name, kind)
                parts[at] = replace(parts[at], kind=kind)
        update.commit()
        if inside is not None:
            columns[inside] = replace(columns[inside], members=tuple(parts))
            parts = columns
        self.model.schemas.append(tuple(parts))

    def reopen(self) -> None:
        """Go on as another process would."""
        self.table = instar.open(self.place).table("t")

    def vacuum(self) -> None:
        """Remove what nothing needs."""
        self.table.vacuum(grace_ms=0)

    def compact(self) -> None:
        """Rewrite parts, all of them or those that are worth it."""
        self.table.compact(full=self.draw.random() < 0.5)

    def look_now(self) -> None:
        """Read all rows of now."""
        self._check(self.model.columns, self.table.snapshot().to_arrow(), None)

    def look_back(self) -> None:
        """Read as of an earlier time."""
        if self.times:
            as_of = self.draw.choice(self.times)
            self._check(self.model.columns, self.table.snapshot(as_of=as_of).to_arrow(), as_of)

    def look_as_before(self) -> None:
        """Read under an older schema, some of its columns; fenced only if they changed."""
        schema = self.draw.randrange(len(self.model.schemas))
        columns = self.model.schemas[schema]
        chosen = tuple(self.draw.sample(columns, self.draw.randint(1, len(columns))))
        try:
            found = self.table.snapshot(schema=schema, columns=[part.name for part in chosen]).to_arrow()
        except ReaderFencedError:
            assert not self.model.honours(chosen), f"fenced, though {chosen} are as they were"
            return
        assert self.model.honours(chosen), f"not fenced, though {chosen} changed"
        self._check(chosen, found, None)

    def look_for(self) -> None:
        """Read the rows that a condition is true for."""
        value = self.draw.choice([-1, 0, 1, 2])
        name = next(part.name for part in self.model.columns if part.number == 1)
        found = self.table.snapshot().to_arrow(where=f"{name} > {value}")
        at = next(at for at, part in enumerate(self.model.columns) if part.number == 1)
        rows = self.model.rows(self.model.columns)
        wanted = Counter({row: n for row, n in rows.items() if row[at] is not None and row[at] > value})
        assert _bag(self.model.columns, found) == wanted

    def _check(self, columns: tuple[Part, ...], found: pa.Table, as_of: int | None) -> None:
        rows, wanted = _bag(columns, found), self.model.rows(columns, as_of)
        assert rows == wanted, f"as of {as_of}: {rows - wanted} too many, {wanted - rows} missing"

    def _row(self, columns: tuple[Part, ...]) -> dict[int, Any]:
        return {part.number: _drawn(part, self.draw) for part in columns}

    def _part(self, *, nested: bool) -> Part:
        kinds = [*_ARROW, *(("struct", "array", "map") if nested else ())]
        number, kind = self.model.number(), self.draw.choice(kinds)
        inner = [Part(self.model.number(), f"m{at}", self.draw.choice(list(_ARROW))) for at in range(2)]
        members = {"struct": tuple(inner), "array": tuple(inner[:1]), "map": tuple(inner[:1])}
        return Part(number, f"c{number}", kind, members.get(kind, ()))


def _kept(old: tuple[Part, ...], new: tuple[Part, ...]) -> bool:
    known = {part.number: part for part in new}
    return all(part.number in known and _kept(part.members, known[part.number].members) for part in old)


def _table(columns: tuple[Part, ...], rows: list[dict[int, Any]]) -> pa.Table:
    return pa.table(
        {
            part.name: pa.array([_given(part, row.get(part.number)) for row in rows], part.arrow)
            for part in columns
        }
    )


def _bag(columns: tuple[Part, ...], found: pa.Table) -> Counter[tuple[Any, ...]]:
    assert found.column_names == [part.name for part in columns]
    return Counter(tuple(_found(part, row[part.name]) for part in columns) for row in found.to_pylist())


def run_histories(place: Path, turns: Iterable[Turn]) -> Counter[str]:
    """Live through histories, and return how often each thing happened."""
    done: Counter[str] = Counter()
    for at, turn in enumerate(turns):
        history = _History(
            str(place / f"lake{at}") if at % 4 == 0 else f"memory://{place.name}-{turn.name}", turn
        )
        for step in range(_STEPS):
            try:
                done[history.step()] += 1
            except AssertionError as error:
                raise AssertionError(f"turn {turn.name}, step {step}: {error}") from error
    return done

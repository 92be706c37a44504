"""Answers from metadata are those of the rows, or none, whatever was retracted of the parts."""

from __future__ import annotations

import math
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from instar.table.read.answers import (
    Extreme,
    Order,
    Question,
    Unknown,
    answer_count,
    answer_extreme,
    answer_groups,
    first_parts,
    top_parts,
)
from instar.table.read.reading import read_snapshot
from instar.table.read.snapshot import plan_snapshot, resolve_reader

if TYPE_CHECKING:
    from instar import Store, Table
    from instar.table.log.part_set import PartSet
    from instar.table.read.snapshot import SnapshotPlan

TYPES = {"k": pa.int32(), "g": pa.int32(), "x": pa.float64(), "t": pa.string()}
NAN = math.nan


def value_of(name: str, luck: Random) -> Any:  # noqa: ANN401 -- a value of any type
    """Return a value of a column, sometimes an awkward one."""
    if luck.random() < 0.15:
        return None
    number = luck.randrange(-9, 9)
    return {"k": number, "x": luck.choice([NAN, float(number), number / 2]), "t": f"t{number}"}[name]


def changed(store: Store, seed: int) -> Table:
    """Return a table of parts that are often alike, some rows of which are retracted by position."""
    luck = Random(seed)
    table = store.create_table("t", "k int, g int, x double, t string, at int")
    for part in range(luck.randrange(1, 7)):
        count = luck.randrange(1, 5)
        rows: dict[str, pa.Array] = {"g": pa.array([part % 3] * count, TYPES["g"])}
        for name in ("k", "x", "t"):
            one = value_of(name, luck)
            values = [one] * count if luck.random() < 0.3 else [value_of(name, luck) for _ in range(count)]
            rows[name] = pa.array(values, TYPES[name])
        table.append(pa.table({**rows, "at": pa.array(range(count), pa.int32())}))
        if luck.random() < 0.4:
            table.delete(f"at = {luck.randrange(0, 4)} and g = {luck.randrange(0, 3)}")
    return table


def key(value: Any) -> tuple[bool, Any]:  # noqa: ANN401 -- a value of any type
    """Return what values are sorted by: NaN is the greatest."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return is_nan, 0 if is_nan else value


def expected(rows: list[dict[str, Any]], question: Question) -> Any:  # noqa: ANN401 -- a value of any type
    """Return the answer that rows have."""
    if question.field is None:
        return len(rows)
    values = [row[question.field.name] for row in rows if row[question.field.name] is not None]
    if question.extreme is None:
        return len(values)
    if not values:
        return None
    return (min if question.extreme is Extreme.MIN else max)(values, key=key)


def planned(table: Table) -> SnapshotPlan:
    """Return the parts of a table as of now."""
    state = table.state
    return plan_snapshot(table._services.chunks, state, resolve_reader(state, None, None), None)


SEEDS = range(25)


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_are_those_of_the_rows(store: Store, seed: int) -> None:
    """Counts, ends and groups are known exactly or not at all, and counts of rows always are."""
    table = changed(store, seed)
    plan, chunks = planned(table), table._services.chunks
    rows = table.snapshot().to_arrow().to_pylist()
    assert plan.scan.row_count == len(rows)
    fields = {field.name: field for field in table.schema.fields}
    for name in TYPES:
        field = fields[name]
        found = answer_count(chunks, plan.state, plan.scan, field)
        assert found in (Unknown.UNKNOWN, expected(rows, Question(field))), name
        for extreme in Extreme:
            end = answer_extreme(chunks, plan.state, plan.scan, field, extreme)
            assert end is Unknown.UNKNOWN or str(end) == str(expected(rows, Question(field, extreme)))
        if not plan.scan.partly.any():
            assert found is not Unknown.UNKNOWN
    questions = [Question(), *(Question(fields["k"], extreme) for extreme in (None, *Extreme))]
    for asked in (questions[:1], questions[:2], questions):
        groups = answer_groups(chunks, plan.state, plan.scan, [fields["g"]], asked)
        if isinstance(groups, Unknown):
            assert len(asked) > 1
            continue
        own = {group: [row for row in rows if row["g"] == group] for group in {row["g"] for row in rows}}
        wanted = [(group, *(expected(few, question) for question in asked)) for group, few in own.items()]
        assert sorted(groups) == sorted(wanted)


@pytest.mark.parametrize("seed", SEEDS)
def test_parts_of_the_first_rows_have_them(store: Store, seed: int) -> None:
    """The first rows, in any order or in none, are in the parts that metadata names."""
    table = changed(store, seed)
    plan, chunks, luck = planned(table), table._services.chunks, Random(seed)
    count = luck.randrange(1, 5)
    assert first_parts(plan.scan, count).row_count >= min(count, plan.scan.row_count)
    field = next(field for field in table.schema.fields if field.name == "k")
    order = Order(luck.random() < 0.5, luck.random() < 0.5)
    found = top_parts(chunks, plan.state, plan.scan, field, order, count)
    whole = sorted_values(table, plan.scan, order)
    assert sorted_values(table, found, order)[:count] == whole[:count]


def sorted_values(table: Table, parts: PartSet, order: Order) -> list[Any]:
    """Return the values of a column in some parts, in order."""
    plan = planned(table)._replace(scan=parts)
    batches = read_snapshot(table._services, plan)
    found = [row["k"] for batch in batches for row in batch.to_pylist()]
    rest = sorted((value for value in found if value is not None), reverse=not order.ascending)
    nulls = [None] * (len(found) - len(rest))
    return nulls + rest if order.nulls_first else rest + nulls

"""Random star and snowflake joins: what pruning leaves out would never have been joined."""

from __future__ import annotations

import datetime as dt
import math
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from itertools import product
from random import Random
from threading import active_count
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import instar
from instar.spark.native.callbacks import MOST_IDLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from instar import Store

KINDS = {
    "i": ("int", pa.int32()),
    "l": ("bigint", pa.int64()),
    "x": ("double", pa.float64()),
    "f": ("float", pa.float32()),
    "t": ("string", pa.string()),
    "d": ("date", pa.date32()),
    "m": ("decimal(12,2)", pa.decimal128(12, 2)),
}
ODD_PARTS = 3
"""How many parts of a table have values that go wrong; these have wide bounds."""
NUMBERS = ("i", "l", "x", "f", "m")
JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
SETTINGS = {
    "spark.sql.adaptive.enabled": ("true", "false"),
    "spark.sql.autoBroadcastJoinThreshold": ("10485760", "-1"),
    "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": ("false",),
    "spark.sql.optimizer.dynamicPartitionPruning.fallbackFilterRatio": ("0.5",),
}
WHERE = ("name = 'n1'", "name <> 'n2' AND i < 30", "name > 'zzz'", "i IN (3, 40, 41)", "x > 5 OR name = 'n0'")


def value(kind: str, number: int, luck: Random, *, odd: bool) -> Any:  # noqa: ANN401 -- any value
    """Return a number in one of the types, or null; if odd, also NaN, zeros with a sign, and capitals."""
    if luck.random() < 0.1:
        return None
    if kind in "xf":
        return luck.choice([math.nan, -0.0, 0.0]) if odd and luck.random() < 0.15 else float(number)
    if kind == "t":
        return f"{luck.choice('kkK' if odd else 'k')}{number:03}"
    if kind == "d":
        return dt.date(2026, 1, 1) + dt.timedelta(number)
    return Decimal(number) if kind == "m" else number


def rows(luck: Random, low: int, high: int, count: int, *, odd: bool) -> pa.Table:
    """Return rows whose keys are around some numbers, and a name to filter by."""
    numbers = [luck.randrange(low, high) for _ in range(count)]
    columns = {
        kind: pa.array([value(kind, number, luck, odd=odd) for number in numbers]).cast(type_)
        for kind, (_, type_) in KINDS.items()
    }
    return pa.table({**columns, "name": [f"n{luck.randrange(4)}" for _ in numbers]})


@pytest.fixture
def tables(store: Store, spark: SparkSession) -> Iterator[SparkSession]:
    """Make views of a fact table and two dimensions, once planned and once over files."""
    luck = Random(19)
    before = spark.conf.get("instar.planner", "auto")
    ddl = ", ".join(f"{kind} {type_}" for kind, (type_, _) in KINDS.items())
    for name, parts, count in (("fact", 8, 60), ("dim", 2, 12), ("far", 1, 6)):
        table = store.create_table(name, f"{ddl}, name string")
        for part in range(parts):
            low = part * 100 // parts
            table.append(rows(luck, low, low + 20, count, odd=part < ODD_PARTS))
        for way, view in (("auto", "planned"), ("files", "plain")):
            spark.conf.set("instar.planner", way)
            table.read(spark).createOrReplaceTempView(f"{view}_{name}")
    yield spark
    spark.conf.set("instar.planner", str(before))
    for name in SETTINGS:
        spark.conf.unset(name)


def random_query(luck: Random) -> str:
    """Return a query over views whose names begin with {0}."""
    join = luck.choice(JOINS)
    left, right = luck.choice([("t", "t"), ("d", "d"), (luck.choice(NUMBERS), luck.choice(NUMBERS))])
    collated = " COLLATE UTF8_LCASE" if left == "t" and luck.random() < 0.5 else ""
    shown = "fact.i, fact.t" if "SEMI" in join or "ANTI" in join else "fact.i, fact.t, dim.i, dim.name"
    dimension = f"(SELECT * FROM {{0}}_dim WHERE {luck.choice(WHERE)})"
    if luck.random() < 0.4:
        far = f"{{0}}_far far ON d.{left} = far.{left} AND far.i < 90"
        dimension = f"(SELECT d.* FROM {dimension} d JOIN {far})"
    source, other = ("{0}_fact fact", f"{dimension} dim")
    query = f"SELECT {shown} FROM {source} {join} {other} ON fact.{left}{collated} = dim.{right}{collated}"
    if luck.random() < 0.3:
        query += " WHERE fact.i < (SELECT max(i) FROM {0}_far)"
    return query


def test_pruning_changes_no_row(tables: SparkSession) -> None:
    """Every kind of join gives the same rows, with keys of any types, nulls, NaN, zeros and duplicates."""
    luck, pruned = Random(2026), 0
    for _ in range(15):
        for name, values in SETTINGS.items():
            tables.conf.set(name, luck.choice(values))
        query = random_query(luck)
        frame = tables.sql(query.format("planned"))
        found = sorted(map(str, frame.collect()))
        assert found == sorted(map(str, tables.sql(query.format("plain")).collect())), query
        pruned += sum(own.excludes for report in instar.scan_reports(frame) for own in report.joins)
    assert pruned > 0


def meets(key: Any, values: list[Any]) -> bool:  # noqa: ANN401 -- any value
    """Whether a key may be among the values of a part, by what bounds say of them."""
    known = [value for value in values if value is not None]
    numbers = [value for value in known if value == value]  # noqa: PLR0124 -- not NaN
    if key != key:  # noqa: PLR0124
        return len(numbers) < len(known)
    return bool(numbers) and min(numbers) <= key <= max(numbers)


@pytest.mark.parametrize(
    ("left", "right"), [("i", "i"), ("l", "i"), ("i", "x"), ("x", "x"), ("m", "m"), ("d", "d"), ("t", "t")]
)
def test_parts_whose_bounds_meet_the_keys_are_read(tables: SparkSession, left: str, right: str) -> None:
    """Those and no others, with keys of the same type or another; in a semi join too."""
    for name, values in SETTINGS.items():
        tables.conf.set(name, values[0])
    parts: dict[str, list[Any]] = {}
    for file, value in tables.sql(f"SELECT input_file_name(), {left} FROM plain_fact").collect():
        parts.setdefault(file, []).append(value)
    pruned = 0
    for join, where in product(("JOIN", "LEFT SEMI JOIN"), WHERE):
        dimension = f"SELECT {right} AS key FROM planned_dim WHERE {where}"
        frame = tables.sql(f"SELECT fact.i FROM planned_fact fact {join} ({dimension}) ON fact.{left} = key")
        frame.collect()
        keys = [key for (key,) in tables.sql(dimension).collect() if key is not None]
        met = sum(any(meets(key, values) for key in keys) for values in parts.values())
        for report in instar.scan_reports(frame):
            if report.table == "fact" and report.joins:
                assert report.read == met, (join, where)
                pruned += len(parts) - met
    assert pruned > 0


@pytest.mark.parametrize("way", ["planned", "plain"])
def test_threads_stay_few(tables: SparkSession, way: str) -> None:
    """Fifty joins at once all end, and leave no more threads behind than may wait for calls."""
    joined = f"{way}_fact fact JOIN {way}_dim dim ON fact.i = dim.i"
    query = f"SELECT count(fact.x) FROM {joined} WHERE dim.name = 'n{{}}'"
    expected = [tables.sql(query.format(number)).collect()[0][0] for number in range(3)]
    before = active_count()
    with ThreadPoolExecutor(50) as pool:
        found = list(pool.map(lambda at: tables.sql(query.format(at % 3)).collect()[0][0], range(50)))
    assert found == [expected[at % 3] for at in range(50)]
    for _ in range(600):  # connections that wait are closed by and by
        if active_count() <= before + 3 * MOST_IDLE:
            break
        time.sleep(0.1)
    assert active_count() <= before + 3 * MOST_IDLE

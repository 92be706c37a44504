"""Every widening, read by Spark with filters pushed down and without, vectorised and row by row."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import instar
from instar.schema import arrow_schema, parse_schema_ddl
from tests.spark.parts.test_files import LITERALS, PARTS, answers, truth

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession

    from instar import Store

    Settings = Callable[[dict[str, str]], AbstractContextManager[None]]

INTEGERS = ("tinyint", "smallint", "int", "bigint")
PAIRS = [
    *((old, new) for at, old in enumerate(INTEGERS) for new in INTEGERS[at + 1 :]),
    *((old, "double") for old in (*INTEGERS[:3], "float")),
    *(("decimal(5,2)", new) for new in ("decimal(6,2)", "decimal(12,4)", "decimal(30,6)")),
    ("decimal(18,0)", "decimal(38,10)"),
]
NARROW = (-100, 0, 7, 100)
"""Values that every narrow type has."""
WIDE = {
    "smallint": 1000,
    "int": 100_000,
    "bigint": 2**40,
    "double": 2.0**60,
    "decimal(6,2)": 5000,
    "decimal(12,4)": 100_000,
    "decimal(30,6)": 10**12,
    "decimal(38,10)": 10**20,
}
"""A value that only the wide type has."""
QUICK = {"spark.sql.codegen.wholeStage": "false"}


@pytest.mark.parametrize(("pushdown", "vectorized"), list(product(("true", "false"), repeat=2)))
def test_every_widening_reads_as_the_wider_type(
    spark: SparkSession, store: Store, with_settings: Settings, pushdown: str, vectorized: str
) -> None:
    """Old and new parts give one column; filters find what is in either, also beyond the narrow type."""
    names = [f"c{at}" for at in range(len(PAIRS))]
    narrow = ", ".join(f"{name} {old}" for name, (old, _) in zip(names, PAIRS, strict=True))
    table = store.create_table("t", f"id int, {narrow}, {nested(0)}")
    old_types = {name: old for name, (old, _) in zip(names, PAIRS, strict=True)}
    new_types = {name: new for name, (_, new) in zip(names, PAIRS, strict=True)}
    table.append(rows(old_types, list(enumerate(NARROW)), 0))
    update = table.evolve()
    for name, new in new_types.items():
        update.widen_column(name, new)
    update.widen_column("s.x", "bigint").widen_column("l.element", "double").widen_column(
        "m.value.y", "double"
    )
    update.commit()
    table.append(rows(new_types, [(len(NARROW), None)], 1))
    frame = table.read(spark)
    queries, wanted = {}, {}
    for name, new in new_types.items():
        values = [*NARROW, WIDE[new]]
        for op, literal in (("=", 7), (">", 100), ("<", 0), ("<=", WIDE[new]), ("=", WIDE[new])):
            question = f"{name} {op} {literal}"
            queries[question] = frame.where(f"{name} {op} cast({literal:.0f} as {new})").select("id")
            wanted[question] = [id_ for id_, value in enumerate(values) if truth(value, op, literal)]
    for condition, ids in (("s.x > 3000000000", [4]), ("s.x = 7", [2]), ("l[0] = 7.0D", [2])):
        queries[condition], wanted[condition] = frame.where(condition).select("id"), ids
    settings = {
        "filterPushdown": pushdown,
        "enableVectorizedReader": vectorized,
        "fieldId.read.enabled": "true",
    }
    with with_settings({**QUICK, **{f"spark.sql.parquet.{name}": value for name, value in settings.items()}}):
        assert answers(queries) == wanted
        assert sorted_rows(frame.toArrow()) == sorted_rows(table.snapshot().to_arrow())


@pytest.mark.parametrize("as_integer", [True, False], ids=["integers", "byte arrays"])
def test_decimals_are_found_beyond_the_digits_of_old_parts(
    spark: SparkSession, store: Store, monkeypatch: pytest.MonkeyPatch, *, as_integer: bool
) -> None:
    """A literal that an old part could not hold is compared, not cut, however the part stores decimals."""
    written = partial(_write_decimals, pq.ParquetWriter, as_integer)
    monkeypatch.setattr("instar.parts.write.pq.ParquetWriter", written)
    table = store.create_table("t", "id int, a decimal(9,2), b decimal(18,2), c decimal(20,2)")
    values = [Decimal("-3.25"), Decimal("0.01"), Decimal("2.50")]
    old = pa.table({"id": pa.array(range(3), pa.int32()), **dict.fromkeys("abc", values)})
    table.append(old)
    update = table.evolve().widen_column("a", "decimal(15,2)")
    update.widen_column("b", "decimal(30,2)").widen_column("c", "decimal(30,2)").commit()
    instar.register(spark, store)
    limits = {"a": "9999999999999.99", "b": "1844674407370955161600.01", "c": "1844674407370955161600.01"}
    queries, wanted = {}, {}
    for name, frame in {"snapshot": table.read(spark), "view": spark.table("t")}.items():
        for (column, limit), sign, op in product(limits.items(), ("", "-"), ("<", ">=", "=")):
            question = f"{column} {op} {sign}{limit}BD"
            queries[f"{name}: {question}"] = frame.where(question).select("id")
            all_of_them = (op == "<") == (sign == "")
            wanted[f"{name}: {question}"] = [0, 1, 2] if op != "=" and all_of_them else []
    assert answers(queries) == wanted
    stored = table.snapshot().to_arrow()
    assert stored.column("b").to_pylist() == values
    assert stored.schema.field("b").type == pa.decimal128(30, 2)


def _write_decimals(
    writer: type[pq.ParquetWriter], as_integer: bool, *args: object, **options: object
) -> pq.ParquetWriter:
    """Write as always, but for how decimals are stored."""
    return writer(*args, **{**options, "store_decimal_as_integer": as_integer})


def nested(wide: int) -> str:
    """Return columns that have something to widen inside."""
    x, element, y = (("int", "float", "int"), ("bigint", "double", "double"))[wide]
    return f"s struct<x: {x}, z: string>, l array<{element}>, m map<string, struct<y: {y}>>"


def rows(types: dict[str, str], ids: list[tuple[int, int | None]], wide: int) -> pa.Table:
    """Return rows with a value in every column: a given one, or one that only the wide type has."""
    ddl = ", ".join(f"{name} {type_}" for name, type_ in types.items())
    schema = arrow_schema(parse_schema_ddl(f"id int, {ddl}, {nested(wide)}"))
    found = []
    for id_, value in ids:
        number: Any = 2**40 if value is None else value
        row: dict[str, Any] = {
            "id": id_,
            "s": {"x": number, "z": "z"},
            "l": [number],
            "m": [("a", {"y": number})],
        }
        found.append(row | {name: WIDE[type_] if value is None else value for name, type_ in types.items()})
    return pa.Table.from_pylist(found, schema=schema)


def sorted_rows(table: pa.Table) -> list[str]:
    """Return rows so that they can be compared."""
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("retracted", [False, True], ids=["scanned", "consolidated"])
def test_filters_on_floats_lose_no_row(spark: SparkSession, store: Store, *, retracted: bool) -> None:
    """NaN is greatest and equals itself, and zeros are equal, in old, widened and nested columns."""
    table = store.create_table("t", "id int, d double, w float, s struct<d: double>")
    layout = table.snapshot().to_arrow().schema
    values = [value for part in PARTS.values() for value in part]
    done = 0
    for part in PARTS.values():
        found = [
            {"id": done + at, "d": value, "w": value, "s": {"d": value}} for at, value in enumerate(part)
        ]
        table.append(pa.Table.from_pylist(found, schema=layout))
        done += len(part)
    table.evolve().widen_column("w", "double").commit()
    if retracted:
        extra = pa.Table.from_pylist([{"id": -1, "d": value} for value in (0.0, None)], schema=layout)
        table.append(extra)
        table.apply(extra.append_column("_diff", pa.array([-1, -1])))
    frame = table.read(spark)
    queries: dict[str, DataFrame] = {}
    wanted = {}
    for column, op, text in product(("d", "w", "s.d"), (">", "<=", "="), LITERALS):
        question = f"{column} {op} {text}"
        queries[question] = frame.where(f"{column} {op} double('{text}')").select("id")
        wanted[question] = [at for at, value in enumerate(values) if truth(value, op, LITERALS[text])]
    assert answers(queries) == wanted

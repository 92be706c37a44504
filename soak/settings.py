"""Settings of a session: whatever they are, a table says the same, or the session is refused.

Spark's own registry says which settings there are, so that those of a new version are tried too.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException

from instar.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from instar import Store, Table
    from soak.turns import Turn

__all__ = [
    "ROWS",
    "apply_settings",
    "as_bag",
    "awkward_table",
    "check_table",
    "other_values",
    "retract_one",
    "run_settings",
]

COLUMNS: Final = (
    "k int not null, f double, d date, at timestamp, local timestamp_ntz, n decimal(30,10), b binary, "
    "s struct<x: int, f1: string>, l array<struct<y: double>>, m map<string, date>, young struct<a: int>"
)
OLD: Final = dt.datetime(1500, 2, 28, 23, 59, 59, 999999)  # noqa: DTZ001 -- local times have no zone
ROWS: Final[list[dict[str, Any]]] = [
    {"k": 1, "f": math.nan, "d": dt.date(1500, 1, 1), "at": OLD.replace(tzinfo=dt.UTC), "local": OLD},
    {"k": 2, "f": -0.0, "d": dt.date(1, 1, 1), "s": None, "l": None, "m": None, "n": Decimal("1e-10")},
    {"k": 3, "f": 0.0, "s": {"x": None, "f1": None}, "l": [], "m": [], "b": b""},
    {"k": 4, "f": None, "s": {"x": 1, "f1": "z"}, "l": [None, {"y": math.nan}], "b": b"\xff\x00"},
    {"k": 5, "l": [{"y": -0.0}], "m": [("a", dt.date(1582, 10, 4)), ("b", None)], "n": Decimal(10) ** 19},
    {"k": 6, "young": {"a": 7}},
]

_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "spark.sql.parquet.datetimeRebaseModeInRead": ("LEGACY", "CORRECTED"),
    "spark.sql.parquet.int96RebaseModeInRead": ("LEGACY", "CORRECTED"),
    "spark.sql.parquet.outputTimestampType": ("INT96", "TIMESTAMP_MILLIS"),
    "spark.sql.parquet.columnarReaderBatchSize": ("1", "100000"),
    "spark.sql.parquet.pushdown.inFilterThreshold": ("0", "1000"),
    "spark.sql.parquet.compression.codec": ("gzip",),
    "spark.sql.files.maxPartitionBytes": ("100", "1000000000"),
    "spark.sql.files.openCostInBytes": ("0",),
    "spark.sql.files.minPartitionNum": ("7",),
    "spark.sql.files.maxPartitionNum": ("1",),
    "spark.sql.files.ignoredPathSegmentRegex": (".*",),
    "spark.sql.codegen.maxFields": ("2",),
    "spark.sql.codegen.factoryMode": ("NO_CODEGEN",),
    "spark.sql.session.timeZone": ("America/Los_Angeles", "Asia/Kathmandu"),
    "spark.sql.timestampType": ("TIMESTAMP_NTZ",),
    "spark.sql.mapKeyDedupPolicy": ("LAST_WIN",),
    "spark.sql.optimizer.nestedPredicatePushdown.supportedFileSources": ("",),
    "spark.sql.sources.useV1SourceList": ("",),
    "spark.sql.legacy.timeParserPolicy": ("LEGACY",),
    "spark.sql.autoBroadcastJoinThreshold": ("-1",),
    "spark.sql.shuffle.partitions": ("1", "5"),
}
"""Values of settings that are no flags."""
_CONDITIONS: Final = (None, "k >= 2 and (d is null or d < date'1600-01-01')", "s.x is null and k < 6")
_READING: Final = ("arquet", ".files.", "ested", "columnVector", "ectoriz", "ebase", "NTZ", "anos")
"""What the name of a setting has that may matter to whoever reads files."""


def other_values(spark: SparkSession, *, reading: bool) -> dict[str, tuple[str, ...]]:
    """Return values that are not the default ones, of all settings or of those that matter for reading."""
    jvm: Any = spark._jvm
    registry = getattr(jvm.org.apache.spark.sql.internal, "SQLConf$")
    entries = getattr(registry, "MODULE$").getConfigEntries().toArray()
    found = dict(_CHOICES)
    for entry in entries:
        name, default = entry.key(), entry.defaultValueString()
        if default in {"true", "false"} and spark.conf.isModifiable(name):
            found[name] = ("false" if default == "true" else "true",)
    if not reading:
        return found
    return {name: values for name, values in found.items() if any(word in name for word in _READING)}


@contextmanager
def apply_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a session for a while."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


def awkward_table(store: Store, name: str = "t") -> Table:
    """Return a table with rows of every awkward kind, and a struct of which old parts have no member."""
    table = store.create_table(name, COLUMNS)
    layout = table.snapshot().to_arrow().schema
    table.append(pa.Table.from_pylist(ROWS[:3], schema=layout))
    table.append(pa.Table.from_pylist(ROWS[3:], schema=layout))
    wider = table.evolve().widen_column("k", "bigint").widen_column("s.x", "double").add_column("z", "int")
    wider.add_column("young.b", "int").drop_column("young.a").commit()
    return table


def retract_one(table: Table) -> None:
    """Take a row back and add it again, so that rows of its part have to be added up."""
    row = table.snapshot().to_arrow(where="k = 1")
    table.apply(row.append_column("_diff", pa.array([-1])))
    table.append(row)


def as_bag(table: pa.Table, *, signs: bool) -> list[str]:
    """Return rows as text; only a row that was not added up keeps the sign of a zero."""
    instants = [
        column.cast(pa.timestamp("us", "UTC"))
        if pa.types.is_timestamp(column.type) and column.type.tz
        else column
        for column in table.columns
    ]
    rows = pa.table(instants, names=table.column_names).to_pylist()
    return sorted(repr(row) if signs else repr(row).replace("-0.0", "0.0") for row in rows)


def check_table(
    spark: SparkSession,
    table: Table,
    settings: Mapping[str, str],
    *,
    signs: bool,
    conditions: Iterable[str | None] = _CONDITIONS,
) -> bool:
    """Check that a table says the same in a session with these settings; False if it refuses them."""
    snapshot = table.snapshot()
    for where in conditions:
        expected = as_bag(snapshot.to_arrow(where=where), signs=signs)
        with apply_settings(spark, settings):
            frame = snapshot.to_spark(spark)
            try:
                found = (frame if where is None else frame.where(where)).toArrow()
            except (UsageError, PySparkException):
                return False
        if as_bag(found, signs=signs) != expected:
            raise AssertionError(f"with {dict(settings)}, `{where}` reads {found.to_pylist()} for {expected}")
    return True


def run_settings(spark: SparkSession, store: Store, turns: Iterable[Turn]) -> Counter[str]:
    """Read under settings that are drawn, one to four at once, and return how many were read or refused."""
    plain, added = awkward_table(store, "plain"), awkward_table(store, "added")
    retract_one(added)
    every = other_values(spark, reading=False)
    reading = other_values(spark, reading=True)
    done: Counter[str] = Counter()
    for turn in turns:
        pool = turn.random.choice((every, reading))
        names = turn.random.sample(sorted(pool), turn.random.randint(1, 4))
        settings = {name: turn.random.choice(pool[name]) for name in names}
        table = turn.random.choice((plain, added))
        read = check_table(spark, table, settings, signs=table is plain)
        done["read" if read else f"refused with {settings}"] += 1
    return done

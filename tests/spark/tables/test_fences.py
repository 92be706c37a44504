"""Every rule about fences on Spark, while a second process evolves the tables."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest

import instar
from instar.errors import ReaderFencedError
from tests.unit.api.test_rows_fences import COLUMNS, ELSEWHERE, ROW, RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession

    from instar import Snapshot, Table
    from instar.api import Listen

LATE = {"id": 2, "s": {"x": 2, "ex": 2}}
"""What the second process appends, whatever its columns are called."""
CHANGES_WHAT_IS_READ = {"drop_column", "make_nullable", "widen_column"}


class Watched(NamedTuple):
    """A table, and what was opened before it evolved: under all columns, and under those of the rule."""

    table: Table
    columns: list[str] | None
    fence: tuple[str, str] | None
    held: Snapshot
    frame: DataFrame
    following: DataFrame
    listen: Listen


@pytest.fixture(scope="module")
def watched(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Watched]:
    """Return a table for each rule: opened here, then evolved by another process."""
    found, orders = {}, []
    for rule, (steps, columns, fence) in RULES.items():
        location = tmp_path_factory.mktemp("lake")
        table = instar.open(location).create_table("t", COLUMNS)
        table.append(pa.Table.from_pylist([ROW], schema=table.snapshot().to_arrow().schema))
        held = table.snapshot(columns=columns)
        listen = table.listen(columns=columns, timeout=0)
        frames = held.to_spark(spark), table.follow(spark)
        found[rule] = Watched(table, columns, fence, held, *frames, listen)
        orders.append(json.dumps([str(location), steps, LATE]))
    command = [sys.executable, "-c", ELSEWHERE]
    done = subprocess.run(command, input="\n".join(orders), capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"] * len(orders)
    return found


def rows(frames: Iterable[tuple[str, DataFrame]]) -> Counter[tuple[str, str]]:
    """Return the rows of many frames of different schemas as JSON, by the name of each, in one query."""

    def told(name: str, frame: DataFrame) -> DataFrame:
        return frame.selectExpr(f"'{name}' as name", "to_json(struct(*)) as row")

    together = reduce(lambda left, right: left.unionAll(right), (told(*item) for item in frames))
    return Counter((row.name, row.row) for row in together.collect())


def as_json(row: dict[str, Any], columns: list[str] | None) -> str:
    """Return a row as Spark writes it: without spaces, and without nulls."""
    chosen = row if columns is None else {name: row[name] for name in columns if name in row}
    return json.dumps(chosen, separators=(",", ":"))


def check_fence(read: Callable[[], object], fence: tuple[str, str]) -> None:
    """Check that a reader is stopped by the error itself, which names the column and the reason."""
    with pytest.raises(ReaderFencedError) as caught:
        read()
    assert type(caught.value) is ReaderFencedError
    path, words = fence
    assert path in {reason.path for reason in caught.value.fences}  # type: ignore[attr-defined]
    assert words in str(caught.value)
    assert "open the table at schema 1" in str(caught.value)


def test_what_was_opened_before_stays_as_it_was(watched: dict[str, Watched]) -> None:
    """A snapshot shows the same rows under the same names, whatever happens to its table."""
    expected = Counter((rule, as_json(ROW, it.columns)) for rule, it in watched.items())
    assert rows((rule, it.frame) for rule, it in watched.items()) == expected


def test_each_rule_holds_for_snapshots(spark: SparkSession, watched: dict[str, Watched]) -> None:
    """A fenced reader gets the error before there is a frame; every other one sees old and new rows."""
    going_on, expected = {}, Counter[tuple[str, str]]()
    for rule, it in watched.items():
        if it.fence is not None:
            check_fence(lambda it=it: it.table.snapshot(schema=0, columns=it.columns), it.fence)  # type: ignore[misc]
            continue
        going_on[rule] = it.table.snapshot(schema=0, columns=it.columns).to_spark(spark)
        assert going_on[rule].schema == it.frame.schema
        late = {"id": 2, "s": {"x": 2}}
        expected.update((rule, as_json(row, it.columns)) for row in (ROW, late))
    assert rows(going_on.items()) == expected


def test_each_rule_holds_for_frames_that_follow(watched: dict[str, Watched]) -> None:
    """Whoever reads all columns is fenced by a change to any, in the call that runs the query."""
    going_on = {}
    for rule, (steps, _, fence) in RULES.items():
        it = watched[rule]
        if any(step[0] in CHANGES_WHAT_IS_READ for step in steps):
            words = fence or ("", "is fenced")
            with pytest.raises(ReaderFencedError, match=words[1]):
                it.following.collect()
        else:
            going_on[rule] = it.following
    assert len(going_on) == 5
    late = {"id": 2, "s": {"x": 2}}
    assert rows(going_on.items()) == Counter(
        (rule, as_json(row, None)) for rule in going_on for row in (ROW, late)
    )


def test_each_rule_holds_for_those_who_listen(watched: dict[str, Watched]) -> None:
    """A listener is fenced when it asks for more, and then has got nothing."""
    for it in watched.values():
        if it.fence is not None:
            check_fence(lambda it=it: next(it.listen), it.fence)  # type: ignore[misc]
        else:
            (changes,) = it.listen
            assert changes.rows.num_rows == 1


def test_the_latest_schema_is_never_fenced(spark: SparkSession, watched: dict[str, Watched]) -> None:
    """Nor is any projection of it."""
    frames = [
        (f"{rule}: {'some' if columns else 'all'}", it.table.snapshot(columns=columns).to_spark(spark))
        for rule, it in watched.items()
        for columns in (["id"], None)
    ]
    found = Counter(name for name, _ in rows(frames).elements())
    assert found == Counter({name: 2 for name, _ in frames})

"""Every rule about fences, while a second process evolves the table."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import instar
from instar.errors import ReaderFencedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from instar.api.table import Table

ELSEWHERE = """
import json, sys, pyarrow as pa, instar
for line in sys.stdin:
    location, steps, row = json.loads(line)
    table = instar.open(location).table("t")
    update = table.evolve()
    for name, *args in steps:
        update = getattr(update, name)(*args)
    schema_id = update.commit()
    layout = table.snapshot().to_arrow().schema
    table.append(pa.Table.from_pylist([row], schema=layout))
    print(schema_id, flush=True)
"""
"""Another process: it evolves a table, appends a row under the new schema, and tells when it is done."""

COLUMNS = (
    "id int not null, name string, s struct<x: int not null, y: string>, l array<struct<z: int>>, other int"
)
ROW = {"id": 1, "name": "a", "s": {"x": 1, "y": "b"}, "l": [{"z": 1}], "other": 7}


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Callable[[str, list[list[str]], dict[str, Any]], int]]:
    """Return what lets a second process evolve a table and append to it."""
    with subprocess.Popen(
        [sys.executable, "-c", ELSEWHERE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        def evolve(location: str, steps: list[list[str]], row: dict[str, Any]) -> int:
            stdin.write(json.dumps([location, steps, row]) + "\n")
            stdin.flush()
            return int(stdout.readline())

        yield evolve
        stdin.close()


@pytest.fixture
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Return a table in a directory, with a row."""
    table = instar.open(tmp_path_factory.mktemp("store")).create_table("t", COLUMNS)
    layout = table.snapshot().to_arrow().schema
    table.append(pa.Table.from_pylist([ROW], schema=layout))
    return table


# What happens to the table, the columns that a reader reads (None: all), and the fence: the path of the
# column as the reader knows it and words of the reason, or None if it goes on.
RULES = {
    "a column that is read is dropped": (
        [["drop_column", "name"]],
        None,
        ("name", "was dropped by schema 1"),
    ),
    "a member that is read is dropped": ([["drop_column", "s.y"]], ["s"], ("s.y", "was dropped")),
    "a member of elements gets a sibling, and goes": (
        [["add_column", "l.element.w", "int"], ["drop_column", "l.element.z"]],
        ["l"],
        ("l.element.z", "was dropped"),
    ),
    "a column that is read becomes nullable": (
        [["make_nullable", "id"]],
        ["id"],
        ("id", "may hold nulls since schema 1"),
    ),
    "a member that is read becomes nullable": ([["make_nullable", "s.x"]], None, ("s.x", "may hold nulls")),
    "a column that is read is widened": (
        [["widen_column", "id", "bigint"]],
        ["id", "name"],
        ("id", "is widened from int to bigint"),
    ),
    "a member that is read is widened": ([["widen_column", "s.x", "double"]], ["s"], ("s.x", "is widened")),
    "elements that are read are widened": (
        [["widen_column", "l.element.z", "bigint"]],
        ["l"],
        ("l.element.z", "is widened"),
    ),
    "a dropped name is used again": (
        [["drop_column", "other"], ["add_column", "other", "int"]],
        ["other"],
        ("other", "was dropped"),
    ),
    "a column that is read is renamed": ([["rename_column", "name", "title"]], None, None),
    "a member that is read is renamed": ([["rename_column", "s.x", "ex"]], ["s"], None),
    "two columns swap their names": (
        [
            ["rename_column", "name", "tmp"],
            ["rename_column", "other", "name"],
            ["rename_column", "tmp", "other"],
        ],
        ["name", "other"],
        None,
    ),
    "a column is added": ([["add_column", "new", "int"]], None, None),
    "a member is added": ([["add_column", "s.w", "int"], ["add_column", "l.element.w", "int"]], None, None),
    "a column that is not read is dropped": ([["drop_column", "other"]], ["id", "name", "s", "l"], None),
    "a column that is not read becomes nullable": (
        [["make_nullable", "id"]],
        ["name", "s", "l", "other"],
        None,
    ),
    "a column that is not read is widened": ([["widen_column", "other", "bigint"]], ["id", "s"], None),
    "a member of a column that is not read changes": (
        [["drop_column", "s.y"], ["widen_column", "s.x", "bigint"]],
        ["id", "l"],
        None,
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_holds_for_snapshots_and_listeners(
    table: Table, elsewhere: Callable[[str, list[list[str]], dict[str, Any]], int], rule: str
) -> None:
    """A fenced reader gets an error that names the column and no row; every other one goes on undisturbed."""
    steps, columns, fence = RULES[rule]
    location = table._services.blob.url.removeprefix("file://")
    held = table.snapshot(columns=columns)
    listen = table.listen(columns=columns, timeout=0)
    before = held.to_arrow()
    assert elsewhere(location, steps, {"id": 2, "s": {"x": 2, "ex": 2}}) == 1
    assert held.to_arrow().equals(before), "a snapshot stays as it is"
    if fence is None:
        after = table.snapshot(schema=0, columns=columns).to_arrow()
        assert after.schema.equals(before.schema)
        assert after.num_rows == 2
        assert before.to_pylist()[0] in after.to_pylist()
        (changes,) = listen
        assert changes.rows.num_rows == 1
        assert changes.rows.column_names[:-2] == before.column_names
    else:
        path, words = fence
        for read in (lambda: table.snapshot(schema=0, columns=columns), lambda: next(listen)):
            with pytest.raises(ReaderFencedError) as caught:
                read()
            (reason,) = caught.value.fences
            assert reason.path == path  # type: ignore[attr-defined]
            assert words in str(caught.value)
            assert f"open the table at schema {table.state.history.latest_id}" in str(caught.value)
    assert table.snapshot().to_arrow().num_rows == 2, "who reads the latest schema is never fenced"
    for name in table.schema.names:
        assert table.snapshot(columns=[name]).to_arrow().num_rows == 2

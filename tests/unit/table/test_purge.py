"""A purge: what is to go is in no file any more, and the report says so file by file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import instar
from instar.errors import ColumnNotFoundError, UsageError
from instar.table.housekeeping.purge import purge_table
from instar.table.housekeeping.rewrite import rewrite_parts
from tests.unit.cli.command import instar as command

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "Zebulon-secret"


def _holding(root: Path) -> list[str]:
    """Return the files below a directory whose bytes, or whose Parquet columns, hold the secret."""
    found = []
    for path in sorted(root.rglob("*")):
        if not path.is_file():
            continue
        held = SECRET.encode() in path.read_bytes()
        if not held and path.suffix == ".parquet":
            held = SECRET in str(pq.read_table(path).to_pydict())
        if held:
            found.append(str(path.relative_to(root)))
    return found


def test_rows_leave_every_file(tmp_path: Path) -> None:
    """Deleted now or before, retracted by value or by position, in live files or given up ones."""
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("t", "name string, n bigint")
        for n in range(5):
            table.append(pa.table({"name": [f"user{n}", SECRET], "n": [n, n]}))
        table.delete(f"name = '{SECRET}' and n = 0")
        table.apply(pa.table({"name": [SECRET], "n": [1], "_diff": [-1]}))
        table.append(pa.table({"name": ["other"], "n": [9]}))
        live = table.state.totals.parts
        report = table.purge(where=f"name = '{SECRET}'")
        assert (live, report.rows, len(report.files), report.kept) == (7, 3, 6, ())
        assert not [file for file in _holding(tmp_path) if "/log/" not in f"/{file}"]
        assert report.since == table.since == table.upper - 1
        assert report.log_until is not None
        assert sorted(table.to_pandas()["name"]) == ["other", *(f"user{n}" for n in range(5))]
        again = table.purge(where=f"name = '{SECRET}'")
        assert (again.rows, again.files, again.kept) == (0, (), ())


@pytest.mark.parametrize("diffs", [[2], [1, 1], [3, -2]])
def test_rows_that_are_there_several_times_leave_every_file(tmp_path: Path, diffs: list[int]) -> None:
    """Compaction adds them up with their retractions, and nothing is left of both."""
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("t", "name string")
        table.append(pa.table({"name": [SECRET, "a"]}))
        for diff in diffs:
            table.apply(pa.table({"name": [SECRET, "b"], "_diff": [diff, 2 * diff]}))
        table.purge(where=f"name = '{SECRET}'")
        assert not [file for file in _holding(tmp_path) if "/log/" not in f"/{file}"]
        assert sorted(table.to_pandas()["name"]) == ["a", *["b"] * (2 * sum(diffs))]


def test_what_only_spark_can_tell_leaves_every_file(tmp_path: Path) -> None:
    """Whatever was retracted goes from parts whose rows cannot be judged here."""
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("t", "name string")
        table.append(pa.table({"name": [SECRET, "a"]}))
        table.append(pa.table({"name": ["b"]}))
        report = purge_table(
            table._services,
            table._log,
            rewrite_parts,
            where="soundex(name) = 'Z145'",
            delete=lambda: table.delete(f"name = '{SECRET}'").rows,  # as Spark would
        )
        assert (report.rows, report.kept) == (1, ())
        assert not [file for file in _holding(tmp_path) if "/log/" not in f"/{file}"]
        assert sorted(table.to_pandas()["name"]) == ["a", "b"]


def test_a_dropped_column_leaves_every_file(tmp_path: Path) -> None:
    """Files, and what the table knows of them; a column that is still there has to be dropped first."""
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("t", "name string, n bigint")
        for n in range(3):
            table.append(pa.table({"name": [SECRET], "n": [n]}))
        with pytest.raises(UsageError, match="drop it first"):
            table.purge(columns=["name"])
        table.evolve().drop_column("name").commit()
        with pytest.raises(ColumnNotFoundError):
            table.purge(columns=["nothing"])
        table.append(pa.table({"n": [3]}))
        report = table.purge(columns=["name"])
        assert len(report.files) == 3
        assert not [file for file in _holding(tmp_path) if "/log/" not in f"/{file}"]
        assert sorted(table.to_pandas()["n"]) == [0, 1, 2, 3]


def test_a_member_and_a_name_that_was_used_again_leave_every_file(tmp_path: Path) -> None:
    """Dropped members of lists are named by their path; a new column of the old name stays."""
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("t", "name string, l array<struct<x: string, y: int>>")
        table.append(pa.table({"name": ["plain"], "l": [[{"x": SECRET, "y": 1}]]}))
        table.append(pa.table({"name": [SECRET], "l": [[{"x": "plain", "y": 2}]]}))
        table.evolve().drop_column("l.element.x").drop_column("name").commit()
        table.evolve().add_column("name", "string").commit()
        table.append(pa.table({"name": ["new"], "l": [[{"y": 3}]]}))
        assert len(table.purge(columns=["l.element.x"]).files) == 2
        assert len(table.purge(columns=["name"]).files) == 0
        assert not [file for file in _holding(tmp_path) if "/log/" not in f"/{file}"]
        assert [name for name in table.to_pandas()["name"] if name] == ["new"]


def test_what_somebody_reads_is_named(tmp_path: Path) -> None:
    """A reader keeps its files, and the report says so; when it has ended, a purge takes them."""
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("t", "name string")
        table.append(pa.table({"name": [SECRET, "a"]}))
        with table.snapshot() as snapshot:
            report = table.purge(where=f"name = '{SECRET}'")
            assert [kept.file for kept in report.kept] == snapshot_files(tmp_path)
            assert "in use by" in report.kept[0].why
            assert snapshot.to_arrow().num_rows == 2
        after = table.purge(where=f"name = '{SECRET}'")
        assert (len(after.unread), after.kept) == (1, ())


def snapshot_files(tmp_path: Path) -> list[str]:
    """Return the files that hold the secret, as the store names them."""
    return [file.removeprefix("lake/") for file in _holding(tmp_path) if file.endswith(".parquet")]


def test_adopted_files_are_deleted_only_if_told_so(tmp_path: Path) -> None:
    """Otherwise the command says that they stay, and exits with 1."""
    lake = str(tmp_path / "lake")
    for name in ("1", "2"):
        pq.write_table(pa.table({"name": [SECRET, name]}), tmp_path / f"{name}.parquet")
    with instar.open(lake) as store:
        table = store.create_table("t", "name string")
        table.adopt(tmp_path / "1.parquet")
    done = command("purge", "t", "--where", f"name = '{SECRET}'", "--json", "--store", lake)
    report = json.loads(done.stdout)
    assert (done.returncode, report["rows"], report["files"]) == (1, 1, [])
    assert report["kept"][0]["file"] == str(tmp_path / "1.parquet")
    assert (tmp_path / "1.parquet").exists()
    with instar.open(lake) as store:
        store.table("t").adopt(tmp_path / "2.parquet")
    told = command("purge", "t", "--where", f"name = '{SECRET}'", "--delete-adopted", "--store", lake)
    assert told.returncode == 0
    assert str(tmp_path / "2.parquet") in told.stdout
    assert "instar vacuum t" in told.stdout
    assert not (tmp_path / "2.parquet").exists()
    with instar.open(lake) as store:
        assert sorted(store.table("t").to_pandas()["name"]) == ["1", "2"]


def test_clones_and_what_they_were_made_of_keep_what_they_have_in_common(tmp_path: Path) -> None:
    """The report names them; when all have been purged, the file is gone, whichever is purged last."""
    pq.write_table(pa.table({"name": [SECRET]}), tmp_path / "1.parquet")
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("t", "name string")
        table.append(pa.table({"name": [SECRET, "a"]}))
        table.adopt(tmp_path / "1.parquet")
        first, second = table.clone("first"), table.clone("second")
        for one, others in ((first, ("second", "t")), (table, ("second",)), (second, ())):
            report = one.purge(where=f"name = '{SECRET}'", adopted="delete")
            expected = (2, 0, 2) if others else (2, 2, 0)
            assert (report.rows, len(report.files), len(report.kept)) == expected
            for kept in report.kept:
                assert [name for name in ("first", "second", "t") if f"`{name}`" in kept.why] == list(others)
            assert len(_holding(tmp_path)) >= 2 or not others
            assert {it.name: it.count() for it in (table, first, second)}[one.name] == 1
        assert not [file for file in _holding(tmp_path) if "/log/" not in f"/{file}"]
        assert [it.to_pandas()["name"].tolist() for it in (table, first, second)] == [["a"]] * 3


def test_adopted_files_that_other_tables_need_stay(tmp_path: Path) -> None:
    """Those of clones, of the table that a clone was made of, and of whoever has adopted them too."""
    outside = tmp_path / "outside.parquet"
    with instar.open(tmp_path / "lake") as store:
        pq.write_table(pa.table({"name": ["ada", SECRET]}), outside)
        table = store.create_table("t", "name string")
        table.adopt(outside)
        store.create_table("same", "name string").adopt(outside)
        clone = table.clone("copy")
        for first, others in ((table, {"copy", "same"}), (clone, {"same"})):
            report = first.purge(where=f"name = '{SECRET}'", adopted="delete")
            assert report.kept[0].why.split("`")[1] in others
        assert store["same"].count() == 2
        report = store["same"].purge(where=f"name = '{SECRET}'", adopted="delete")
        assert (report.files, report.kept) == ((str(outside),), ())
        assert not outside.exists()

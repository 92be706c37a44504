"""Files that others wrote become parts of a table, in place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import instar
from instar.errors import AdoptedFileError, DataMismatchError, UsageError
from instar.storage import open_blob
from tests.adopting import ROWS, WRITERS, rows_of
from tests.servers import s3

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from instar import Store
    from testbed.servers import S3Server

__all__ = ["s3"]

DDL = (
    "id int, big bigint, name string, ok boolean, x double, day date, at timestamp, price decimal(9,2), "
    "tags array<string>, who struct<n: bigint, m: string>"
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Return a store."""
    with instar.open(tmp_path / "lake") as opened:
        yield opened


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_of_every_writer_has_the_rows_that_it_was_given(
    store: Store, tmp_path: Path, writer: str
) -> None:
    """Whatever types and encodings a library chooses, the rows are the same, before and after compaction."""
    WRITERS[writer](tmp_path / "rows.parquet")
    table = store.create_table("t", DDL)
    report = table.adopt(tmp_path / "rows.parquet")
    assert (report.files, report.rows, report.known) == (1, 4, 0)
    assert rows_of(table.snapshot().to_arrow()) == rows_of(ROWS)
    assert rows_of(table.snapshot().to_arrow(where="id >= 2 and name is null")) == [rows_of(ROWS)[1]]
    table.analyze()
    assert rows_of(table.snapshot().to_arrow()) == rows_of(ROWS)
    table.append(ROWS)
    table.compact(full=True)
    assert rows_of(table.snapshot().to_arrow().slice(0, 4)) == rows_of(ROWS)
    assert table.count() == 8


def test_paths_tell_columns(store: Store, tmp_path: Path) -> None:
    """`key=value` in a path is a column, typed as the table says or as all values allow; the rest is null."""
    for day, code in (("2026-11-15", "07"), ("2026-11-16", "__HIVE_DEFAULT_PARTITION__")):
        folder = tmp_path / "in" / f"day={day}" / f"code={code}" / "n%20o=3"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"a": [1]}), folder / "x.parquet")
        (folder / "_SUCCESS").touch()
        (folder / ".x.parquet.crc").touch()
    schema = store.infer_schema(tmp_path / "in")
    assert str(schema) == "a bigint, day date, code string, `n o` int"
    table = store.create_table("t", schema)
    table.adopt(tmp_path / "in")
    found = table.to_pandas().sort_values("day").values.tolist()
    assert [[str(value) for value in row] for row in found] == [
        ["1", "2026-11-15", "07", "3"],
        ["1", "2026-11-16", "None", "3"],
    ]
    assert table.explain("day = '2026-11-16'").skipped == 1
    assert table.explain("code is null").skipped == 1


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("b=__HIVE_DEFAULT_PARTITION__", "not null"),
        ("b=1/B=2", "`B` twice"),
        ("b=1/b=1", "`b` twice"),
        ("b=%FF", "not UTF-8"),
        ("%ff=1", "not UTF-8"),
        ("b=one", "which is not int"),
        ("c=2026-11-15", "cannot be timestamp"),
        ("d=1", "no such column"),
    ],
)
def test_a_path_that_does_not_fit_is_refused(store: Store, tmp_path: Path, folder: str, why: str) -> None:
    """A forbidden null, a column that is told twice, and what is no value of its type: the file is named."""
    (tmp_path / folder).mkdir(parents=True)
    pq.write_table(pa.table({"a": [1]}), tmp_path / folder / "1.parquet")
    table = store.create_table("t", "a bigint, b int not null, c timestamp")
    with pytest.raises(UsageError, match=why) as raised:
        table.adopt(tmp_path)
    assert "1.parquet" in str(raised.value)
    assert table.state.totals.parts == 0


def test_a_null_of_a_path_makes_a_column_nullable_if_it_may_evolve(store: Store, tmp_path: Path) -> None:
    """As a column does that files lack."""
    (tmp_path / "b=__HIVE_DEFAULT_PARTITION__").mkdir()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "b=__HIVE_DEFAULT_PARTITION__" / "1.parquet")
    table = store.create_table("t", "a bigint, b int not null")
    assert table.adopt(tmp_path, evolve=True).rows == 1
    assert str(table.schema) == "a bigint, b int"


def test_links_are_followed_and_circles_are_not(store: Store, tmp_path: Path) -> None:
    """A directory may be a link to another, and a name whose bytes are not UTF-8 is refused."""
    for day in ("in/day=1", "elsewhere"):
        (tmp_path / day).mkdir(parents=True)
        pq.write_table(pa.table({"a": [1]}), tmp_path / day / "1.parquet")
    (tmp_path / "in" / "day=2").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "up").symlink_to(tmp_path / "in")
    table = store.create_table("t", "a bigint, day int")
    assert table.adopt(tmp_path / "in").files == 2
    assert sorted(table.to_pandas()["day"]) == [1, 2]
    assert table.adopt(tmp_path / "in").known == 2
    unreadable = tmp_path / "in" / os.fsdecode(b"day=\xff")
    unreadable.mkdir()
    (unreadable / "1.parquet").touch()
    with pytest.raises(UsageError, match="not UTF-8"):
        table.adopt(tmp_path / "in")


def test_a_file_is_taken_once(store: Store, tmp_path: Path) -> None:
    """Adopting a directory again takes what is new, also after its files have been rewritten."""
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    table = store.create_table("t", "a bigint")
    assert table.adopt(tmp_path / "1.parquet").files == 1
    table.compact(full=True)
    pq.write_table(pa.table({"a": [2]}), tmp_path / "2.parquet")
    report = table.adopt([tmp_path / "1.parquet", tmp_path / "2.parquet"])
    assert (report.files, report.known) == (1, 1)
    table.vacuum(grace_ms=0)
    assert table.adopt([tmp_path / "1.parquet", tmp_path / "2.parquet"]).known == 2
    assert sorted(table.to_pandas()["a"]) == [1, 2]


def test_a_matched_column_stays_the_same_field(store: Store, tmp_path: Path) -> None:
    """Names are matched once: renames, drops and new columns of an old name change nothing."""
    pq.write_table(
        pa.table({"a": pa.array([1], pa.int32()), "s": [{"x": 1, "y": 2}]}), tmp_path / "1.parquet"
    )
    table = store.create_table("t", "a int, s struct<x: bigint, y: bigint>")
    table.adopt(tmp_path / "1.parquet")
    table.evolve().rename_column("a", "b").add_column("a", "string").drop_column("s.x").widen_column(
        "b", "bigint"
    ).add_column("s.x", "string", first=True).commit()
    pq.write_table(pa.table({"a": ["new"], "s": [{"x": "k", "y": 3}]}), tmp_path / "2.parquet")
    table.adopt(tmp_path / "2.parquet")
    assert table.snapshot().to_arrow().to_pylist() == [
        {"b": 1, "s": {"x": None, "y": 2}, "a": None},
        {"b": None, "s": {"x": "k", "y": 3}, "a": "new"},
    ]


def test_evolving_takes_files_of_different_schemas(store: Store, tmp_path: Path) -> None:
    """With `evolve`, columns are added and widened, and may be null; without, nothing is taken."""
    pq.write_table(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": pa.array([2**40]), "c": [1.5]}), tmp_path / "2.parquet")
    table = store.create_table("t", "a int, b string not null")
    with pytest.raises(DataMismatchError, match=r"column `a` .* has bigint.* adopt with evolve.*2\.parquet"):
        table.adopt([tmp_path / "1.parquet", tmp_path / "2.parquet"])
    assert table.count() == 0
    table.adopt([tmp_path / "1.parquet", tmp_path / "2.parquet"], evolve=True)
    assert str(table.schema) == "a bigint, b string, c double"
    assert table.snapshot().to_arrow().to_pylist() == [
        {"a": 1, "b": "x", "c": None},
        {"a": 2**40, "b": None, "c": 1.5},
    ]


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (pa.array([1, 2, None]), "not null"),
        (pa.array([1, 2, 3], pa.timestamp("ns", "UTC")), "microsecond|not exactly"),
        (pa.array([1, 2, 3], pa.uint64()), "uint64"),
        (pa.array([1, 2, 3], pa.duration("ms")), "duration"),
        (pa.nulls(3), "no type"),
        (pa.array([1, 2, 3], pa.time64("us")), "time64"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_taken(
    store: Store, tmp_path: Path, column: pa.Array, why: str
) -> None:
    """A forbidden null, nanoseconds that would be lost, and types that no column has: the file is named."""
    pq.write_table(pa.table({"a": column}), tmp_path / "1.parquet")
    kind = "timestamp" if pa.types.is_timestamp(column.type) else "bigint not null"
    table = store.create_table("t", f"a {kind}")
    with pytest.raises(UsageError, match=why) as raised:
        table.adopt(tmp_path / "1.parquet")
    assert "1.parquet" in str(raised.value)
    assert table.state.totals.parts == 0


def test_footers_are_believed_only_where_they_can_be(store: Store, tmp_path: Path) -> None:
    """Whole numbers and times are skipped by at once; floats and texts only after an analysis."""
    rows = pa.table({"n": [1, 2], "x": [1.0, float("nan")], "s": ["a", "b"]})
    pq.write_table(rows, tmp_path / "1.parquet")
    table = store.create_table("t", "n bigint, x double, s string")
    table.adopt(tmp_path / "1.parquet")

    def skipped() -> list[int]:
        return [table.explain(where).skipped for where in ("n > 2", "x < 0", "x > 5", "s > 'c'")]

    assert skipped() == [1, 0, 0, 0]
    assert table.count("x > 5") == 1
    assert table.analyze()[:2] == (1, 2)
    assert skipped() == [1, 1, 0, 1]
    assert table.count("x > 5") == 1
    assert table.analyze().files == 0


def test_an_analysis_keeps_history_and_retractions(store: Store, tmp_path: Path) -> None:
    """Rows that were deleted stay deleted, and can still be read as of before."""
    pq.write_table(pa.table({"n": [1, 2, 3]}), tmp_path / "1.parquet")
    table = store.create_table("t", "n bigint")
    table.adopt(tmp_path / "1.parquet")
    before = table.upper - 1
    table.delete("n = 3")
    table.analyze()
    assert sorted(table.to_pandas()["n"]) == [1, 2]
    assert table.explain("n = 3").read == 1
    with table.snapshot(as_of=before) as snapshot:
        assert sorted(snapshot.to_pandas()["n"]) == [1, 2, 3]


def test_a_file_that_is_gone_or_changed_is_an_error(store: Store, tmp_path: Path) -> None:
    """The error names the file; a file that was only touched is the same."""
    path = tmp_path / "1.parquet"
    pq.write_table(pa.table({"n": [1, 2, 3]}), path)
    data = path.read_bytes()
    table = store.create_table("t", "n bigint")
    table.adopt(path)
    path.write_bytes(data)
    assert table.count() == 3
    pq.write_table(pa.table({"n": [1, 2, 4]}), path)
    with pytest.raises(AdoptedFileError, match="another file than the one"):
        table.to_pandas()
    path.unlink()
    with pytest.raises(AdoptedFileError, match=r"1\.parquet: it is missing"):
        table.to_pandas()
    path.write_bytes(b"no parquet")
    with pytest.raises(AdoptedFileError, match="not a Parquet file"):
        table.to_pandas()


def test_a_file_that_is_gone_stops_no_other_work(store: Store, tmp_path: Path) -> None:
    """Its rows can be deleted by what its path tells; once nobody can read them, it is not opened again."""
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(pa.table({"a": [day]}), tmp_path / f"day={day}" / "1.parquet")
    table = store.create_table("t", "a bigint, day int", order_by=["day"], options={"retention": "0ms"})
    table.adopt(tmp_path)
    for a in range(4):
        table.append(pa.table({"a": [a], "day": [9]}))
    for file in tmp_path.glob("day=2/*"):
        file.unlink()
    maintenance = store.maintenance(grace_ms=0)
    (failure,) = maintenance.run_once().failures
    assert "day=2" in failure.error
    assert table.state.totals.parts == 3  # what was appended is one part now
    assert len([*(tmp_path / "lake").glob("tables/*/parts/**/*.parquet")]) == 1
    assert table.snapshot().to_arrow("day <> 2").num_rows == 5
    table.delete("day = 2")
    assert maintenance.run_once().failures == ()
    assert sorted(table.to_pandas()["a"]) == [0, 1, 1, 2, 3]


def test_nothing_deletes_adopted_files(store: Store, tmp_path: Path) -> None:
    """Compaction, vacuum and dropping the table leave them where they are."""
    path = tmp_path / "1.parquet"
    pq.write_table(pa.table({"n": [1, 2, 3]}), path)
    table = store.create_table("t", "n bigint")
    table.adopt(path)
    table.compact(full=True)
    table.vacuum(grace_ms=0)
    store.drop_table("t")
    store.vacuum(grace_ms=0)
    assert pq.read_table(path).num_rows == 3


def test_adopted_parts_survive_rollups(store: Store, tmp_path: Path) -> None:
    """A state that is read from chunks knows the files, and the list of them, as one from the log does."""
    for number in range(70):  # more than a commit carries itself
        pq.write_table(pa.table({"n": [number]}), tmp_path / f"{number}.parquet")
    table = store.create_table("t", "n bigint")
    table.adopt([tmp_path / f"{number}.parquet" for number in range(70)])
    table.append(pa.table({"n": [100]}))
    table.vacuum(grace_ms=0)  # writes a rollup
    again = instar.open(store.location).table("t")
    assert sorted(again.to_pandas()["n"]) == [*range(70), 100]
    assert again.adopt(tmp_path / "3.parquet").known == 1
    assert again.explain("n = 3").read == 1


def test_what_cannot_be_adopted_says_why(store: Store, tmp_path: Path) -> None:
    """Nothing there, not Parquet, a column twice, and the store's own files."""
    table = store.create_table("t", "n bigint")
    table.append(pa.table({"n": [1]}))
    with pytest.raises(UsageError, match="no Parquet files"):
        table.adopt(tmp_path / "nothing")
    (tmp_path / "x.parquet").write_bytes(b"hello")
    with pytest.raises(UsageError, match="not a Parquet file"):
        table.adopt(tmp_path / "x.parquet")
    with pytest.raises(UsageError, match="inside the store"):
        table.adopt(tmp_path / "lake")
    (tmp_path / "n=1").mkdir()
    pq.write_table(pa.table({"n": [1]}), tmp_path / "n=1" / "1.parquet")
    with pytest.raises(UsageError, match="in the path and in the file"):
        table.adopt(tmp_path / "n=1")
    for name in ("_Number", "_begin", "_tmp_metadata_row_index", "_positions_word"):
        pq.write_table(pa.table({"n": [1], name: [1]}), tmp_path / "named.parquet")
        with pytest.raises(DataMismatchError, match="uses this name itself"):
            table.adopt(tmp_path / "named.parquet", evolve=True)


def test_files_of_an_object_store_are_adopted(s3: S3Server, tmp_path: Path) -> None:
    """They are read over HTTP, and known again by their footers."""
    url = s3.url()
    outside = open_blob(f"{url}/files", s3.options)
    pq.write_table(pa.table({"n": [1, 2, 3]}), tmp_path / "x.parquet")
    outside.put("day=1/x.parquet", (tmp_path / "x.parquet").read_bytes())
    outside.put("day=1/_SUCCESS", b"")
    with instar.open(f"{url}/lake", options=s3.options) as store:
        table = store.create_table("t", store.infer_schema(f"{url}/files"))
        assert table.adopt(f"{url}/files").files == 1
        assert table.adopt(f"{url}/files/day=1/x.parquet").known == 1
        assert table.to_pandas(where="n > 1 and day = 1")["n"].tolist() == [2, 3]
        outside.delete(["day=1/x.parquet"])
        with pytest.raises(AdoptedFileError, match="missing"):
            table.to_pandas()

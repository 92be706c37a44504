"""A part is read from wherever it is, and only if it is the part that was written."""

from __future__ import annotations

import errno
import io
import os
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from pyroaring import BitMap

from instar.errors import CorruptTableError, StorageError, UsageError
from instar.parts import NewPart, RowChoice, read_part, write_part
from instar.schema import Names, parse_schema_ddl
from tests.properties.schema.data import batch_of

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = parse_schema_ddl("a int, b string")
ROWS = [(at, f"row {at}") for at in range(100)]


def written() -> NewPart:
    """Return a part of 100 rows, called `t/p`."""
    rows = [{1: a, 2: b} for a, b in ROWS]
    return write_part(pa.Table.from_batches([batch_of(rows, SCHEMA, Random(0))]), SCHEMA, key="t/p")


def read(new: NewPart, source: object) -> list[tuple[int, str]]:
    """Read the rows."""
    batches = read_part(source, new.part, SCHEMA, SCHEMA)
    return [(row["a"], row["b"]) for batch in batches for row in batch.to_pylist()]


def test_parts_are_read_from_anywhere(tmp_path: Path) -> None:
    """Bytes, buffers, paths, open files."""
    new = written()
    path = tmp_path / "part.parquet"
    path.write_bytes(new.data)
    for source in (
        new.data,
        bytes(new.data),
        path,
        str(path),
        io.BytesIO(new.data),
        pa.BufferReader(new.data),
    ):
        assert read(new, source) == ROWS


@pytest.mark.parametrize("names", Names)
def test_readers_choose_the_names(names: Names) -> None:
    """Columns have the reader's names, or the physical ones."""
    [batch] = read_part(written().data, written().part, SCHEMA, SCHEMA.select(["b"]), names=names)
    assert batch.schema.names == (["b"] if names is Names.COLUMN else ["f2"])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rows": 99}, "it has 100 rows, and 99 were written"),
        ({"size": 5}, "bytes, and 5 were written"),
        ({"ts_min": 1, "ts_max": 2}, "it has no column _ts"),
    ],
)
def test_another_file_is_not_the_part(change: dict[str, int], why: str) -> None:
    """Size, rows and columns are those of the metadata, or the part is corrupt, and no row is returned."""
    new = written()
    part = replace(new.part, **change)
    with pytest.raises(CorruptTableError, match=f"part t/p is corrupt: .*{why}"):
        next(read_part(new.data, part, SCHEMA, SCHEMA, updates=True, ts=1))


def test_a_file_of_another_schema_is_not_the_part() -> None:
    """A column that is missing or of another type is not guessed."""
    new = written()
    for ddl, why in (
        ("a int, b string, c int", "no column f3"),
        ("a bigint, b string", "column f1 is int32"),
    ):
        other = parse_schema_ddl(ddl)
        with pytest.raises(CorruptTableError, match=why):
            list(read_part(new.data, new.part, other, other))


def test_a_part_of_the_same_size_and_rows_is_not_the_part() -> None:
    """A file says which part it is, and is not believed under the key of another."""
    one, other = written(), written()
    assert other.data.size == one.data.size
    elsewhere = replace(one.part, key="t/q")
    with pytest.raises(CorruptTableError, match="part t/q is corrupt: its file says that it is 't/p'"):
        next(read_part(other.data, elsewhere, SCHEMA, SCHEMA))
    table = pa.Table.from_batches([batch_of([{1: 1, 2: "x"}], SCHEMA, Random(0))])
    foreign = pa.BufferOutputStream()
    pq.write_table(table.rename_columns(["f1", "f2"]), foreign)
    part = replace(one.part, rows=1, size=foreign.getvalue().size)
    with pytest.raises(CorruptTableError, match="says that it is 'nothing'"):
        next(read_part(foreign.getvalue(), part, SCHEMA, SCHEMA))


@pytest.mark.parametrize("bits", [0x55, 0x80])
def test_damage_is_found(bits: int) -> None:
    """Whatever byte changed, the rows are those that were written, or the part is named as corrupt.

    The highest bit alone makes names that are not text.
    """
    new = written()
    found = 0
    for at in range(new.part.size):
        data = bytearray(new.data)
        data[at] ^= bits
        with suppress(CorruptTableError):
            assert read(new, bytes(data)) == ROWS
            continue
        found += 1
    assert found > new.part.size // 2


def test_a_part_without_a_file_is_corrupt(tmp_path: Path) -> None:
    """The part is named: a table without it is not what was written."""
    with pytest.raises(CorruptTableError, match="part t/p is corrupt: its file is missing"):
        read(written(), tmp_path / "absent")


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have small parts of many row groups, which are read ahead as large ones are."""
    monkeypatch.setattr("instar.parts.write.ROW_GROUP_ROWS", 7)
    monkeypatch.setattr("instar.parts.read.AHEAD_BYTES", 0)


@pytest.mark.usefixtures("groups")
def test_reading_ahead_yields_the_same_rows(tmp_path: Path) -> None:
    """In their order, with their positions, and less those that were retracted."""
    new = written()
    path = tmp_path / "part.parquet"
    path.write_bytes(new.data)
    assert pq.ParquetFile(path).num_row_groups == 15
    for choice in (None, RowChoice(BitMap([0, 6, 7, 50, 99])), RowChoice(BitMap([8, 9]), only=True)):
        for columns in (["a", "b"], ["b"]):
            one, other = (
                pa.Table.from_batches(
                    read_part(
                        str(path),
                        new.part,
                        SCHEMA,
                        SCHEMA.select(columns),
                        updates=True,
                        ts=1,
                        numbered=True,
                        choice=choice,
                        ahead=ahead,
                    )
                )
                for ahead in (False, True)
            )
            assert one == other


@pytest.mark.usefixtures("groups")
def test_reading_ahead_finds_damage_too(tmp_path: Path) -> None:
    """Whatever byte changed, and if the file is another one, or none."""
    new = written()
    path = tmp_path / "part.parquet"
    found = 0
    for at in range(0, new.part.size, 5):
        data = bytearray(new.data)
        data[at] ^= 0x55
        path.write_bytes(data)
        with suppress(CorruptTableError):
            batches = read_part(str(path), new.part, SCHEMA, SCHEMA, ahead=True)
            assert [(row["a"], row["b"]) for batch in batches for row in batch.to_pylist()] == ROWS
            continue
        found += 1
    assert found > new.part.size // 10
    path.write_bytes(new.data)
    with pytest.raises(CorruptTableError, match="its file says that it is 't/p'"):
        next(read_part(str(path), replace(new.part, key="t/q"), SCHEMA, SCHEMA, ahead=True))
    path.unlink()
    with pytest.raises(CorruptTableError, match="its file is missing"):
        next(read_part(str(path), new.part, SCHEMA, SCHEMA, ahead=True))


def test_a_store_that_fails_is_not_a_corrupt_part() -> None:
    """What the system says about a file is passed on as an error of the store."""

    class Broken(io.BytesIO):
        """A file on a disk that fails."""

        def read(self, _: int | None = -1) -> bytes:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    new = written()
    with pytest.raises(StorageError, match=r"reading part t/p failed: .*Input/output error"):
        read(new, Broken(new.data))


def test_times_and_diffs_follow_the_columns() -> None:
    """Those of the batch, of the part, or of each row."""
    new = written()
    [batch] = read_part(new.data, new.part, SCHEMA, SCHEMA, updates=True, ts=5)
    assert batch.schema.names == ["a", "b", "_ts", "_diff"]
    assert set(batch["_ts"].to_pylist()) == {5}
    assert set(batch["_diff"].to_pylist()) == {1}
    own = replace(new.part, ts_min=3, ts_max=3, diff_min=-1, diff_max=-1)
    [batch] = read_part(new.data, own, SCHEMA, SCHEMA, updates=True, ts=5)
    assert set(batch["_ts"].to_pylist()) == {3}
    assert set(batch["_diff"].to_pylist()) == {-1}
    with pytest.raises(UsageError, match="give it as ts"):
        next(read_part(new.data, new.part, SCHEMA, SCHEMA, updates=True))


def test_rows_are_left_out_only_where_there_are_rows() -> None:
    """A position behind the end of a part is not one of its rows: the bitmap is that of another part."""
    new = written()
    for positions, only in ((BitMap([3, 100]), False), (BitMap([100]), True)):
        with pytest.raises(CorruptTableError, match="its row 100 is retracted, and it has 100 rows"):
            list(read_part(new.data, new.part, SCHEMA, SCHEMA, choice=RowChoice(positions, only=only)))
    assert len(list(read_part(new.data, new.part, SCHEMA, SCHEMA, choice=RowChoice(BitMap([99]))))) == 1

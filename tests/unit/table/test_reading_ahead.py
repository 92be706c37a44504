"""Parts that are read by threads while the rows of earlier ones are used."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest

import instar
from instar.errors import CorruptTableError
from instar.storage import directory
from instar.table.read.rows import read_written

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from instar import Table


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    """Return a table of forty small parts with gaps, which are read as larger ones are."""
    monkeypatch.setattr("instar.table.read.reading.SMALL_PART", 0)
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("t", "k bigint, name string")
        for part in range(40):
            keys = range(part * 10, part * 10 + 10)
            table.append(pa.table({"k": list(keys), "name": [f"row {key}" for key in keys]}))
        table.delete("k % 7 = 0")
        yield table


def test_rows_come_in_the_order_of_their_parts(table: Table) -> None:
    """Whichever part is read first; also under a condition, and less what was retracted."""
    left = [key for key in range(400) if key % 7]
    assert table.to_arrow().column("k").to_pylist() == left
    assert table.to_arrow(columns=["name"]).column(0).to_pylist() == [f"row {key}" for key in left]
    even = table.to_arrow("k % 2 = 0").column("k").to_pylist()
    assert even == [key for key in left if key % 2 == 0]


def test_damage_is_found_where_it_is(table: Table, tmp_path: Path) -> None:
    """What comes before the damaged part is still read, and nothing that comes after it."""
    with table.snapshot() as snapshot:
        keys = [batch.column("k")[0].as_py() for batch in snapshot.to_batches()]
        files = sorted(
            (tmp_path / "lake").glob("tables/*/parts/**/*.parquet"), key=lambda file: file.stat().st_mtime_ns
        )
        files[5].write_bytes(b"damaged")
        batches = snapshot.to_batches()
        assert [next(batches).column("k")[0].as_py() for _ in range(5)] == keys[:5]
        with pytest.raises(CorruptTableError):
            next(batches)


def test_whoever_stops_early_leaves_no_thread_behind(table: Table) -> None:
    """An iterator that is closed lets go of the parts that it has not handed out."""
    before = threading.active_count()
    with closing(cast("Generator[pa.RecordBatch]", table.snapshot().to_batches())) as batches:
        next(batches)
    assert threading.active_count() == before


def test_a_head_opens_no_part_ahead(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as it has rows of, and no more."""
    opened: list[str] = []
    location = directory.DirectoryBlob.location

    def noted(self: directory.DirectoryBlob, key: str) -> str:
        opened.append(key)
        return location(self, key)

    monkeypatch.setattr(directory.DirectoryBlob, "location", noted)
    assert table.head(15).num_rows == 15
    assert len([key for key in opened if "/parts/" in key]) == 2


def test_row_groups_of_a_single_part_are_read_ahead(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no next part to read meanwhile, but a large one has row groups."""
    asked: list[bool] = []

    def noted(*given: Any, ahead: bool = False, **more: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401
        asked.append(ahead)
        return read_written(*given, ahead=ahead, **more)

    monkeypatch.setattr("instar.table.read.reading.read_written", noted)
    assert table.to_arrow("k = 12").num_rows == 1
    assert asked == [True]

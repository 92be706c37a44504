"""A reader that began before a compaction and a vacuum finishes with the right rows, or is told why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pytest

import instar
from instar.errors import CorruptTableError, LeaseExpiredError
from instar.table.log.rollup import ROLLUP_EVERY
from tests.unit.cli.command import instar as command

if TYPE_CHECKING:
    from pathlib import Path

    from instar import Snapshot, Store, Table


def _table(store: Store) -> Table:
    table = store.create_table("t", "n bigint", order_by=["n"])
    for n in range(6):
        table.append(pa.table({"n": [n, n + 10]}))
    return table


def _change(table: Table) -> None:
    """Do what would take the files away from a reader that nobody knows of."""
    table.delete("n = 3")
    table.compact(full=True)
    table.vacuum(grace_ms=0)


def _end_leases(snapshot: Snapshot, place: Path) -> None:
    """Have all leases on a store expire."""
    leases = snapshot._services.leases
    for lease_id, lease in leases._held.items():
        leases._held[lease_id] = msgspec.structs.replace(lease, expires_at=0)
    for path in place.rglob("leases/*"):
        path.unlink()


def test_a_reader_finishes_what_it_began(tmp_path: Path) -> None:
    """Between two batches all that it reads is replaced; a reader that begins later sees the new rows."""
    with instar.open(tmp_path) as store:
        table = _table(store)
        with table.snapshot() as snapshot:
            batches = snapshot.to_batches()
            rows = [next(batches)]
            _change(table)
            rows += batches
            assert sorted(pa.Table.from_batches(rows)["n"].to_pylist()) == [*range(6), *range(10, 16)]
            kept = table.vacuum(grace_ms=0, dry_run=True)
        assert table.vacuum(grace_ms=0).objects > kept.objects
        assert table.count() == 11


def test_a_reader_whose_lease_expired_is_told_so(tmp_path: Path) -> None:
    """Not that a file is missing: that is said only where nobody may delete it."""
    with instar.open(tmp_path) as store:
        table = _table(store)
        snapshot = table.snapshot()
        _end_leases(snapshot, tmp_path)
        assert snapshot.to_arrow().num_rows == 12  # nothing is missing yet
        _change(table)
        with pytest.raises(LeaseExpiredError, match="lease expired, and a vacuum"):
            snapshot.to_arrow()
        with table.snapshot() as held:
            for part in tmp_path.rglob("parts/*.parquet"):
                part.unlink()
            with pytest.raises(CorruptTableError, match="its file is missing"):
                held.to_arrow()


def test_a_reader_whose_lease_expired_is_told_so_of_sheets_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was retracted is in another sheet by now, and the parts are still there."""
    monkeypatch.setattr("instar.table.write.append.INLINE_BITMAPS", 0)
    with instar.open(tmp_path) as store, instar.open(tmp_path) as other:
        table = _table(store)
        table.delete("n = 3")
        table.delete("n = 4")
        with other.table("t").snapshot() as snapshot:
            _end_leases(snapshot, tmp_path)
            for n in range(ROLLUP_EVERY):
                table.append(pa.table({"n": [n]}))
            table.vacuum(grace_ms=0)
            with pytest.raises(LeaseExpiredError, match="lease expired, and a vacuum"):
                snapshot.to_arrow()
        with other.table("t").snapshot() as held:
            for sheet in tmp_path.rglob("retractions/*"):
                sheet.unlink()
            with pytest.raises(CorruptTableError, match=r"retraction sheet .* it is missing"):
                held.to_arrow()


def test_history_is_let_go_by_command(tmp_path: Path) -> None:
    """`instar retain` says what can still be read."""
    with instar.open(tmp_path) as store:
        _table(store).configure(retention="0ms")
    done = command("retain", "t", "--dry-run", "--store", str(tmp_path))
    assert done.stdout.startswith("The earliest time that can be read would be ")
    done = command("retain", "t", "--store", str(tmp_path))
    assert done.stdout.startswith("The earliest time that can be read is now ")
    with instar.open(tmp_path) as store:
        assert store.table("t").since == store.table("t").upper - 1
        store.table("t").configure(retention="off")
    assert (
        command("retain", "t", "--store", str(tmp_path)).stdout
        == "All of the history stays: its retention is off.\n"
    )

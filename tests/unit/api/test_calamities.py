"""What befalls a store from outside: it is removed, its logs are lost, disks are full, clocks are wrong."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg
import pyarrow as pa
import pytest

from instar.api import Store, open_store
from instar.errors import (
    CorruptTableError,
    StorageDeniedError,
    StorageError,
    TableNotFoundError,
    UsageError,
)
from instar.table import wall_clock
from instar.table.layout import lease_key, part_key
from instar.table.log.leases import LEASE_MS
from tests.servers import postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from instar.storage.blob import Data
    from testbed.servers import PostgresServer

__all__ = ["postgres"]

ROWS = pa.table({"n": [1, 2, 3]})
HOUR = 60 * 60 * 1000


@pytest.mark.parametrize("anew", [False, True])
def test_nothing_is_committed_to_a_store_that_was_removed(tmp_path: Path, *, anew: bool) -> None:
    """A handle says so instead of acknowledging a commit that nobody will ever find."""
    with open_store(tmp_path / "lake") as store:
        table = store.create_table("events", "n bigint")
        for _ in range(5):
            table.append(ROWS)
        shutil.rmtree(tmp_path / "lake")
        if anew:
            with open_store(tmp_path / "lake") as other:
                other.create_table("events", "n bigint, m int").append(ROWS)
        with pytest.raises(CorruptTableError, match="removed or replaced while this handle was open"):
            table.append(ROWS)
        with pytest.raises(CorruptTableError, match="removed or replaced"):
            table.evolve().add_column("z", "int").commit()
    if anew:
        with open_store(tmp_path / "lake") as store:
            assert store.table("events").snapshot().to_arrow().num_rows == 3
            store.table("events").append(ROWS)


def test_logs_that_are_gone_from_their_server_are_missed(tmp_path: Path, postgres: PostgresServer) -> None:
    """No commit waits for them, and no vacuum takes the files of all tables for rubbish."""
    logs = postgres.url("vanishing")
    with open_store(tmp_path / "lake", consensus=logs) as store:
        table = store.create_table("events", "n bigint")
        table.append(ROWS)
        with psycopg.connect(postgres.url().partition("&schema=")[0], autocommit=True) as connection:
            connection.execute("drop schema vanishing cascade")
        with pytest.raises(CorruptTableError, match="removed or replaced"):
            table.append(ROWS)
        before = sorted((tmp_path / "lake").rglob("*.parquet"))
        with pytest.raises(UsageError, match="not in the one given"):
            store.vacuum(grace_ms=0)
        assert sorted((tmp_path / "lake").rglob("*.parquet")) == before


def with_clock(store: Store, clock: Callable[[], int]) -> Store:
    """Return the store as somebody else opened it whose clock is another."""
    return Store(store.location, replace(store._services, clock=clock))


@pytest.mark.parametrize("grace", [0, 24 * HOUR])
def test_a_machine_whose_clock_is_ahead_does_not_vacuum(tmp_path: Path, grace: int) -> None:
    """To it, files that are being written look old."""
    with open_store(tmp_path / "lake") as store:
        table = store.create_table("events", "n bigint")
        table.append(ROWS)
        skewed = with_clock(store, lambda: wall_clock() + 25 * HOUR)
        for vacuum in (skewed.vacuum, skewed.table("events").vacuum):
            with pytest.raises(UsageError, match="1500 minutes ahead of the store's"):
                vacuum(grace_ms=grace)
        assert table.snapshot().to_arrow().num_rows == 3
        assert not list((tmp_path / "lake").rglob("clock"))


def test_a_lease_lives_by_the_clock_of_the_store(tmp_path: Path) -> None:
    """A writer whose clock is behind, and whose leases say that they have expired, loses nothing."""
    with open_store(tmp_path / "lake") as store:
        services = store.create_table("events", "n bigint")._services
        table_id = store.table("events").state.table_id
        late = replace(services, clock=lambda: wall_clock() - HOUR)
        lease = late.leases.take(table_id, 0, "late")
        assert lease.expires_at < wall_clock()
        services.blob.put(part_key(table_id, "late", 0), b"not committed yet")
        store.vacuum(grace_ms=0)
        assert services.blob.find(part_key(table_id, "late", 0)) is not None
        late.leases.release(lease)
        store.vacuum(grace_ms=0)
        assert services.blob.find(part_key(table_id, "late", 0)) is None


def test_a_lease_that_cannot_be_read_holds_until_it_must_have_expired(store: Store) -> None:
    """Nobody knows what it is for; after that it goes with the rest."""
    table = store.create_table("events", "n bigint")
    services, key = table._services, lease_key(table.state.table_id, "a" * 32)
    services.blob.put(key, b"")
    recent = with_clock(store, wall_clock)
    with pytest.raises(CorruptTableError, match=r"lease .* is corrupt"):
        recent.vacuum(grace_ms=0)
    later = with_clock(store, lambda: wall_clock() + LEASE_MS + 1000)
    later.vacuum(grace_ms=0)
    assert services.blob.find(key) is None


def test_a_full_disk_can_be_vacuumed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a vacuum writes only saves work, and deleting is what is wanted."""
    table = store.create_table("events", "n bigint")
    table.append(ROWS)
    services, key = table._services, part_key(table.state.table_id, "dead", 0)
    services.blob.put(key, b"rubbish")

    def put(name: str, data: Data, **_: bool) -> None:
        raise StorageError(f"writing {len(data)} bytes of {name}", "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(services.blob, "put", put)
        assert store.vacuum(grace_ms=0).objects == 1
    assert services.blob.find(key) is None
    assert table.snapshot().to_arrow().num_rows == 3


def test_a_vacuum_goes_on_after_a_table_that_cannot_be_read(tmp_path: Path) -> None:
    """Its error comes at the end, and nothing of it is deleted."""
    with open_store(tmp_path / "lake") as store:
        for name in ("a", "b"):
            store.create_table(name, "n bigint").append(ROWS)
        services, ids = store._services, {name: store.table(name).state.table_id for name in ("a", "b")}
        for table_id in ids.values():
            services.blob.put(part_key(table_id, "dead", 0), b"rubbish")
        (tmp_path / "lake/log/a/00000000000000000001").write_bytes(b"x")
        with pytest.raises(CorruptTableError, match="commit 1 of `a`"):
            store.vacuum(grace_ms=0)
        assert services.blob.find(part_key(ids["a"], "dead", 0)) is not None
        assert services.blob.find(part_key(ids["b"], "dead", 0)) is None


def test_a_closed_store_gives_no_leases(tmp_path: Path) -> None:
    """Nobody would renew them, and a vacuum could take what is being read."""
    with open_store(tmp_path / "lake") as store:
        table = store.create_table("events", "n bigint")
        table.append(ROWS)
    with pytest.raises(UsageError, match="closed"):
        table.snapshot()
    with pytest.raises(UsageError, match="open it again"):
        table.append(ROWS)


def test_a_handle_of_a_table_that_began_anew_is_on_the_old_one(tmp_path: Path) -> None:
    """Its history ends where the table was dropped, the new one's begins there, and it vacuums nothing."""
    with open_store(tmp_path / "lake") as store:
        old = store.create_table("events", "n bigint")
        old.append(ROWS)
        store.drop_table("events")
        new = store.create_table("events", "other int")
        new.evolve().add_column("b", "int").commit()
        assert [commit.what for commit in new.history()] == ["evolved to schema 1", "created"]
        assert [commit.what for commit in new.history(1)] == ["evolved to schema 1"]
        assert [commit.seqno for commit in old.history()] == [2, 1, 0]
        assert [commit.what for commit in old.history(1)] == ["dropped"]
        with pytest.raises(TableNotFoundError):
            old.vacuum(grace_ms=0)


def test_who_may_not_write_may_read(tmp_path: Path) -> None:
    """Without a lease, of which a vacuum would have to know; writing is refused with the reason."""
    lake = tmp_path / "lake"
    with open_store(lake) as store:
        store.create_table("events", "n bigint").append(ROWS)
    with open_store(lake, create=False) as store, denied(store):
        table = store.table("events")
        assert table.snapshot().to_arrow(where="n > 1").num_rows == 2
        assert [rows.num_rows for rows in table.snapshot().to_batches()] == [3]
        assert table.explain("n > 5").read == 0
        with pytest.raises(StorageDeniedError, match="Read-only file system"):
            table.append(ROWS)


@contextmanager
def denied(store: Store) -> Iterator[None]:
    """Let the disk be mounted for reading only; root may do everything else."""

    def put(name: str, data: Data, **_: bool) -> None:
        raise StorageDeniedError(f"writing {len(data)} bytes of {name}", "Read-only file system")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store._services.blob, "put", put)
        yield


def test_vacuums_leave_no_directories_behind(tmp_path: Path) -> None:
    """The store's clock is asked in one place, however often a daemon vacuums."""
    with open_store(tmp_path) as store:
        store.create_table("t", "k int")
        store.vacuum()
        before = sorted(tmp_path.glob("tables/*"))
        for _ in range(3):
            store.vacuum()
        assert sorted(tmp_path.glob("tables/*")) == before

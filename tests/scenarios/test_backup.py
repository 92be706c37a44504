"""A copy of a store that is written to meanwhile, as docs/deployment.md says: logs first, then data."""

from __future__ import annotations

import shutil
import threading
from typing import TYPE_CHECKING

import pyarrow as pa

import instar

if TYPE_CHECKING:
    from pathlib import Path


def test_a_copy_taken_while_a_store_is_written_to_is_a_consistent_past(tmp_path: Path) -> None:
    """The copy opens, and has all rows of the first commits and nothing of the later ones."""
    lake, copy = tmp_path / "lake", tmp_path / "copy"
    stop, begun = threading.Event(), threading.Event()

    def write() -> None:
        with instar.open(lake) as store:
            table = store.create_table("t", "k bigint")
            for at in range(2000):
                table.append(pa.table({"k": [at]}))
                if at == 20:
                    begun.set()
                if stop.is_set():
                    break

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert begun.wait(60)
        copy.mkdir()
        shutil.copy(lake / "instar.store", copy / "instar.store")
        shutil.copytree(lake / "log", copy / "log")
        shutil.copytree(lake / "tables", copy / "tables")
    finally:
        stop.set()
        writer.join()
    with instar.open(copy, create=False) as store, instar.open(lake) as original:
        rows = store.table("t").snapshot().to_arrow()["k"].to_pylist()
        assert sorted(rows) == list(range(len(rows)))
        assert 20 < len(rows) <= original.table("t").count()
        store.table("t").append(pa.table({"k": [-1]}))
        assert store.table("t").count() == len(rows) + 1

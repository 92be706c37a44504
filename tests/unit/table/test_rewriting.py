"""Rewriting in process: as much memory as is needed for a piece, however large the table is."""

from __future__ import annotations

import resource
import signal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import instar as library
from instar.errors import StorageError
from instar.parts import PartLimits, merge
from instar.table.housekeeping import rewrite

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from instar import Table

PIECE = 200_000
"""How many bytes are sorted at once."""
ROWS = 10_000
"""In each part: about as many bytes as a piece."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pieces and parts be small, so that a table of some megabytes is large."""
    limits = PartLimits(file_bytes=PIECE, buffer_bytes=PIECE)
    monkeypatch.setattr("instar.table.write.append.PartLimits", lambda: limits)
    monkeypatch.setattr(rewrite, "SORTED_BYTES", PIECE)
    monkeypatch.setattr(merge, "TOGETHER_BYTES", PIECE)
    monkeypatch.setattr(merge, "_LEAST_BYTES", 1000)
    monkeypatch.setattr("instar.parts.clustering.SAMPLE_ROWS", 2000)


def _peak(work: Callable[[], object]) -> int:
    """Return how much memory Arrow held at most while something was done."""
    before, own = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(own)
    try:
        work()
    finally:
        pa.set_memory_pool(before)
    return int(own.max_memory())


def _table(store: library.Store, name: str, parts: int, layout: dict[str, list[str]]) -> Table:
    table = store.create_table(name, "id bigint, v double", **layout)  # type: ignore[arg-type]
    random = np.random.default_rng(1)
    for _ in range(parts):
        table.append(pa.table({"id": random.integers(0, 10**9, ROWS), "v": random.random(ROWS)}))
    return table


@pytest.mark.parametrize(
    ("layout", "streamed_bytes"),
    [({}, 10**9), ({"order_by": ["id"]}, 10**9), ({"order_by": ["id"]}, 1), ({"cluster_by": ["id", "v"]}, 1)],
)
def test_memory_does_not_grow_with_the_table(
    tmp_path: Path, layout: dict[str, list[str]], streamed_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether runs are merged as they are, or sorted in pieces that wait on the disk."""
    monkeypatch.setattr(rewrite, "STREAMED_BYTES", streamed_bytes)
    peaks = []
    with library.open(tmp_path / "lake") as store:
        for parts in (6, 24):
            table = _table(store, f"t{parts}", parts, layout)
            peaks.append(_peak(lambda table=table: table.compact(full=True)))  # type: ignore[misc]
            assert table.count() == parts * ROWS
    assert peaks[1] < 1.5 * peaks[0]


def test_a_local_disk_that_is_full_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table stays as it was, and nothing stays on the disk."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with library.open(tmp_path / "lake") as store:
        table = _table(store, "t", 6, {"order_by": ["id"]})
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (PIECE // 2, before[1]))
        try:
            with pytest.raises(StorageError, match="TMPDIR"):
                table.compact(full=True)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert table.state.totals.parts == 6
        assert table.count() == 6 * ROWS
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]

"""Processes that write to a stream, repartition and archive it are killed; no row is lost or doubled."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import instar
from tests.crash.stream_children import FIRST, KINDS, NAME, SCHEMA, batch

if TYPE_CHECKING:
    from collections.abc import Iterable

KILLS = 4


def _names(stream: instar.Stream, *kinds: str) -> Counter[str]:
    return Counter(name for kind in kinds for name in stream.snapshot(kind).to_arrow()["name"].to_pylist())


def _writes(names: Iterable[str]) -> set[str]:
    return {name.rpartition("/")[0] for name in names}


def test_writes_and_jobs_killed_at_any_moment_lose_and_double_nothing(tmp_path: Path, effort: int) -> None:
    """Every write is whole or absent; what was acknowledged is there; jobs have copied each row once."""
    location = str(tmp_path / "lake")
    store = instar.open(location)
    store.create_stream(NAME, SCHEMA, version="v0.0.1", time="at", kinds=KINDS)
    chance = random.Random(5)
    told: set[str] = set()
    command = [sys.executable, str(Path(__file__).with_name("stream_children.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as children:
        assert children.stdin is not None
        assert children.stdout is not None
        for kill in range(KILLS * effort):
            after, pause = chance.choice([0, 1, 1, 2]), chance.uniform(0.0, 0.3)
            task = {"location": location, "seed": kill, "after": after, "seconds": pause}
            children.stdin.write(json.dumps(task) + "\n")
            children.stdin.flush()
            told |= set(json.loads(children.stdout.readline()))
            stream = store.stream(NAME)
            found = _names(stream, "hourly")
            assert set(found.values()) <= {1}, "doubled"
            assert told <= _writes(found), "lost"
            assert len(found) == 3 * len(_writes(found)), "half of a write"
        children.stdin.close()
    stream = store.stream(NAME)
    stream.repartition(by="billed")
    for day in range(5):
        stream.close_day(None, FIRST + timedelta(days=day))
    stream.archive(before=FIRST + timedelta(days=3), drop=True)
    assert len(stream.tables("regular")) == 2
    everything = _names(stream, "hourly")
    assert _names(stream, "repartitioned") == everything
    assert _names(stream, "eod") == everything
    assert _names(stream, "regular", "archive") == everything
    assert told
    for name in sorted(told)[:3]:  # with its token, a write that was acknowledged is not repeated
        stream.write(batch(name), version="v0.0.1", token=name)
    assert _names(stream, "hourly") == everything

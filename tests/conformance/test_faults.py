"""Writers that retry as they should, on services that fail in every way, lose nothing and double nothing."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from instar.errors import StorageError, StorageTimeoutError
from instar.storage import AppendResult, BlobConsensus, MemoryConsensus, ObjectBlob, open_consensus
from tests.faults import Faults, UnreliableBlob, UnreliableConsensus

if TYPE_CHECKING:
    from instar.storage import Consensus
    from testbed.servers import PostgresServer
    from tests.conformance.conftest import Place

KEY = "a/b"


class Writer:
    """Appends entries with ids of its own, and knows which were acknowledged and which may have landed."""

    def __init__(self, name: str, consensus: Consensus) -> None:
        self.name = name
        self.consensus = consensus
        self.count = 0
        self.last: int | None = None
        self.acknowledged: set[bytes] = set()
        self.unknown: set[bytes] = set()
        self.refused: set[bytes] = set()

    def step(self) -> None:
        """Append one entry after the newest that this writer knows; look at the log if that fails."""
        entry = f"{self.name}:{self.count}".encode()
        self.count += 1
        try:
            landed = self.consensus.append(KEY, self.last, entry)
        except StorageTimeoutError:
            self.unknown.add(entry)
        except StorageError:
            self.refused.add(entry)
        else:
            if landed is AppendResult.LANDED:
                self.acknowledged.add(entry)
                self.last = 0 if self.last is None else self.last + 1
                return
            self.refused.add(entry)
        self.refresh()

    def refresh(self) -> None:
        """Catch up with the log, if it can be read."""
        try:
            news = self.consensus.scan(KEY, 0 if self.last is None else self.last + 1)
        except StorageError:
            return
        if news:
            assert self.last is None or news[0].seqno > self.last
            self.last = news[-1].seqno


def check(log: list[bytes], writers: list[Writer]) -> None:
    """Compare what the log held over time with what its writers were told."""
    assert len(set(log)) == len(log)
    assert {entry for writer in writers for entry in writer.acknowledged} <= set(log)
    assert not {entry for writer in writers for entry in writer.refused} & set(log)
    assert sum(len(writer.acknowledged) for writer in writers) > len(log) / 2


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["blob", "consensus"])
def test_random_faults_lose_and_double_nothing(kind: str, seed: int) -> None:
    """Three writers and a truncator, thousands of calls, one in ten of which fails in one of three ways."""
    blob, memory = ObjectBlob.in_memory(), MemoryConsensus()
    faults = Faults(seed=seed, rate=0.1)

    def unreliable() -> Consensus:
        if kind == "blob":
            return BlobConsensus(UnreliableBlob(blob, faults))
        return UnreliableConsensus(memory, faults)

    reliable: Consensus = BlobConsensus(blob) if kind == "blob" else memory
    writers = [Writer(name, unreliable()) for name in "abc"]
    truncator = unreliable()
    chance = random.Random(seed)
    log: list[bytes] = []
    for _ in range(1500):
        chance.choice(writers).step()
        # The whole history, though the log itself forgets.
        for entry in reliable.scan(KEY, len(log)):
            assert entry.seqno == len(log)
            log.append(entry.data)
        if chance.random() < 0.05:
            with suppress(StorageError):
                truncator.truncate(KEY, len(log) - chance.randrange(4))
        if chance.random() < 0.02:
            chance.choice(writers).consensus = unreliable()
    check(log, writers)
    assert len(faults.calls) > 1500


@pytest.mark.parametrize("place", ["blob-directory", "postgres"], indirect=True)
def test_a_writer_that_is_killed_keeps_its_promises(place: Place) -> None:
    """Every entry that it reported is there, in order, and at most one more after its last report."""
    script = Path(__file__).with_name("append_in_a_loop.py")
    chance = random.Random(7)
    for writer in range(3):
        task = {
            "blob_url": place.blob_url,
            "options": place.options,
            "consensus_url": place.consensus_url,
            "key": KEY,
            "writer": writer,
            "count": 100_000,
            "report": True,
        }
        process = subprocess.Popen(
            [sys.executable, script, json.dumps(task)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(chance.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        reported = [first.strip(), *process.stdout.read().split("\n")[:-1]]
        process.wait()
        process.stdout.close()
        entries = place.open_consensus().scan(KEY)
        assert [entry.seqno for entry in entries] == list(range(len(entries)))
        mine = [entry.data.decode() for entry in entries if entry.data.decode().startswith(f"{writer}:")]
        assert mine[: len(reported)] == reported
        assert len(mine) <= len(reported) + 1


def test_a_server_that_keeps_crashing_loses_and_doubles_nothing(postgres: PostgresServer) -> None:
    """Two writers go on through three crashes of PostgreSQL."""
    url = postgres.url()
    writers = [Writer(name, open_consensus(url, ObjectBlob.in_memory())) for name in "ab"]
    done = threading.Event()

    def work(writer: Writer) -> None:
        while not done.is_set():
            writer.step()

    threads = [threading.Thread(target=work, args=(writer,)) for writer in writers]
    for thread in threads:
        thread.start()
    for _ in range(3):
        time.sleep(0.3)
        postgres.crash()
        postgres.start()
    time.sleep(0.3)
    done.set()
    for thread in threads:
        thread.join()
    entries = writers[0].consensus.scan(KEY)
    assert [entry.seqno for entry in entries] == list(range(len(entries)))
    check([entry.data for entry in entries], writers)
    for writer in writers:
        writer.consensus.close()

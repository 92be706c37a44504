"""`instar maintain`: all tables at once, or again and again until it is told to stop."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pyarrow as pa
import pytest

import instar as library
from tests.unit.cli.command import instar


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Make a store with two tables of small parts, one of which keeps no history."""
    with library.open(tmp_path / "lake") as opened:
        for name, retention in (("a", "0ms"), ("b/c", "7d")):
            table = opened.create_table(name, "n bigint", order_by=["n"], options={"retention": retention})
            for n in range(5):
                table.append(pa.table({"n": [n, n + 10]}))
            table.delete("n = 3")
    return str(tmp_path / "lake")


def test_every_table_is_maintained_once(store: str) -> None:
    """History goes, parts become few, what nobody needs is deleted; a damaged table stops no others."""
    done = instar("maintain", "--grace", "0ms", "--json", "--store", store)
    report = json.loads(done.stdout)
    assert (done.returncode, report["tables"], report["moved"], report["failures"]) == (0, 2, 2, [])
    assert report["compaction"]["parts_before"] == 10
    assert report["vacuum"]["objects"] >= 10
    with library.open(store) as opened:
        assert opened.table("a").state.totals.retracted == 0
        assert opened.table("b/c").state.totals.retracted == 1
        assert opened.table("a").count() == opened.table("b/c").count() == 9
        table = opened.table("a")
        table.append(pa.table({"n": [1]}))
    max(Path(store).glob("log/b%2Fc/0*")).write_bytes(b"damaged")
    done = instar("maintain", "--store", store)
    assert done.returncode == 1
    assert done.stdout.startswith("1 table maintained: ")
    assert "b/c: " in done.stdout


def test_one_leads_and_a_daemon_stops_when_asked(store: str) -> None:
    """While it runs, others stand by; it serves counters; SIGTERM ends it and lets others lead at once."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["maintain", "--period", "1h", "--grace", "0ms", "--metrics-port", str(port), "--store", store]
    daemon = subprocess.Popen(
        [sys.executable, "-m", "instar", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert daemon.stdout is not None
        assert daemon.stdout.readline().startswith("2 tables maintained: ")
        counters = urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        assert "instar_maintained_total 2.0" in counters
        standby = instar("maintain", "--store", store)
        assert standby.stdout.startswith("Nothing done: ")
        daemon.send_signal(signal.SIGTERM)
        _, errors = daemon.communicate(timeout=60)
        assert (daemon.returncode, errors) == (0, "")
    finally:
        daemon.kill()
        daemon.wait()
    assert instar("maintain", "--store", store).stdout.startswith("2 tables maintained: ")


def test_a_daemon_goes_on_after_a_pass_that_failed(store: str) -> None:
    """It says what was wrong, and the next pass comes as always; only a first one that fails ends it."""
    command = ["maintain", "--period", "200ms", "--store", store]
    daemon = subprocess.Popen(
        [sys.executable, "-m", "instar", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert daemon.stdout is not None
        assert daemon.stderr is not None
        assert daemon.stdout.readline().startswith("2 tables maintained: ")
        probes = Path(store, "tables", "0" * 32)
        while not probes.is_file():  # so that nothing can be written below it
            shutil.rmtree(probes, ignore_errors=True)
            with suppress(FileExistsError):
                probes.touch(exist_ok=False)
        assert daemon.stderr.readline().startswith("error: ")
        probes.unlink()
        while not daemon.stdout.readline().startswith("2 tables maintained: "):
            assert daemon.poll() is None
    finally:
        daemon.kill()
        daemon.communicate()
    for leader in Path(store).glob("log/*maintenance*"):
        shutil.rmtree(leader)
    shutil.rmtree(probes, ignore_errors=True)
    probes.touch()
    assert instar("maintain", "--period", "1h", "--store", store).returncode != 0
    probes.unlink()  # whoever could not do it does not keep others from it
    assert instar("maintain", "--store", store).stdout.startswith("2 tables maintained: ")

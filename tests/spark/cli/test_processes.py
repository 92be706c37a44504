"""Commands in processes of their own, with a Spark of their own: what they print, leave and end with."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import instar
from tests.unit.cli.command import PROCESS, instar_process

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

FOREVER = "select sum(hash(a.id, b.id, t.k)) from t, range(1000000) a, range(1000000) b"


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a store with a table, in a directory that is the current one."""
    monkeypatch.chdir(tmp_path)
    with instar.open("lake") as store:
        store.create_table("t", "k int, tag string").append(
            pa.table({"k": pa.array([1], pa.int32()), "tag": ["[/red]"]})
        )
    return "lake"


def test_a_query_prints_its_rows_and_leaves_nothing(lake: str, tmp_path: Path) -> None:
    """Nothing is logged beside the answer, whatever it looks like, and no directory is made."""
    done = instar_process("query", "with c as (select tag from t) select * from c", "--store", lake)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.strip() for line in done.stdout.splitlines() if line.strip()] == ["tag", "[/red]"]
    wrong = instar_process("query", "select nope from t", "--store", lake)
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == [lake]


@pytest.mark.parametrize("command", ["query", "import"])
def test_an_interruption_is_one_line(command: str, lake: str, tmp_path: Path) -> None:
    """Ctrl-C reaches Python and everything it has started; the user reads one line."""
    if command == "query":
        arguments = ["query", FOREVER, "--store", lake]
    else:
        file = tmp_path / "x.csv"
        file.write_text("k,tag\n" + "1,a\n" * 20_000_000, encoding="utf-8")
        arguments = ["import", str(file), "-t", "t", "--store", lake]
    process = subprocess.Popen(
        [*PROCESS, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    leases = tmp_path / "lake" / "tables"
    while process.poll() is None and not list(leases.glob("*/leases/*")):
        time.sleep(0.1)
    time.sleep(2)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert err == "error: interrupted; nothing that was committed is lost\n"
    assert (process.returncode, out) == (130, "")

"""Opening a table in a process of its own: run as a script by the benchmarks, this prints what it took.

    python -m bench.cold ENGINE LOCATION PARTS WARM_UP

The process first opens the tiny table at WARM_UP, so that no import and no pool's start is measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

from bench.engines import load_engine
from bench.workload import Question

__all__ = ["WARM_UP_PARTS", "Opened", "open_cold"]

WARM_UP_PARTS: Final = 10
_COUNTERS: Final = Path("/proc/self/io")
_STATUS: Final = Path("/proc/self/status")


class Opened(NamedTuple):
    """What it took to open a table and plan a query."""

    seconds: float
    cpu_seconds: float
    files: int
    peak_bytes: int | None
    read_bytes: int | None
    read_calls: int | None


def open_cold(engine: str, location: str, parts: int, warm_up: str) -> Opened:
    """Open a table in a new process, and check that the right number of files remained."""
    command = [sys.executable, "-m", "bench.cold", engine, location, str(parts), warm_up]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    opened = Opened(**json.loads(done.stdout))
    expected = Question.about(parts).answer()
    assert opened.files == expected, f"{engine} plans {opened.files} files and not {expected}"
    return opened


def main() -> None:
    """Measure, and print what was measured."""
    name, location, parts, warm_up = sys.argv[1:]
    engine = load_engine(name)
    engine.plan(warm_up, Question.about(WARM_UP_PARTS))
    read, cpu, start = _counters(), time.process_time(), time.perf_counter()
    files = engine.plan(location, Question.about(int(parts)))
    seconds, cpu, now = time.perf_counter() - start, time.process_time() - cpu, _counters()
    peak = _peak_bytes()
    size, calls = (now[at] - read[at] if now else None for at in ("rchar", "syscr"))
    print(json.dumps(Opened(seconds, cpu, files, peak, size, calls)._asdict()))


def _peak_bytes() -> int | None:
    """Return the most memory that this program has had; `getrusage` would tell of its parent's too."""
    if not _STATUS.exists():
        return None
    lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) * 1024


def _counters() -> dict[str, int]:
    """Return what the system has counted for this process, where it does."""
    if not _COUNTERS.exists():
        return {}
    lines = (line.split(": ") for line in _COUNTERS.read_text().splitlines())
    return {name: int(value) for name, value in lines}


if __name__ == "__main__":
    main()

"""`./dev` keeps its promises."""

from __future__ import annotations

import subprocess
import time

from tests.meta.modules import ROOT


def test_dev_starts_at_once_when_nothing_changed() -> None:
    """An environment that is up to date costs less than two seconds."""
    subprocess.run(["./dev", "run", "true"], cwd=ROOT, check=True)
    start = time.monotonic()
    subprocess.run(["./dev", "run", "true"], cwd=ROOT, check=True)
    assert time.monotonic() - start < 2


def test_dev_refuses_what_it_does_not_know() -> None:
    """An unknown command prints the help and fails as wrong usage."""
    done = subprocess.run(["./dev", "explode"], cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "usage: ./dev COMMAND" in done.stderr

"""Bars of long work: on a terminal only, and one way for all commands."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console

from instar.cli.progress import progress, progress_bars
from tests.meta.modules import SOURCE

if TYPE_CHECKING:
    import pytest


def _terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Take what is shown on a terminal."""
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=100)
    monkeypatch.setattr("instar.cli.progress.stderr_console", lambda: console)
    return shown


def test_a_terminal_shows_a_bar_for_each_thing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its name as it is, however odd, and tells how much is done of how much."""
    shown = _terminal(monkeypatch)
    with progress_bars("tables") as tell:
        assert tell is not None
        tell("[red]a", 3, 10)
        tell("b", 1, None)
    assert "[red]a" in shown.getvalue()
    assert "3/10" in shown.getvalue()
    assert "tables" in shown.getvalue()


def test_bytes_are_told_in_units_that_people_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar of bytes says how many there are."""
    shown = _terminal(monkeypatch)
    with progress("compacting") as tell:
        tell(512, 2048)
    assert "0.5/2.0 KiB" in shown.getvalue()


def test_nothing_is_shown_when_piped(capfd: pytest.CaptureFixture[str]) -> None:
    """A program that reads the answers is not told of progress."""
    with progress_bars("tables") as bars, progress("x") as tell:
        assert bars is None
        tell(1, 2)
    assert capfd.readouterr() == ("", "")


def test_bars_are_drawn_in_one_place() -> None:
    """No other module of the commands knows what draws them."""
    drawing = [path.name for path in (SOURCE / "cli").glob("*.py") if "rich.progress" in path.read_text()]
    assert drawing == ["progress.py"]

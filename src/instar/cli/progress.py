"""Progress of long work: a bar on a terminal for each thing that is running."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from instar.cli.output import stderr_console

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Tell", "progress", "progress_bars"]

Tell = Callable[[str, int, int | None], None]
"""Says what is going on, how much of it is done, and how much there is, if that is known."""


@contextmanager
def progress_bars(things: str | None = None) -> Iterator[Tell | None]:
    """Show how many bytes or things are done of what is told, a bar for each; None says that it is piped."""
    terminal = stderr_console()
    if not terminal.is_terminal:
        yield None
        return
    # Load the library for bars only if one is shown.
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    counts = (
        [DownloadColumn(binary_units=True)] if things is None else [MofNCompleteColumn(), TextColumn(things)]
    )
    said = TextColumn("{task.description}", markup=False)
    tasks = {}
    with Progress(
        said, BarColumn(), *counts, TimeRemainingColumn(), console=terminal, transient=True
    ) as bars:

        def tell(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=None)
            bars.update(tasks[what], completed=done, total=total)

        yield tell


@contextmanager
def progress(what: str, *, things: str | None = None) -> Iterator[Callable[[int, int | None], None]]:
    """Show one bar on a terminal, which the worker updates; print nothing when piped."""
    with progress_bars(things) as tell:
        if tell is None:
            yield lambda _, __: None
            return
        tell(what, 0, None)
        yield partial(tell, what)

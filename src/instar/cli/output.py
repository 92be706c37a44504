"""How answers are printed: tables for people, JSON for programs, one way of each."""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from _typeshed import ReadableBuffer

__all__ = [
    "JsonOption",
    "OutputError",
    "console",
    "error_json",
    "open_output",
    "print_json",
    "print_table",
    "stderr_console",
    "working",
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of text.")]

_PIPED_WIDTH = 1_000_000  # nothing is cut or folded for programs


class OutputError(Exception):
    """The standard output accepts nothing more; `hung_up` if its reader has closed it."""

    def __init__(self, why: str, *, hung_up: bool = False) -> None:
        self.hung_up = hung_up
        super().__init__(f"cannot write to the standard output: {why}")


class _Stdout(io.FileIO):
    """The standard output, whose failures can be told from those of files."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OutputError(
                error.strerror or str(error), hung_up=isinstance(error, BrokenPipeError)
            ) from error


@contextmanager
def open_output() -> Iterator[TextIO]:
    """Let everything that is printed meanwhile either arrive or end in an `OutputError`.

    Characters that the encoding lacks become question marks.
    """
    given = sys.stdout
    if given is None:  # closed by the parent process
        raise OutputError("it is closed")
    if not isinstance(given, io.TextIOWrapper):  # held in memory, where nothing fails
        yield given
        return
    raw = _Stdout(given.fileno(), "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw), given.encoding, "replace", line_buffering=given.isatty()
    )
    try:
        yield sys.stdout
    except OutputError:
        # What is left in the buffers goes nowhere, rather than into another error as the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), given.fileno())
        raise
    finally:
        sys.stdout = given


def console() -> Console:
    """Return the console for answers: as wide as the terminal, or as the answer if it is piped.

    It prints text of users, so nothing in it is markup.
    """
    piped = not sys.stdout.isatty()
    return Console(width=_PIPED_WIDTH if piped else None, highlight=False, markup=False, emoji=False)


def stderr_console() -> Console:
    """Return the console for everything else: errors and progress."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on a terminal that something is running; print nothing when piped."""
    terminal = stderr_console()
    if not terminal.is_terminal:
        yield
        return
    with terminal.status(f"{what} …"):
        yield


def print_json(value: Any) -> None:  # noqa: ANN401 -- whatever JSON can say
    """Print one JSON value."""
    unicode = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=not unicode) + "\n")


def error_json(code: str, message: str) -> dict[str, dict[str, str]]:
    """Return an error as JSON has it."""
    return {"error": {"code": code, "message": message}}


def print_table(
    columns: Iterable[str],
    rows: Iterable[Iterable[Any]],
    *,
    title: str | None = None,
    numbers: Container[int] = (),
) -> None:
    """Print rows under headings: plain where they are piped, and else `numbers` digit below digit."""
    if not sys.stdout.isatty():
        _print_plain([list(columns), *([_plain(cell) for cell in row] for row in rows)], title)
        return
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for at, name in enumerate(columns):
        number = at in numbers
        # A time on two lines cannot be pasted, and a number on two lines cannot be read.
        table.add_column(
            name, justify="right" if number else "left", no_wrap=number or name.startswith("at ")
        )
    for row in rows:
        table.add_row(*row)
    console().print(table)


def _print_plain(rows: list[list[str]], title: str | None) -> None:
    """Print rows aligned by spaces, and nothing else."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "   ".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    for line in ([] if title is None else [title]) + lines:
        sys.stdout.write(line.rstrip() + "\n")


def _plain(cell: object) -> str:
    return "" if cell is None else str(cell)

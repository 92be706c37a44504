"""How answers are printed: tables for people, JSON for programs, one way of each."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["JsonOption", "console", "format_bytes", "format_count", "print_json", "print_table", "working"]

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of text.")]

_PIPED_WIDTH = 160
_KIB = 1024


def console() -> Console:
    """Return the console for answers: as wide as the terminal, or wide enough for a file."""
    piped = not sys.stdout.isatty()
    return Console(width=_PIPED_WIDTH if piped else None, highlight=False)


def format_count(number: int) -> str:
    """Print a number with its thousands apart."""
    return f"{number:,}"


def format_bytes(number: int) -> str:
    """Print a size in the unit that suits it."""
    size = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < _KIB:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= _KIB
    return f"{size:.1f} TiB"


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on a terminal that something is going on; say nothing when piped."""
    terminal = Console(stderr=True)
    if not terminal.is_terminal:
        yield
        return
    with terminal.status(f"{what} …"):
        yield


def print_json(value: Any) -> None:  # noqa: ANN401 -- whatever JSON can say
    """Print one JSON value."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def print_table(columns: Iterable[str], rows: Iterable[Iterable[Any]], *, title: str | None = None) -> None:
    """Print rows under headings."""
    table = Table(*columns, box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console().print(table)

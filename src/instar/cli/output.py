"""How answers are printed: tables for people, JSON for programs, one way of each."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["JsonOption", "console", "print_json", "print_table"]

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of text.")]

_PIPED_WIDTH = 160


def console() -> Console:
    """Return the console for answers: as wide as the terminal, or wide enough for a file."""
    piped = not sys.stdout.isatty()
    return Console(width=_PIPED_WIDTH if piped else None, highlight=False)


def print_json(value: Any) -> None:  # noqa: ANN401 -- whatever JSON can say
    """Print one JSON value."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def print_table(columns: Iterable[str], rows: Iterable[Iterable[Any]], *, title: str | None = None) -> None:
    """Print rows under headings."""
    table = Table(*columns, box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console().print(table)

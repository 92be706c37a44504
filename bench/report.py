"""What a benchmark says: tables whose first figures are ratios, for people or as JSON for programs."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Column", "Report", "Section"]

_PIPED_WIDTH = 160


@dataclass(frozen=True)
class Column:
    """A column of a table: what it is called, and how its values are written."""

    heading: str
    form: str = ""

    def write(self, value: object) -> str:
        """Write a value; what was not measured is a dash."""
        return "-" if value is None else format(str(value) if self.form == "" else value, self.form)


@dataclass(frozen=True)
class Section:
    """One question, and the figures that answer it."""

    title: str
    columns: Mapping[str, Column]
    rows: Sequence[Mapping[str, Any]]
    notes: Sequence[str] = ()

    def table(self) -> Table:
        """Lay the figures out; words stand left and numbers right."""
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for name, column in self.columns.items():
            words = all(isinstance(row[name], str) for row in self.rows)
            table.add_column(column.heading, justify="left" if words else "right")
        for row in self.rows:
            table.add_row(*(column.write(row[name]) for name, column in self.columns.items()))
        return table


@dataclass
class Report:
    """Everything that one run has found."""

    command: str
    machine: dict[str, str]
    sections: list[Section] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def print(self) -> None:
        """Print tables: as wide as the terminal, or wide enough for a file."""
        console = Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH, highlight=False)
        for section in self.sections:
            console.print(section.title, style="bold")
            console.print(section.table())
            for note in section.notes:
                console.print(f"  {note}", style="dim")
            console.print()
        for skipped in self.skipped:
            console.print(f"Left out: {skipped}")
        facts = ", ".join(f"{name} {value}" for name, value in self.machine.items())
        console.print(f"{self.command} on {facts}")

    def print_json(self) -> None:
        """Print one JSON value with the figures as they were measured."""
        value = {
            "command": self.command,
            "machine": self.machine,
            "sections": [
                {"title": section.title, "rows": list(section.rows), "notes": list(section.notes)}
                for section in self.sections
            ],
            "skipped": self.skipped,
        }
        sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=asdict) + "\n")

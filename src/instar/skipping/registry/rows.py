"""All rows of the registry, and how they are found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from instar.schema import format_type
from instar.skipping.functions import Function, Mode
from instar.skipping.registry.collections import COLLECTIONS
from instar.skipping.registry.logic import LOGIC
from instar.skipping.registry.numbers import NUMBERS
from instar.skipping.registry.text import TEXT
from instar.skipping.registry.times import TIMES

if TYPE_CHECKING:
    from instar.skipping.expression import Call
    from instar.skipping.registry.row import Row

__all__ = ["BY_CLASS", "BY_SQL", "ROWS", "SUBJECTS", "load_row", "render_call"]

SUBJECTS: Final[dict[str, tuple[Row, ...]]] = {
    "logic and choices": LOGIC,
    "numbers": NUMBERS,
    "text": TEXT,
    "dates and times": TIMES,
    "arrays and maps": COLLECTIONS,
}
ROWS: Final[dict[str, Row]] = {row.name: row for rows in SUBJECTS.values() for row in rows}
"""Every function by its name."""
BY_SQL: Final[dict[str, Row]] = {name: row for row in ROWS.values() for name in row.sql}
"""Functions by the names by which SQL calls them."""
BY_CLASS: Final[dict[str, tuple[Row, tuple[str, ...]]]] = {
    class_: (row, fields) for row in ROWS.values() for class_, fields in row.classes.items()
}
"""Functions by their classes in Catalyst, with the fields that name their arguments."""


def load_row(name: str) -> Row:
    """Return the row of a function."""
    return ROWS[name]


def render_call(call: Call) -> str:
    """Write a call in the words of SQL. Its mode shows only where it has a name."""
    args = [str(arg) for arg in call.args]
    if call.function == Function.CAST:
        return f"{'try_cast' if call.mode is Mode.TRY else 'cast'}({args[0]} as {format_type(call.type)})"
    return ROWS[call.function].show(args, call.mode)

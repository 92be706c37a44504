"""Texts that people write into CSV where there is no value, such as NA, and what was made of them.

In a column of numbers, times or booleans such a text can mean nothing else, so it is read as null there. In a
column of text it may be a value, the code of a country say, and stays what it is unless somebody says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from instar.schema import Primitive, Type

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MARKS", "FoundMarks", "find_marks", "is_text", "null_out"]

MARKS: Final = ("NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "null", "None", "\\N")
_MARKS: Final = pa.array(MARKS)


def is_text(type_: Type) -> bool:
    """Whether any text is a value of a type."""
    return type_ in {Primitive("string"), Primitive("binary")}


def null_out(values: pa.Array, texts: pa.Array = _MARKS) -> pa.Array:
    """Replace texts that stand for no value by null."""
    marked = pc.is_in(values, texts)
    return pc.if_else(marked, pa.scalar(None, values.type), values) if pc.any(marked).as_py() else values


def find_marks(values: pa.Array) -> list[str]:
    """Return the texts that stand for no value among some values, each once."""
    found: list[str] = pc.unique(values.filter(pc.is_in(values, _MARKS))).to_pylist()
    return found


class FoundMarks:
    """Which of these texts were found while files were read, and in which columns."""

    def __init__(self) -> None:
        self.as_null: dict[str, list[str]] = {}
        self.as_text: dict[str, list[str]] = {}

    def note(self, marks: Iterable[str], type_: Type, column: str) -> None:
        """Note the texts that were found in a column."""
        columns = self.as_text if is_text(type_) else self.as_null
        for mark in marks:
            if column not in columns.setdefault(mark, []):
                columns[mark].append(column)

    def take(self, values: pa.Array, type_: Type, column: str) -> pa.Array:
        """Return the values of a column without those that stand for null in its type, and note them."""
        found = find_marks(values)
        self.note(found, type_, column)
        return null_out(values) if found and not is_text(type_) else values

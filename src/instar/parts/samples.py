"""Rows and values as short texts for error messages, whatever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["sample_row", "sample_value"]

_LENGTH: Final = 200


def sample_row(data: pa.RecordBatch | pa.Table, at: int) -> str:
    """Print the row at a position, so that a person finds it again."""
    row = data.slice(at, 1)
    cells = (f"{name}={_text(column)}" for name, column in zip(row.schema.names, row.columns, strict=True))
    return _shortened(", ".join(cells))


def sample_value(array: pa.Array, at: int) -> str:
    """Print the value at a position."""
    return _text(array.slice(at, 1))


def _text(single: pa.Array | pa.ChunkedArray) -> str:
    try:
        return _shortened(str(single[0].as_py()))
    except (ValueError, OverflowError, ArithmeticError):  # not every value of Arrow is also one of Python
        return _shortened(" ".join(str(single).split()).strip("[] "))


def _shortened(text: str) -> str:
    return text if len(text) <= _LENGTH else text[:_LENGTH] + "…"

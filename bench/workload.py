"""The made-up table that every engine gets: the same files, the same statistics, the same question.

No data file exists. What is measured is the work on metadata, and every engine believes its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

__all__ = [
    "FILE_SIZE",
    "NAMES",
    "ROWS",
    "SCHEMA",
    "Question",
    "bounds",
    "column_bounds",
    "digits",
    "tiny_batch",
]

LONGS: Final = tuple(f"c{number:02d}" for number in range(10))
DOUBLES: Final = tuple(f"c{number:02d}" for number in range(10, 15))
STRINGS: Final = tuple(f"c{number:02d}" for number in range(15, 20))
NAMES: Final = (*LONGS, *DOUBLES, *STRINGS)

SCHEMA: Final = pa.schema(
    [
        *((name, pa.int64()) for name in LONGS),
        *((name, pa.float64()) for name in DOUBLES),
        *((name, pa.string()) for name in STRINGS),
    ]
)

ROWS: Final = 1000
FILE_SIZE: Final = 1 << 20

_TINY: Final = 10
_SPAN: Final = 2**32
_STRIDE: Final = 2_654_435_761  # scatters consecutive numbers over the whole span


def bounds(parts: range) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Yield the least values of all columns and the greatest ones, part by part."""
    columns = column_bounds(parts)
    lows, highs = ([_values(column[at]) for column in columns] for at in (0, 1))
    return zip(zip(*lows, strict=True), zip(*highs, strict=True), strict=True)


def column_bounds(parts: range) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Return the least and the greatest values of each column: c00 grows by part, others are scattered."""
    numbers = np.arange(parts.start, parts.stop, dtype=np.int64)
    scattered = [numbers * (_STRIDE + 2 * at) % _SPAN for at in range(len(NAMES))]
    longs, doubles = len(LONGS), len(LONGS) + len(DOUBLES)
    return [
        (numbers * ROWS, numbers * ROWS + ROWS - 1),
        *((low, low + ROWS) for low in scattered[1:longs]),
        *((low / 7, low / 7 + 1.5) for low in scattered[longs:doubles]),
        *((_users(low), _users(low + ROWS)) for low in scattered[doubles:]),
    ]


def digits(numbers: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.uint8]:
    """Return numbers as rows of decimal digits in ASCII."""
    powers = 10 ** np.arange(width - 1, -1, -1, dtype=np.int64)
    return (numbers[:, None] // powers % 10 + ord("0")).astype(np.uint8)


def _users(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.bytes_]:
    prefix = np.tile(np.frombuffer(b"user-", np.uint8), (len(numbers), 1))
    text = np.hstack([prefix, digits(numbers, 10)])
    return text.view(f"S{text.shape[1]}").ravel()


def _values(column: npt.NDArray[Any]) -> list[Any]:
    values: list[Any] = (column.astype(str) if column.dtype.kind == "S" else column).tolist()
    return values


class Question(NamedTuple):
    """`c00` in a narrow range, and `c01` below the middle: one file in two hundred may have an answer."""

    first: int
    last: int
    below: int = _SPAN // 2

    @classmethod
    def about(cls, parts: int) -> Question:
        """Ask a table with so many parts."""
        start = parts * 2 // 5
        return cls(start * ROWS, (start + max(1, parts // 100)) * ROWS - 1)

    @property
    def sql(self) -> str:
        """The filter as text."""
        return f"c00 >= {self.first} AND c00 <= {self.last} AND c01 < {self.below}"

    def answer(self) -> int:
        """Return how many parts remain when the statistics have been asked."""
        near = range(self.first // ROWS, self.last // ROWS + 1)
        low, _ = column_bounds(near)[1]
        return int((low < self.below).sum())


def tiny_batch() -> pa.Table:
    """Return a few rows, as a service that appends what it has just received would."""
    rows = range(_TINY)
    columns = [
        *([row * 1000 + number for row in rows] for number, _ in enumerate(LONGS)),
        *([row / 7 + number for row in rows] for number, _ in enumerate(DOUBLES)),
        *([f"user-{row:010d}-{number}" for row in rows] for number, _ in enumerate(STRINGS)),
    ]
    return pa.table(columns, schema=SCHEMA)

"""The made-up table that every engine gets: the same files, the same statistics, the same question.

No data file exists. What is measured is the work on metadata, and every engine believes its own.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import pyarrow as pa

__all__ = ["FILE_SIZE", "NAMES", "ROWS", "SCHEMA", "Question", "bounds", "tiny_batch"]

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


def bounds(part: int) -> list[tuple[int, int] | tuple[float, float] | tuple[str, str]]:
    """Return the least and the greatest value of each column: c00 grows by part, the others are scattered."""
    scattered = [part * (_STRIDE + 2 * number) % _SPAN for number in range(len(NAMES))]
    longs, doubles, strings = len(LONGS), len(LONGS) + len(DOUBLES), len(NAMES)
    return [
        (part * ROWS, part * ROWS + ROWS - 1),
        *((low, low + ROWS) for low in scattered[1:longs]),
        *((low / 7, low / 7 + 1.5) for low in scattered[longs:doubles]),
        *((f"user-{low:010d}", f"user-{low + ROWS:010d}") for low in scattered[doubles:strings]),
    ]


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
        return sum(int(bounds(part)[1][0]) < self.below for part in near)


def tiny_batch() -> pa.Table:
    """Return a few rows, as a service that appends what it has just received would."""
    rows = range(_TINY)
    columns = [
        *([row * 1000 + number for row in rows] for number, _ in enumerate(LONGS)),
        *([row / 7 + number for row in rows] for number, _ in enumerate(DOUBLES)),
        *([f"user-{row:010d}-{number}" for row in rows] for number, _ in enumerate(STRINGS)),
    ]
    return pa.table(columns, schema=SCHEMA)

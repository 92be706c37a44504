"""Rows that were retracted by position, as Spark leaves them out: one test of a bit for each row.

Files have numbers, which come with them as the value of a partition column, and the reader tells where in its
file a row is. There are two ways to bring the bits to the rows.

In the plan of a query they are one set, in which each file that has any begins at a bit of its own; that is
the value of another partition column. This is the fast way: testing a row takes a few nanoseconds.

Where that would be too much for a plan, bits come with their files, also as the value of a partition column,
in words of 64. The first word is the number of the first file, and one for each file follows: where its own
words begin, or far behind the end if no row of it is retracted. These begin with an entry for each block of
4,096 rows: where the bits of the block begin. Blocks of which no row is retracted share one that is all
zeros. So the words grow with what is retracted, and hardly with the files.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from instar.state.retractions import encode_bitmap

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt
    from pyroaring import BitMap
    from pyspark.sql import DataFrame

    from instar.spark.native.gateway import Gateway

__all__ = [
    "BEGIN",
    "NUMBER",
    "POSITIONS",
    "ROW_INDEX",
    "Leaving",
    "OneSet",
    "lay_out",
    "leaving_in_plan",
    "leaving_with_files",
]

NUMBER: Final = "_number"
"""The partition column of a file's number."""
BEGIN: Final = "_begin"
"""The partition column of the bit at which a file begins."""
POSITIONS: Final = "_positions"
"""The partition column of words: those of all files that have this value."""
ROW_INDEX: Final = "_tmp_metadata_row_index"
"""The name of the column in which Spark's reader of Parquet tells where in its file a row is.

`_metadata.row_index` is made from it, with an object for each row.
"""

_BLOCK: Final = 4096
_WORD: Final = 64
_BIG_ENDIAN: Final = np.dtype(">i8")
_NOWHERE: Final = 2**27
"""An index behind all words, times eight still a number of 32 bits."""


class Leaving(NamedTuple):
    """Leaves the rows out of a frame that are retracted by position."""

    leave: Callable[[DataFrame], DataFrame]
    condition: Any = None
    """What is true for the rows that are left, as a column of Java's, if a condition is all that it takes."""

    def __call__(self, frame: DataFrame) -> DataFrame:
        """Return a frame without these rows."""
        return self.leave(frame)


class OneSet(NamedTuple):
    """One bit for each row of the files that have retracted rows, and at which bit each file begins.

    Files that have none all begin where no bit is set for as many rows as the longest of them has.
    """

    begins: Sequence[int]
    positions: Mapping[int, BitMap]
    size: int

    @classmethod
    def of(cls, rows: Sequence[int], positions: Mapping[int, BitMap]) -> OneSet:
        """Line files up, given how many rows each has."""
        lengths = np.asarray(rows, np.int64)
        touched = np.zeros(len(lengths), np.bool_)
        touched[list(positions)] = True
        ends = np.cumsum(np.where(touched, lengths, 0))
        end = int(ends[-1])
        begins = np.where(touched, ends - lengths, end)
        return cls(begins.tolist(), positions, end + int(lengths[~touched].max(initial=0)))

    def to_bytes(self) -> bytes:
        """Return bitmaps of rows, each after the bit at which its file begins and its length."""
        pieces: list[bytes] = []
        for at, own in self.positions.items():
            data = encode_bitmap(own)
            pieces += (struct.pack(">ii", self.begins[at], len(data)), data)
        return b"".join(pieces)


def leaving_in_plan(gateway: Gateway, bits: OneSet) -> Leaving:
    """Put bits into the plan."""
    left = gateway.taken.left(bits.size, bits.to_bytes(), f"cast({BEGIN} + {ROW_INDEX} as int)")
    return Leaving(lambda frame: frame.where(Column(left)), left)


def lay_out(numbers: Sequence[int], rows: Sequence[int], positions: Mapping[int, BitMap]) -> bytes:
    """Return the words of files that travel with them, each word with its highest byte and bit first.

    `numbers` are those of the files, in ascending order, and `rows` tell how many each has; `positions` are
    by where the file is in these lists.
    """
    first = numbers[0]
    starts = np.full(numbers[-1] - first + 2, _NOWHERE, _BIG_ENDIAN)
    starts[0] = first
    pieces = []
    end = len(starts)
    for at, own in positions.items():
        starts[numbers[at] - first + 1] = end
        pieces.append(_lay_out_file(own, rows[at], end))
        end += len(pieces[-1]) // _BIG_ENDIAN.itemsize
    return b"".join([starts.tobytes(), *pieces])


def _lay_out_file(positions: BitMap, rows: int, start: int) -> bytes:
    """Return the words of one file, which begin at an index."""
    at = np.frombuffer(positions.to_array(), np.uint32).astype(np.int64)
    blocks, rank = np.unique(at // _BLOCK, return_inverse=True)
    count = -(-rows // _BLOCK)
    entries = np.full(count, start + count, _BIG_ENDIAN)  # of zeros only
    entries[blocks] = start + count + (np.arange(len(blocks)) + 1) * (_BLOCK // _WORD)
    bits: npt.NDArray[np.bool_] = np.zeros((len(blocks) + 1) * _BLOCK, np.bool_)
    bits[(rank + 1) * _BLOCK + at % _BLOCK] = True
    return entries.tobytes() + np.packbits(bits).tobytes()


def leaving_with_files(gateway: Gateway) -> Leaving:
    """Find words in the partition column, which is binary, and null where nothing is retracted."""

    def word(at: str) -> Column:
        return gateway.first_long(F.expr(f"substring({POSITIONS}, cast(({at}) * 8 + 1 as int), 8)"))

    def leave(frame: DataFrame) -> DataFrame:
        first, start, entry, own = (f"{POSITIONS}_{step}" for step in ("first", "start", "entry", "word"))
        steps = {
            first: "0",
            start: f"{NUMBER} - {first} + 1",
            entry: f"{start} + shiftright({ROW_INDEX}, 12)",
            own: f"{entry} + (shiftright({ROW_INDEX}, 6) & {_BLOCK // _WORD - 1})",
        }
        for name, at in steps.items():
            frame = frame.withColumn(name, word(at))
        left = f"not coalesce(shiftleft({own}, cast({ROW_INDEX} & {_WORD - 1} as int)) < 0, false)"
        return frame.where(left).drop(*steps)

    return Leaving(leave)

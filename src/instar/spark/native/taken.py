"""Rows that were retracted by position, as Spark leaves them out: one test of a bit for each row.

Files have numbers, and bits are in words of 64. The first word is the number of the first file, and one for
each file follows: where its own words begin, or far behind the end if no row of it is retracted. These begin
with an entry for each block of 4,096 rows: where the bits of the block begin. Blocks of which no row is
retracted share one that is all zeros. So the words grow with what is retracted, and hardly with the files.
They travel in the plan of a query, or with the files as the value of a partition column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    from pyroaring import BitMap
    from pyspark.sql import Column, DataFrame

    from instar.spark.native.gateway import Gateway

__all__ = ["POSITIONS", "Leaving", "file_number", "lay_out", "leaving_in_plan", "leaving_with_files"]

POSITIONS: Final = "_positions"
"""The partition column: the words of the files that have this value."""

_BLOCK: Final = 4096
_WORD: Final = 64
_BIG_ENDIAN: Final = np.dtype(">i8")
_NOWHERE: Final = 2**27
"""An index behind all words, times eight still a number of 32 bits."""
_WORDS: Final = "_words"
_ROW: Final = "_metadata.row_index"
_NUMBER: Final = "unix_millis(_metadata.file_modification_time)"

Leaving = Callable[["DataFrame"], "DataFrame"]
"""Leaves the rows out of a frame that are retracted by position."""


def lay_out(numbers: Sequence[int], rows: Sequence[int], positions: Mapping[int, BitMap]) -> bytes:
    """Return the words of files, each word with its highest byte and bit first.

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


def file_number() -> Column:
    """Return the number of the file that a row is in: what the file's time of modification was said to be."""
    return F.expr(_NUMBER)


def leaving_in_plan(gateway: Gateway, data: bytes) -> Leaving:
    """Put words into the plan."""
    words = gateway.long_array(data, len(data) // _BIG_ENDIAN.itemsize)
    first = int(np.frombuffer(data, _BIG_ENDIAN, 1)[0])
    start = f"get({_WORDS}, cast({_NUMBER} - {first - 1} as int))"
    entry = f"get({_WORDS}, cast({start} + shiftright({_ROW}, 12) as int))"
    word = f"get({_WORDS}, cast({entry} + (shiftright({_ROW}, 6) & {_BLOCK // _WORD - 1}) as int))"
    # As one text, which is one call into the JVM, where building it from columns takes hundreds.
    left = F.expr(f"not coalesce(shiftleft({word}, cast({_ROW} & {_WORD - 1} as int)) < 0, false)")
    return lambda frame: frame.withColumn(_WORDS, words).where(left).drop(_WORDS)


def leaving_with_files(gateway: Gateway) -> Leaving:
    """Find words in the partition column, which is binary, and null where nothing is retracted."""

    def word(at: str) -> Column:
        return gateway.first_long(F.expr(f"substring({POSITIONS}, cast(({at}) * 8 + 1 as int), 8)"))

    def leave(frame: DataFrame) -> DataFrame:
        steps = {
            "_first": "0",
            "_start": f"{_NUMBER} - _first + 1",
            "_entry": f"_start + shiftright({_ROW}, 12)",
            "_word": f"_entry + (shiftright({_ROW}, 6) & {_BLOCK // _WORD - 1})",
        }
        for name, at in steps.items():
            frame = frame.withColumn(name, word(at))
        left = f"not coalesce(shiftleft(_word, cast({_ROW} & {_WORD - 1} as int)) < 0, false)"
        return frame.where(left).drop(*steps)

    return leave

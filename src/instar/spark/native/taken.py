"""Rows that were retracted by position, as Spark leaves them out: one test of a bit for each row.

The bits of a part are words of 64. First come entries for blocks of 4,096 rows each: where in the words the
bits of the block begin, or 0 if no row of it is retracted. So the words grow with what is retracted, and
hardly with the part. They travel in the plan, or with the file as the value of a partition column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyroaring import BitMap

    from instar.spark.native.gateway import Gateway

__all__ = ["POSITIONS", "Words", "lay_out", "not_taken", "words_in_file", "words_in_plan"]

POSITIONS: Final = "_positions"
"""The partition column: the words of the part, or where they begin among those of all parts."""

Words = Callable[[Column], Column]
"""Gives the word at a position of the words of the part that a row is in."""

_BLOCK: Final = 4096
_WORD: Final = 64
_BIG_ENDIAN: Final = np.dtype(">i8")


def lay_out(positions: BitMap, rows: int) -> bytes:
    """Return the words of a part, each with its highest byte and bit first."""
    at = np.frombuffer(positions.to_array(), np.uint32).astype(np.int64)
    blocks, rank = np.unique(at // _BLOCK, return_inverse=True)
    entries = np.zeros(-(-rows // _BLOCK), _BIG_ENDIAN)
    entries[blocks] = len(entries) + np.arange(len(blocks)) * (_BLOCK // _WORD)
    bits = np.zeros(len(blocks) * _BLOCK, np.bool_)
    bits[rank * _BLOCK + at % _BLOCK] = True
    return entries.tobytes() + np.packbits(bits).tobytes()


def not_taken(words: Words) -> Column:
    """Return the condition that a row is not retracted."""
    row = F.col("_metadata.row_index")
    entry = words(F.shiftright(row, 12))
    word = words(entry + F.shiftright(row, 6).bitwiseAND(F.lit(_BLOCK // _WORD - 1)))
    bit = F.call_function("shiftleft", word, row.bitwiseAND(F.lit(_WORD - 1)).cast("int")) < 0
    return ~F.coalesce((entry != 0) & bit, F.lit(False))  # noqa: FBT003 -- a column of falses


def words_in_plan(gateway: Gateway, pieces: Sequence[bytes]) -> Words:
    """Put the words of all parts into the plan; the partition column says where those of a part begin."""
    data = b"".join(pieces)
    words = gateway.long_array(data, len(data) // _BIG_ENDIAN.itemsize)
    return lambda at: F.get(words, (F.col(POSITIONS) + at).cast("int"))


def words_in_file(gateway: Gateway) -> Words:
    """Find the words of a part in the partition column, which is binary, and null for parts without any."""

    def word(at: Column) -> Column:
        return gateway.first_long(F.substring(F.col(POSITIONS), (at * 8 + 1).cast("int"), F.lit(8)))

    return word

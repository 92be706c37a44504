"""Parquet files that others wrote: what they hold in our words, how to know one again, and what to believe.

Their columns have names and no ids. Which field of a table a column is, is decided where files are adopted
(`instar.table.write.adopt`); reading them is in `adopted.py`.
"""

from __future__ import annotations

from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from instar.errors import DataMismatchError
from instar.parts.incoming import is_list, plain_type
from instar.schema import format_path
from instar.schema.paths import ELEMENT, KEY, VALUE
from instar.stats import FieldStats

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ForeignFile", "footer_digest", "foreign_schema", "has_nanos", "inspect_file", "open_foreign"]

_MAGIC: Final = b"PAR1"
_TAIL: Final = 8
_DIGEST_SIZE: Final = 16
_RESERVED: Final = frozenset(
    (
        "_metadata",
        "_tmp_metadata_row_index",
        "_number",
        "_begin",
        "_positions",
        "_positions_first",
        "_positions_start",
        "_positions_entry",
        "_positions_word",
        "_batch_ts",
        "_batch_diff",
        "_ts",
        "_diff",
    )
)
"""Names that instar gives to columns of its own while it reads."""

Path = tuple[str, ...]


class ForeignFile(NamedTuple):
    """What the footer of a file says."""

    footer: bytes
    """Its digest."""
    rows: int
    schema: pa.Schema
    stats: dict[Path, FieldStats]
    """What may be believed of columns that hold single values, by the names on the way to them."""
    old_calendar: bool
    """Whether dates and times of long ago may be those of the Julian calendar."""


@contextmanager
def open_foreign(source: pa.NativeFile) -> Iterator[tuple[pq.ParquetFile, bytes]]:
    """Open a file that others wrote, and return it with the digest of its footer."""
    digest = footer_digest(source)
    source.seek(0)
    # INT96 has nanoseconds, of which everybody but its writer keeps microseconds.
    with pq.ParquetFile(
        source, page_checksum_verification=True, pre_buffer=True, coerce_int96_timestamp_unit="us"
    ) as file:
        yield file, digest


def inspect_file(source: pa.NativeFile) -> ForeignFile:
    """Read the footer of a file; what Spark cannot read, or not as others do, is refused."""
    with open_foreign(source) as (file, digest):
        schema = foreign_schema(file)
        for field in schema:
            if field.name.lower() in _RESERVED:
                raise DataMismatchError(format_path((field.name,)), "instar uses this name itself")
            _check(field.type, (field.name,))
        said = file.metadata.metadata or {}
        version = said.get(b"org.apache.spark.version", b"3").partition(b".")[0]
        legacy = any(name.startswith(b"org.apache.spark.legacy") for name in said)
        old = legacy or (version.isdigit() and int(version) < 3)  # noqa: PLR2004 -- Spark 3 changed it
        return ForeignFile(digest, file.metadata.num_rows, schema, _believed(file, schema), old)


def foreign_schema(file: pq.ParquetFile) -> pa.Schema:
    """Return the columns of a file; INT96 is an instant, as for Spark, which is who writes it."""
    columns = iter([file.schema.column(at) for at in range(len(file.schema))])
    return pa.schema([field.with_type(_typed(field.type, columns)) for field in file.schema_arrow])


def has_nanos(type_: pa.DataType) -> bool:
    """Whether a type is a time in nanoseconds."""
    plain = plain_type(type_)
    return bool(pa.types.is_timestamp(plain)) and plain.unit == "ns"


def footer_digest(source: pa.NativeFile) -> bytes:
    """Return the digest of a file's footer, by which the file is known again."""
    size = source.size()
    source.seek(max(0, size - _TAIL))
    tail = source.read(_TAIL)
    if len(tail) != _TAIL or tail[4:] != _MAGIC:
        raise pa.ArrowInvalid("it is not a Parquet file, or its footer is encrypted")
    length = int.from_bytes(tail[:4], "little")
    source.seek(max(0, size - _TAIL - length))
    return blake2b(source.read(length + _TAIL), digest_size=_DIGEST_SIZE).digest()


def _typed(type_: pa.DataType, columns: Iterator[Any]) -> pa.DataType:
    """Walk a type and the leaves of the file together, in the order that both have."""
    if pa.types.is_struct(type_):
        return pa.struct([member.with_type(_typed(member.type, columns)) for member in type_.fields])
    if pa.types.is_map(type_):
        key = type_.key_field.with_type(_typed(type_.key_type, columns))
        return pa.map_(key, type_.item_field.with_type(_typed(type_.item_type, columns)))
    if is_list(type_):
        item = type_.value_field.with_type(_typed(type_.value_type, columns))
        return pa.list_(item) if not item.type.equals(type_.value_type) else type_
    column = next(columns)
    return pa.timestamp("us", "UTC") if column.physical_type == "INT96" else type_


def _check(type_: pa.DataType, path: Path) -> None:
    """Raise for what Spark would read as something else, or not at all."""
    type_ = plain_type(type_)
    if pa.types.is_struct(type_):
        for member in type_.fields:
            _check(member.type, (*path, member.name))
    elif pa.types.is_map(type_):
        if has_nanos(type_.key_type):
            raise DataMismatchError(format_path((*path, KEY)), "keys cannot be in nanoseconds. Cast them")
        _check(type_.key_type, (*path, KEY))
        _check(type_.item_type, (*path, VALUE))
    elif is_list(type_):
        _check(type_.value_type, (*path, ELEMENT))
    elif pa.types.is_null(type_):
        raise DataMismatchError(format_path(path), "the file has no type for it. Write it with one")
    elif type_ in (pa.float16(), pa.uint64()) or (pa.types.is_duration(type_) and type_.unit != "us"):
        reason = (
            f"it is {type_}, which other programs read differently. Cast it in the file, or import the file"
        )
        raise DataMismatchError(format_path(path), reason)


def _believed(file: pq.ParquetFile, schema: pa.Schema) -> dict[Path, FieldStats]:
    """Return the bounds and counts of whole numbers, dates and times.

    Not those of floats, which leave NaN out, nor of texts and decimals, which older writers compared in other
    ways and cut, nor of INT96, whose bytes have no order.
    """
    metadata = file.metadata
    found: dict[Path, FieldStats] = {}
    for at, (path, type_) in enumerate(_leaves(schema)):
        scale = _scale(type_) if path else None
        if scale is None or metadata.num_row_groups == 0:
            continue
        if file.schema.column(at).physical_type not in {"INT32", "INT64"}:
            continue
        stats = _united([metadata.row_group(group).column(at) for group in range(metadata.num_row_groups)])
        if stats is not None:
            nulls, low, high = stats
            bounds = (
                (None, None) if low is None or high is None else (_scaled(low, scale), _scaled(high, scale))
            )
            found[path] = FieldStats(nulls, 0, *bounds)
    return found


def _leaves(schema: pa.Schema) -> Iterator[tuple[Path, pa.DataType]]:
    """Yield the leaves in the order of the file; the path is empty inside lists and maps."""

    def walk(type_: pa.DataType, path: Path, *, single: bool) -> Iterator[tuple[Path, pa.DataType]]:
        if pa.types.is_struct(type_):
            for member in type_.fields:
                yield from walk(member.type, (*path, member.name), single=single)
        elif pa.types.is_map(type_):
            yield from walk(type_.key_type, (), single=False)
            yield from walk(type_.item_type, (), single=False)
        elif is_list(type_):
            yield from walk(type_.value_type, (), single=False)
        else:
            yield (path if single else ()), type_

    for field in schema:
        yield from walk(field.type, (field.name,), single=True)


def _united(chunks: list[Any]) -> tuple[int | None, int | None, int | None] | None:
    """Put the statistics of all row groups together: nulls, least, greatest; None if some are missing."""
    nulls: int | None = 0
    lows: list[int] = []
    highs: list[int] = []
    for chunk in chunks:
        stats = chunk.statistics
        if stats is None:
            return None
        known = stats.null_count if stats.has_null_count else None
        nulls = None if nulls is None or known is None else nulls + known
        if stats.has_min_max:
            lows.append(stats.min_raw)
            highs.append(stats.max_raw)
        elif known != chunk.num_values:
            return None
    return (nulls, min(lows), max(highs)) if lows else (nulls, None, None)


def _scale(type_: pa.DataType) -> tuple[int, int] | None:
    """Return what the stored number is to be multiplied with and divided by, to be one of ours."""
    if pa.types.is_signed_integer(type_) or pa.types.is_date32(type_):
        return 1, 1
    if pa.types.is_timestamp(type_):
        return {"s": (1000, 1), "ms": (1000, 1), "us": (1, 1), "ns": (1, 1000)}[type_.unit]
    return None


def _scaled(value: int, scale: tuple[int, int]) -> int:
    return value * scale[0] // scale[1]

"""Manifests of Iceberg with many data files, made from the bytes of one entry.

Entries of made-up files are equally long: pyiceberg encodes one, and all others differ from it in their
path and their bounds alone. Encoded one by one, a million of them would take long.
"""

from __future__ import annotations

import io
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pyiceberg.avro.encoder import BinaryEncoder
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus
from pyiceberg.typedef import Record

from bench.workload import FILE_SIZE, NAMES, ROWS, bounds, column_bounds, digits

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from pyiceberg.manifest import ManifestFile, ManifestWriter
    from pyiceberg.table.update.snapshot import _FastAppendFiles

__all__ = ["write_manifest"]

_BLOCK: Final = 100
"""Entries that are compressed together; pyiceberg compresses those that it writes one by one."""

_PATH_DIGITS: Final = 12
_LONG: Final = Struct("<q")
_DOUBLE: Final = Struct("<d")


def write_manifest(append: _FastAppendFiles, parts: range) -> ManifestFile:
    """Write the entries of some parts, and return what a snapshot has to know of them."""
    with append.new_manifest_writer(append.spec(0)) as writer:
        entries = _entries(writer, append.snapshot_id, parts)
        for start in range(0, len(parts), _BLOCK):
            _write_block(writer, entries[start : start + _BLOCK])
        writer._added_files = len(parts)  # noqa: SLF001 -- it counts what it has encoded itself
        writer._added_rows = len(parts) * ROWS  # noqa: SLF001
    return writer.to_manifest_file()


def _entries(writer: ManifestWriter, snapshot: int, parts: range) -> npt.NDArray[np.uint8]:
    """Return a row of bytes for each part."""
    columns = column_bounds(parts)
    widths = [low.dtype.itemsize for low, _ in columns]
    lows, highs = (
        [bytes([first + at]) * width for at, width in enumerate(widths)]
        for first in (100, 100 + len(columns))  # bytes that tell each bound from the others
    )
    sample = _encode(writer, snapshot, 0, lows, highs)
    entries = np.tile(np.frombuffer(sample, np.uint8), (len(parts), 1))

    def fill(place: bytes, values: npt.NDArray[np.uint8]) -> None:
        at = sample.index(place)
        entries[:, at : at + len(place)] = values

    fill(b"0" * _PATH_DIGITS, digits(np.arange(parts.start, parts.stop), _PATH_DIGITS))
    for places, at in ((lows, 0), (highs, 1)):
        for place, column in zip(places, columns, strict=True):
            fill(place, np.frombuffer(column[at].tobytes(), np.uint8).reshape(len(parts), -1))
    last = parts[-1]
    ((low, high),) = bounds(range(last, last + 1))
    as_usual = _encode(writer, snapshot, last, [*map(_bound, low)], [*map(_bound, high)])
    assert entries[-1].tobytes() == as_usual, "an entry is not what pyiceberg would have written"
    return entries


def _write_block(writer: ManifestWriter, entries: npt.NDArray[np.uint8]) -> None:
    file = writer._writer  # noqa: SLF001 -- here and below: pyiceberg has no public way to write bytes
    codec = file.compression_codec()
    data = entries.tobytes()
    if codec is not None:
        data, _ = codec.compress(data)
    file.encoder.write_int(len(entries))
    file.encoder.write_int(len(data))
    file.encoder.write(data)
    file.encoder.write(file.sync_bytes)


def _encode(
    writer: ManifestWriter, snapshot: int, part: int, lows: Sequence[bytes], highs: Sequence[bytes]
) -> bytes:
    """Encode an entry as pyiceberg does."""
    entry = ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED,
        snapshot_id=snapshot,
        sequence_number=None,
        file_sequence_number=None,
        data_file=_data_file(part, lows, highs),
    )
    buffer = io.BytesIO()
    writer._writer.writer.write(BinaryEncoder(buffer), entry)  # noqa: SLF001
    return buffer.getvalue()


def _data_file(part: int, lows: Sequence[bytes], highs: Sequence[bytes]) -> DataFile:
    ids = range(1, len(NAMES) + 1)  # a table of its own numbers its columns from 1
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"file:///parts/{part:0{_PATH_DIGITS}d}.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=ROWS,
        file_size_in_bytes=FILE_SIZE,
        column_sizes=dict.fromkeys(ids, FILE_SIZE // len(ids)),
        value_counts=dict.fromkeys(ids, ROWS),
        null_value_counts=dict.fromkeys(ids, 0),
        nan_value_counts={},
        lower_bounds=dict(zip(ids, lows, strict=True)),
        upper_bounds=dict(zip(ids, highs, strict=True)),
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
    )
    file.spec_id = 0
    return file


def _bound(value: Any) -> bytes:  # noqa: ANN401 -- whatever a column holds
    """Return a bound as Iceberg stores it."""
    match value:
        case int():
            return _LONG.pack(value)
        case float():
            return _DOUBLE.pack(value)
    return str(value).encode()

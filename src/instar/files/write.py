"""Rows of Arrow as a file: Parquet, CSV, JSON lines or Arrow. A file is there once it is complete."""

from __future__ import annotations

import io
import json
import os
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from instar.errors import UsageError
from instar.files.formats import Format
from instar.files.values import json_rows, text_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["write_file", "write_text"]

_SPECIAL: Final = frozenset(',"\r\n')


def write_file(
    path: Path, kind: Format, schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, replace: bool = False
) -> int:
    """Write batches to a file, and return how many rows they had."""
    with _created(path, replace=replace) as target:
        match kind:
            case Format.CSV | Format.JSON:
                with io.TextIOWrapper(target, "utf-8", newline="") as text:
                    return write_text(text, kind, schema, batches)
            case Format.PARQUET:
                with pq.ParquetWriter(target, schema, compression="zstd") as writer:
                    return _write_all(writer, batches)
            case Format.ARROW:
                with pa.ipc.new_file(target, schema) as writer:
                    return _write_all(writer, batches)


def write_text(
    target: IO[str],
    kind: Format,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    header: bool = True,
) -> int:
    """Write batches as lines of CSV or JSON, and return how many rows they had."""
    done = 0
    if kind is Format.JSON:
        for batch in batches:
            target.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in json_rows(batch))
            done += batch.num_rows
        return done
    if header:
        target.write(_csv_line(schema.names))
    for batch in batches:
        target.writelines(_csv_line(row) for row in text_rows(batch))
        done += batch.num_rows
    return done


def _csv_line(values: Iterable[str | None]) -> str:
    """Return a line of CSV, in which nothing is null and "" is text without characters."""
    return ",".join("" if value is None else _quoted(value) for value in values) + "\n"


def _quoted(value: str) -> str:
    plain = value and value == value.strip() and not _SPECIAL.intersection(value)
    return value if plain else '"' + value.replace('"', '""') + '"'


def _write_all(writer: pa.ipc.RecordBatchWriter | pq.ParquetWriter, batches: Iterable[pa.RecordBatch]) -> int:
    done = 0
    for batch in batches:
        writer.write_batch(batch)
        done += batch.num_rows
    return done


@contextmanager
def _created(path: Path, *, replace: bool) -> Iterator[IO[bytes]]:
    """Open a file that gets its name when all of it has been written."""
    if path.exists() and not replace:
        raise UsageError(f"{path} already exists: choose another name, or add --force")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as target:
            yield target
        unfinished.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        unfinished.unlink(missing_ok=True)

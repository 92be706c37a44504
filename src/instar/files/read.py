"""Rows of files as one stream of Arrow batches, in types of a table where it has such columns.

Files may differ in their columns: what one of them lacks is null. CSV and Parquet are read piece by piece,
and a callback gets how many bytes of the files have been read; files of JSON lines are held in memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

from instar.errors import DataMismatchError, UsageError
from instar.files.formats import Format
from instar.files.marks import FoundMarks, null_out
from instar.files.nested import fit_values
from instar.files.text import Guess, parse_text
from instar.schema import Field, Schema, Type, arrow_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["TextOptions", "csv_types", "read_files"]

_BLOCK: Final = 8 * 1024 * 1024
_ROWS: Final = 64 * 1024
_DELIMITERS: Final = (",", ";", "\t", "|")
_CODECS: Final = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
"""What a name says about compression: the same as Arrow takes from it."""
_FOREIGN: Final = frozenset([".xz", ".snappy", ".deflate"])
"""Names of compressions that only Spark reads, some of them."""


Tell = Callable[[int], None]
"""Hears how many bytes of all files have been read so far."""


def _say_nothing(_: int) -> None:
    """Let nobody hear."""


class TextOptions(NamedTuple):
    """How CSV is written."""

    delimiter: str = ","
    nulls: tuple[str, ...] = ()
    """Texts that are null in every column, quoted or not."""


def read_files(
    paths: Sequence[Path],
    kind: Format,
    schema: Schema | None = None,
    options: TextOptions | None = None,
    marks: FoundMarks | None = None,
    *,
    look: Tell = _say_nothing,
    tell: Tell = _say_nothing,
) -> pa.RecordBatchReader:
    """Read files; text takes the types of the schema's columns where it has them, and guesses the others.

    What was made of texts that stand for no value is noted in `marks` as rows are read. `look` hears how far
    guessing has come, which reads everything once before this returns, and `tell` how far reading has.
    """
    known = {} if schema is None else {field.name.lower(): field for field in schema.fields}
    match kind:
        case Format.CSV:
            text = options or TextOptions()
            noted = marks or FoundMarks()
            found = _csv(paths, csv_types(paths, schema, text, noted, look), text, noted, tell)
        case Format.JSON:
            found = _json(paths, known)
        case Format.PARQUET:
            found = _parquet(paths, tell)
        case Format.ARROW:
            found = _arrow(paths)
    return found


# --- CSV ------------------------------------------------------------------------------------------


def csv_types(
    paths: Sequence[Path],
    schema: Schema | None,
    options: TextOptions,
    marks: FoundMarks,
    tell: Tell = _say_nothing,
) -> dict[str, Type]:
    """Return the columns of files and their types: those of the schema, or what all values are written as."""
    known = {} if schema is None else {field.name.lower(): field for field in schema.fields}
    names: dict[str, str] = {}  # the first spelling of each, by its lower case
    for path in paths:
        with _csv_batches(path, options) as (header, _):
            _check_header(header, path, options.delimiter)
            for name in header:
                names.setdefault(name.lower(), name)
    if not names:
        raise UsageError(f"{paths[0]} is empty, and CSV begins with the names of its columns")
    guesses = {name: Guess() for name in names if name not in known}
    if guesses:
        for path, before in _with_bytes_before(paths):
            with _csv_batches(path, options, tell, before) as (header, batches):
                for batch in batches:
                    for name, column in zip(header, batch.columns, strict=True):
                        if name.lower() in guesses:
                            guesses[name.lower()].look(column)
        for name, guess in guesses.items():
            marks.note(guess.marks, guess.type, names[name])
    return {
        spelled: known[name].type if name in known else guesses[name].type for name, spelled in names.items()
    }


def _check_header(header: Sequence[str], path: Path, delimiter: str) -> None:
    """Raise if a column has no name, if two have the same, or if the delimiter seems to be wrong."""
    if len(header) == 1 and (others := [mark for mark in _DELIMITERS if mark in header[0]]):
        raise UsageError(
            f"{path} has only one column, `{header[0]}`, with the delimiter {delimiter!r}: if it uses "
            f"another, add --delimiter {others[0]!r}"
        )
    spelled: dict[str, str] = {}
    for at, name in enumerate(header, 1):
        if not name:
            raise UsageError(
                f"column {at} of {path} has no name: give it one in the file. If pandas wrote it, this is "
                "the index, which index=False leaves out"
            )
        other = spelled.get(name.lower())
        if other is not None:
            alike = (
                f"called `{name}`" if other == name else f"`{other}` and `{name}`, which differ only in case"
            )
            raise UsageError(f"{path} has two columns {alike}: rename one of them in the file")
        spelled[name.lower()] = name


def _csv(
    paths: Sequence[Path], types: Mapping[str, Type], options: TextOptions, marks: FoundMarks, tell: Tell
) -> pa.RecordBatchReader:
    schema = pa.schema([(name, arrow_type(type_)) for name, type_ in types.items()])

    def rows() -> Iterator[pa.RecordBatch]:
        for path, before in _with_bytes_before(paths):
            with _csv_batches(path, options, tell, before) as (header, batches):
                done = 0
                for batch in batches:
                    given = {name.lower(): column for name, column in zip(header, batch.columns, strict=True)}
                    yield pa.RecordBatch.from_arrays(
                        [
                            parse_text(
                                marks.take(given[name.lower()], type_, name), type_, name, path.name, done
                            )
                            if name.lower() in given
                            else pa.nulls(batch.num_rows, arrow_type(type_))
                            for name, type_ in types.items()
                        ],
                        schema=schema,
                    )
                    done += batch.num_rows

    return pa.RecordBatchReader.from_batches(schema, rows())


def _with_bytes_before(paths: Sequence[Path]) -> Iterator[tuple[Path, int]]:
    """Yield files, each with the bytes of those before it."""
    sizes = [path.stat().st_size for path in paths]
    return zip(paths, accumulate(sizes, initial=0), strict=False)


@contextmanager
def _csv_batches(
    path: Path, options: TextOptions, tell: Tell = _say_nothing, before: int = 0
) -> Iterator[tuple[list[str], Iterator[pa.RecordBatch]]]:
    """Open a file of CSV: the names in its header, and its rows as text; what is empty is null."""
    parse = pc_csv.ParseOptions(delimiter=options.delimiter, newlines_in_values=True)
    read = pc_csv.ReadOptions(block_size=_BLOCK)
    with _reading(path):
        header = _header(_unpacked(pa.OSFile(str(path)), path), parse, read)
        convert = pc_csv.ConvertOptions(
            column_types=dict.fromkeys(header, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        if not header:
            yield header, iter(())
            return
        file = pa.OSFile(str(path))
        source = _unpacked(file, path)
        reader = pc_csv.open_csv(source, read_options=read, parse_options=parse, convert_options=convert)
        # Arrow reads many blocks ahead, so that the file's own position says too much.
        blocks = count(_BLOCK, _BLOCK)
        rows = _told(_reading_all(path, reader), lambda: tell(before + min(next(blocks), file.tell())))
        yield header, _without(rows, options.nulls)


def _unpacked(file: pa.NativeFile, path: Path) -> pa.NativeFile:
    """Return what is in a file that may be compressed, as its name tells.

    Arrow reads CSV ahead in threads of its own, also if nobody wants more. So the file is one of Arrow's: a
    thread that asked Python for more while the process ends would abort it, or never let it end. And nobody
    closes it but the last who holds it: another file would get its number, and the thread would read there.
    """
    suffix = path.suffix.lower()
    if suffix in _FOREIGN:
        raise UsageError(f"cannot read {path}: unpack it first, or compress it as {', '.join(_CODECS)}")
    codec = _CODECS.get(suffix)
    return file if codec is None else pa.CompressedInputStream(file, codec)


def _told(batches: Iterator[pa.RecordBatch], tell: Callable[[], None]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        tell()
        yield batch


def _without(batches: Iterator[pa.RecordBatch], nulls: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Replace texts by null, whatever column they are in."""
    if not nulls:
        return batches
    texts = pa.array(nulls)
    return (
        pa.RecordBatch.from_arrays([null_out(it, texts) for it in batch.columns], schema=batch.schema)
        for batch in batches
    )


def _header(source: pa.NativeFile, parse: pc_csv.ParseOptions, read: pc_csv.ReadOptions) -> list[str]:
    try:
        return list(pc_csv.open_csv(source, read_options=read, parse_options=parse).schema.names)
    except pa.ArrowInvalid as error:
        if "Empty CSV file" in str(error):
            return []
        raise


# --- JSON -----------------------------------------------------------------------------------------


def _json(paths: Sequence[Path], known: Mapping[str, Field]) -> pa.RecordBatchReader:
    tables = [_json_table(path, known) for path in paths]
    schema = pa.unify_schemas([table.schema for table in tables], promote_options="permissive")
    schema = pa.schema([_named(field, known) for field in schema])
    return pa.RecordBatchReader.from_batches(
        schema, _united(schema, ((it.to_batches(), "") for it in tables))
    )


def _named(field: pa.Field, known: Mapping[str, Field]) -> pa.Field:
    """Give a column of which nothing is known the type of the table's, or else that of text."""
    if not pa.types.is_null(field.type):
        return field
    own = known.get(field.name.lower())
    return field.with_type(pa.string() if own is None else arrow_type(own.type))


def _json_table(path: Path, known: Mapping[str, Field]) -> pa.Table:
    """Return the objects of a file, one a line or all in one list, as columns."""
    with _reading(path), pa.OSFile(str(path)) as file, _unpacked(file, path) as source:
        rows = _objects(source.read(), path)
    columns: dict[str, list[Any]] = {}
    for at, row in enumerate(rows):
        for name, value in row.items():
            columns.setdefault(name, [None] * at).append(value)
        for values in columns.values():
            if len(values) <= at:
                values.append(None)
    arrays = {
        name: fit_values(values, known[name.lower()].type if name.lower() in known else None, name, path.name)
        for name, values in columns.items()
    }
    return pa.table(arrays)


def _objects(data: bytes, path: Path) -> list[dict[str, Any]]:
    text = data.decode("utf-8-sig", "strict")
    if text.lstrip().startswith("["):
        rows = _loads(text, path, 1)
        if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
            return rows
        raise UsageError(f"{path} is not a list of objects: write one object a line")
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            row = _loads(line, path, number)
            if not isinstance(row, dict):
                raise UsageError(f"line {number} of {path} is not an object: {line[:60]!r}")
            found.append(row)
    return found


def _loads(text: str, path: Path, line: int) -> Any:  # noqa: ANN401 -- whatever JSON says
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"line {line} of {path} is not JSON: {error}. Write one object a line") from None
    except RecursionError:
        raise UsageError(f"line {line} of {path} is nested too deeply") from None


# --- Parquet and Arrow ----------------------------------------------------------------------------


def _parquet(paths: Sequence[Path], tell: Tell) -> pa.RecordBatchReader:
    schemas = []
    for path in paths:
        with _reading(path):
            schemas.append(pq.read_schema(path).remove_metadata())
    schema = _unified(schemas, paths)

    def files() -> Iterator[tuple[Iterator[pa.RecordBatch], str]]:
        for path, before in _with_bytes_before(paths):
            with _reading(path), pq.ParquetFile(path) as file:
                size, total, read = path.stat().st_size, file.metadata.num_rows or 1, count(0, _ROWS)
                # Rows stand for bytes, which are read by columns and not from front to back.
                say = partial(_tell_share, tell, before, size / total, read)
                yield _told(file.iter_batches(_ROWS), say), path.name

    return pa.RecordBatchReader.from_batches(schema, _united(schema, files()))


def _tell_share(tell: Tell, before: int, bytes_per_row: float, rows: Iterator[int]) -> None:
    tell(before + int(next(rows) * bytes_per_row))


def _arrow(paths: Sequence[Path]) -> pa.RecordBatchReader:
    tables = []
    for path in paths:
        with _reading(path), pa.memory_map(str(path)) as source:
            try:
                tables.append(pa.ipc.open_file(source).read_all())
            except pa.ArrowInvalid:
                source.seek(0)
                tables.append(pa.ipc.open_stream(source).read_all())
    schema = _unified([table.schema for table in tables], paths)
    batches = ((table.to_batches(), path.name) for table, path in zip(tables, paths, strict=True))
    return pa.RecordBatchReader.from_batches(schema, _united(schema, batches))


def _unified(schemas: Sequence[pa.Schema], paths: Sequence[Path]) -> pa.Schema:
    try:
        return pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        names = ", ".join(path.name for path in paths[:3])
        raise UsageError(
            f"the files {names} … have columns that do not match: {error}. Import them one by one"
        ) from None


def _united(
    schema: pa.Schema, files: Iterator[tuple[Iterator[pa.RecordBatch] | list[pa.RecordBatch], str]]
) -> Iterator[pa.RecordBatch]:
    """Bring the batches of each file under one schema: what a file lacks is null."""
    for batches, name in files:
        for batch in batches:
            columns = []
            for field in schema:
                at = batch.schema.get_field_index(field.name)
                if at < 0:
                    columns.append(pa.nulls(batch.num_rows, field.type))
                    continue
                try:
                    columns.append(batch.column(at).cast(field.type))
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                    raise DataMismatchError(field.name, f"{error}, in {name}") from None
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say which file it is that cannot be read."""
    try:
        yield
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        remedy = ". Save it as UTF-8" if "UTF8" in str(error) else ""
        raise UsageError(f"cannot read {path}: {error}{remedy}") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None


def _reading_all(path: Path, batches: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    with _reading(path):
        yield from batches

"""Files as rows for a table: small files are read in this process, others on Spark.

This module decides who reads. The reading is in `instar.files` and in `instar.spark.commands.files`.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from instar.cli.output import working
from instar.cli.progress import progress_bars
from instar.errors import UsageError
from instar.files import Format, find_files, guess_format
from instar.files.marks import FoundMarks
from instar.files.read import TextOptions, csv_types, read_files
from instar.reporting import RunInput, reading_from

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from instar.api.writing import Data
    from instar.cli.progress import Tell
    from instar.schema import Schema, SchemaLike, Type

__all__ = ["Files", "Source", "chosen_format", "open_files"]

_MOST: Final = {Format.JSON: 64 * 1024 * 1024, Format.PARQUET: 512 * 1024 * 1024}
"""How many bytes of files are read in process; those of JSON lines are held in memory."""
_LOOKING: Final = "looking at the files"


class Files(NamedTuple):
    """The options of a user about files."""

    paths: Sequence[str]
    kind: Format
    delimiter: str = ","
    where: str | None = None
    nulls: tuple[str, ...] = ()

    @property
    def text(self) -> TextOptions:
        """How CSV is written."""
        return TextOptions(self.delimiter, self.nulls)


class Source(NamedTuple):
    """Rows that `Table.append` takes, and the schema that a new table for them has."""

    data: Data
    schema: SchemaLike
    marks: FoundMarks
    """What was made of texts that stand for no value, once the rows have been read."""


def chosen_format(paths: Sequence[str], given: Format | None) -> Format:
    """Return the format of files: the option, or what their names say."""
    return guess_format(paths) if given is None else given


@contextmanager
def open_files(files: Files, schema: Schema | None, doing: str) -> Iterator[Source]:
    """Open files for as long as their rows are written; text takes the types of a schema's columns."""
    local = find_files(files.paths)
    inputs = [RunInput(*_dataset(path), same_columns=True) for path in files.paths]
    with reading_from(inputs):
        if local is not None and _stay_here(local, files):
            with _in_process(local, files, schema, doing) as source:
                yield source
        else:
            with _on_spark(files, schema, _types(local, files, schema), doing) as source:
                yield source


def _stay_here(paths: Sequence[Path], files: Files) -> bool:
    """Whether files are read in this process; Spark reads the others, if it is installed.

    CSV always is, however large: it is read in batches, and Spark has other rules for quotes, nulls and
    numbers.
    """
    if files.kind is Format.ARROW:
        return True
    if any("=" in parent.name for path in paths for parent in path.parents):
        return False  # directories have values in their names, which only Spark reads
    size = sum(path.stat().st_size for path in paths)
    return files.kind is Format.CSV or size <= _MOST[files.kind] or find_spec("pyspark") is None


def _types(paths: Sequence[Path] | None, files: Files, schema: Schema | None) -> Mapping[str, Type] | None:
    """Return the types of CSV columns, if they can be found without Spark."""
    if paths is None or files.kind is not Format.CSV:
        return None
    with working(_LOOKING):
        return csv_types(paths, schema, files.text, FoundMarks())


@contextmanager
def _in_process(paths: Sequence[Path], files: Files, schema: Schema | None, doing: str) -> Iterator[Source]:
    from instar.parts import data_schema  # noqa: PLC0415 -- slow

    marks = FoundMarks()
    size = sum(path.stat().st_size for path in paths)
    with progress_bars() as bars:
        hear = None if bars is None else partial(_hear, bars, size)
        look, tell = (_ignore, _ignore) if hear is None else (partial(hear, _LOOKING), partial(hear, doing))
        look(0)
        reader = read_files(paths, files.kind, schema, files.text, marks, look=look, tell=tell)
        made = data_schema(reader.schema)
        look(size)
        tell(0)
        data = reader if files.where is None else _chosen(reader, files.where, made)
        yield Source(data, made, marks)


def _hear(bars: Tell, size: int, what: str, done: int) -> None:
    bars(what, done, size)


def _ignore(_: int) -> None:
    """Show no progress."""


def _chosen(reader: pa.RecordBatchReader, where: str, schema: Schema) -> pa.RecordBatchReader:
    """Leave out the rows for which a condition is not true."""
    import pyarrow as pa  # noqa: PLC0415 -- slow

    from instar.parts import conform  # noqa: PLC0415 -- slow
    from instar.schema import arrow_schema  # noqa: PLC0415 -- slow
    from instar.table.read.filter import Filter  # noqa: PLC0415 -- slow
    from instar.table.services import wall_clock  # noqa: PLC0415 -- slow

    condition = Filter.parse(where, schema, wall_clock())
    rows = (batch.filter(condition.rows(batch, schema)) for batch in conform(reader, schema))
    return pa.RecordBatchReader.from_batches(arrow_schema(schema), rows)


@contextmanager
def _on_spark(
    files: Files, schema: Schema | None, types: Mapping[str, Type] | None, doing: str
) -> Iterator[Source]:
    if files.nulls:
        raise UsageError(
            "--null works for files of this machine only, and not below directories such as day=1: leave it "
            "out, or copy the files here first"
        )
    with working("starting Spark"):
        from instar.spark.commands import files as reading  # noqa: PLC0415 -- slow
        from instar.spark.problems import spark_errors  # noqa: PLC0415 -- slow
        from instar.spark.session import cancelling, local_session  # noqa: PLC0415 -- slow

        spark = local_session("instar import")
    with spark_errors():
        with working(_LOOKING), cancelling(spark):
            frame = reading.read_files(
                spark, files.paths, files.kind, schema, types=types, delimiter=files.delimiter
            )
        with (
            _spark_progress(spark, doing),
            reading.naming_misfits(frame, files.paths, files.kind),
            cancelling(spark),
        ):
            yield Source(
                frame if files.where is None else frame.where(files.where), frame.schema, FoundMarks()
            )


def _dataset(file: str) -> tuple[str, str]:
    """Return the namespace and name of a file as OpenLineage names it."""
    scheme, separator, rest = file.partition("://")
    if not separator or scheme == "file":
        return "file", str(Path(rest if separator else file).resolve())
    bucket, _, key = rest.partition("/")
    return f"{scheme}://{bucket}", key


@contextmanager
def _spark_progress(spark: SparkSession, what: str) -> Iterator[None]:
    """Show how many of Spark's tasks are done."""
    with progress_bars("tasks") as tell:
        if tell is None:
            yield
            return
        from instar.spark.commands.progress import watched  # noqa: PLC0415 -- slow

        with watched(spark, what, lambda done, total: tell(what, done, total or None)):
            yield

"""`instar import`: files of other formats become rows of a table."""

from __future__ import annotations

from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Final

import typer

from instar.cli.options import ConsensusOption, StoreOption, open_store
from instar.cli.output import (
    JsonOption,
    console,
    format_bytes,
    format_count,
    print_json,
    working,
)
from instar.cli.progress import progress_bars
from instar.errors import TableNotFoundError, UsageError
from instar.reporting import RunInput, reading_from

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from instar import Store, Table

__all__ = ["Format", "guess_format", "import_files"]

_SUFFIXES: Final = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_COMPRESSED: Final = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate", ".xz")


class Format(StrEnum):
    """What files may be."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"


def import_files(  # noqa: PLR0913 -- options of a command
    files: Annotated[list[str], typer.Argument(help="Files, directories or URLs that Spark can read.")],
    *,
    table: Annotated[str, typer.Option("--table", "-t", help="The table that gets the rows.")],
    file_format: Annotated[
        Format | None, typer.Option("--format", "-f", help="What the files are, if their names do not tell.")
    ] = None,
    create: Annotated[bool, typer.Option("--create", help="Create the table if there is none.")] = False,
    evolve: Annotated[bool, typer.Option("--evolve", help="Add columns that the table has not.")] = False,
    order_by: Annotated[
        list[str] | None, typer.Option(help="With --create, a column that files are sorted by. Repeatable.")
    ] = None,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Append the rows of Parquet, CSV or JSON files to a table, in one commit.

    CSV has a header, JSON one object a line. Values of text take the types of the table's columns; one that
    does not fit stops the import, and nothing is committed.

    Examples:

        instar import events.parquet --table events --create --order-by at --store lake

        instar import new/*.csv --table events --evolve --store lake

    """
    with open_store(store, consensus) as opened:
        target = _find(opened, table)
        if target is None and not create:
            raise TableNotFoundError(table)
        if target is not None and order_by:
            raise UsageError(f"`{table}` is there already, and its order stays: leave out --order-by")
        kind = str(file_format) if file_format is not None else guess_format(files)
        with working("starting Spark"):
            from instar.spark.commands.files import naming_misfits, read_files  # noqa: PLC0415 -- slow
            from instar.spark.commands.query import spark_errors  # noqa: PLC0415
            from instar.spark.session import cancelling, local_session  # noqa: PLC0415

            spark = local_session("instar import")
        with spark_errors():
            with working("looking at the files"), cancelling(spark):
                frame = read_files(spark, files, kind, None if target is None else target.schema)
            made = target is None
            target = target or opened.create_table(table, frame.schema, order_by=order_by or ())
            before = target.state.totals
            try:
                with (
                    _progress(spark, f"importing into {table}"),
                    naming_misfits(frame, files, kind),
                    cancelling(spark),
                    reading_from([RunInput(*_dataset(file), same_columns=True) for file in files]),
                ):
                    commit = target.append(frame, evolve=evolve)
            except BaseException:
                if made:
                    opened.drop_table(table)
                raise
        totals = target.state.totals
    parts, size = totals.parts - before.parts, totals.bytes - before.bytes
    if as_json:
        print_json({"table": table, **commit._asdict(), "parts": parts, "bytes": size})
        return
    console().print(
        f"Imported {format_count(commit.rows, 'row')} into {table} under schema {commit.schema_id}: "
        f"{format_count(parts, 'part')}, {format_bytes(size)}."
    )


def guess_format(paths: Sequence[str]) -> str:
    """Guess a format from the names of files."""
    formats = {_named_format(path) for path in paths}
    found = formats.pop() if len(formats) == 1 else None
    if found is None:
        raise UsageError(f"cannot tell the format of {', '.join(paths)} from the names: say --format")
    return found


def _named_format(path: str) -> str | None:
    """Return the format that the name of a file or directory ends with, compressed or not."""
    suffixes = PurePosixPath(path.lower()).suffixes
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return _SUFFIXES.get(suffixes[-1]) if suffixes else None


def _dataset(file: str) -> tuple[str, str]:
    """Return the namespace and name of a file as OpenLineage names it."""
    scheme, separator, rest = file.partition("://")
    if not separator or scheme == "file":
        return "file", str(Path(rest if separator else file).resolve())
    bucket, _, key = rest.partition("/")
    return f"{scheme}://{bucket}", key


def _find(store: Store, name: str) -> Table | None:
    try:
        return store.table(name)
    except TableNotFoundError:
        return None


@contextmanager
def _progress(spark: SparkSession, what: str) -> Iterator[None]:
    """Show how many of Spark's tasks are done."""
    with progress_bars("tasks") as tell:
        if tell is None:
            yield
            return
        from instar.spark.commands.progress import watched  # noqa: PLC0415 -- slow

        with watched(spark, what, lambda done, total: tell(what, done, total or None)):
            yield

"""`instar head`, `count`, `export`, `delete`, `listen`: the rows of a table, without Spark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from instar.amounts import format_count
from instar.cli.options import (
    AsOfOption,
    ConsensusOption,
    StoreOption,
    TableArgument,
    VersionOption,
    YesOption,
    confirm,
    open_store,
    parse_moment,
    snapshot_at,
)
from instar.cli.output import JsonOption, console, print_json, working
from instar.cli.printing import CsvOption, NdjsonOption, Shape, VerticalOption, chosen_shape, print_rows
from instar.errors import UsageError
from instar.files import Format, guess_format

if TYPE_CHECKING:
    from instar import Snapshot

__all__ = ["count", "delete", "export", "head", "listen", "restore"]

WhereOption = Annotated[
    str | None, typer.Option(help="Only rows for which a condition in Spark SQL is true.")
]
ColumnOption = Annotated[list[str] | None, typer.Option("--column", "-c", help="A column. Repeatable.")]
SinceOption = Annotated[
    int | None, typer.Option(parser=parse_moment, metavar="TIME", help="Changes after a time, in UTC.")
]
SchemaOption = Annotated[int | None, typer.Option(help="Read under an older schema, by its id.")]


def head(  # noqa: PLR0913 -- options of a command
    table: TableArgument,
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="How many rows.")] = 10,
    where: WhereOption = None,
    column: ColumnOption = None,
    as_of: AsOfOption = None,
    version: VersionOption = None,
    schema: SchemaOption = None,
    vertical: VerticalOption = False,
    csv: CsvOption = False,
    ndjson: NdjsonOption = False,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print some rows of a table. Only as many files are opened as needed.

    Examples:

        instar head events

        instar head events -n 3 --where "amount > 100" -c user -c amount --csv

    """
    shape = chosen_shape(as_json=as_json, ndjson=ndjson, csv=csv, vertical=vertical)
    with open_store(store, consensus) as opened:
        opened_table = opened.table(table)
        with snapshot_at(opened_table, as_of, version, schema, column) as snapshot, working("reading"):
            rows = snapshot.head(limit + 1, where=where)
    print_rows(rows.slice(0, limit), shape, more=rows.num_rows > limit)


def count(
    table: TableArgument,
    *,
    where: WhereOption = None,
    as_of: AsOfOption = None,
    version: VersionOption = None,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print how many rows a table has, or for how many a condition is true.

    Example:

        instar count events --where "amount is null"

    """
    with open_store(store, consensus) as opened:
        opened_table = opened.table(table)
        with snapshot_at(opened_table, as_of, version) as snapshot, working("counting"):
            rows = snapshot.count(where)
            time = snapshot.as_of
    if as_json:
        print_json({"table": table, "rows": rows, "as_of": time})
    else:
        console().print(str(rows))


def export(  # noqa: PLR0913 -- options of a command
    table: TableArgument,
    file: Annotated[str, typer.Argument(help="The file to write; - is the standard output.")],
    *,
    file_format: Annotated[
        Format | None,
        typer.Option(
            "--format", "-f", metavar="FORMAT", help="parquet, csv, json or arrow, if the name does not say."
        ),
    ] = None,
    where: WhereOption = None,
    column: ColumnOption = None,
    as_of: AsOfOption = None,
    version: VersionOption = None,
    schema: SchemaOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the rows of a table to a file of Parquet, CSV, JSON lines or Arrow, batch by batch.

    Examples:

        instar export events events.parquet

        instar export events - --format csv --where "country = 'DE'"

    """
    kind = guess_format([file]) if file_format is None else file_format
    with open_store(store, consensus) as opened:
        opened_table = opened.table(table)
        with snapshot_at(opened_table, as_of, version, schema, column) as snapshot:
            rows = _write(snapshot, file, kind, where, force=force)
    if file == "-":
        return
    if as_json:
        print_json({"table": table, "file": file, "format": str(kind), "rows": rows})
    else:
        console().print(f"Exported {format_count(rows, 'row')} of {table} to {file}.")


def delete(
    table: TableArgument,
    where: Annotated[str, typer.Argument(help="A condition in Spark SQL.")],
    *,
    yes: YesOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many rows would go.")] = False,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete the rows for which a condition is true. They can still be read as of earlier times.

    Examples:

        instar delete events "amount < 0" --dry-run

        instar delete events "user = 'ada'" --yes

    """
    with open_store(store, consensus) as opened:
        target = opened.table(table)
        nothing = f"The condition is true for no row of {table}: nothing was deleted."
        found = target.count(where) if dry_run or not yes else 0
        if dry_run:
            answer = {"table": table, "rows": found, "dry_run": True}
            text = (
                f"{format_count(found, 'row')} of {table} would go. This was a dry run: nothing was written."
            )
        elif not yes and not found:
            answer = {"table": table, "rows": 0, "dry_run": False}
            text = nothing
        else:
            confirm(f"Delete {format_count(found, 'row')} of {table}?", yes=yes)
            with working("deleting"):
                commit = target.delete(where)
            answer = {"table": table, **commit._asdict(), "dry_run": False}
            text = f"Deleted {format_count(commit.rows, 'row')} of {table}." if commit.rows else nothing
    if as_json:
        print_json(answer)
    else:
        console().print(text)


def restore(
    table: TableArgument,
    *,
    as_of: AsOfOption = None,
    version: VersionOption = None,
    yes: YesOption = False,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Restore the rows of a table as of a time, or after a commit.

    This is a new commit, unless the rows are the same already. Earlier times can still be read, and a restore
    can be undone by another. The schema stays as it is.

    Examples:

        instar log events

        instar restore events --version 7

    """
    if as_of is None and version is None:
        raise UsageError(
            "say which version to restore: --version N or --as-of TIME, as `instar log` prints them"
        )
    with open_store(store, consensus) as opened:
        target = opened.table(table)
        with snapshot_at(target, as_of, version) as then:
            rows = then.count()
        now = target.count()
        question = f"Bring {table} from {format_count(now, 'row')} back to {format_count(rows, 'row')}?"
        confirm(question, yes=yes)
        with working("restoring"):
            commit = target.restore(as_of if as_of is None else min(as_of, target.upper - 1), version=version)
    if as_json:
        print_json({"table": table, **commit._asdict(), "before": now, "after": rows})
    elif not commit.rows:
        console().print(f"{table} has the same rows as then: nothing was written.")
    else:
        console().print(
            f"Restored {table}: {format_count(now, 'row')} before, {format_count(rows, 'row')} now."
        )


def listen(
    table: TableArgument,
    *,
    since: SinceOption = None,
    column: ColumnOption = None,
    timeout: Annotated[
        float | None, typer.Option(help="Stop after this many seconds without a change; by default never.")
    ] = None,
    csv: CsvOption = False,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print changes as they are committed, one a line: the row, its time `_ts`, and `_diff`.

    `_diff` is 1 for a row that was added and -1 for one that was retracted; other numbers mean several times.
    Lines are JSON, or with --csv CSV. Ctrl-C ends it.

    Examples:

        instar listen events

        instar listen events --since 2026-11-15T12:00Z --timeout 5

    """
    shape = Shape.CSV if csv and not as_json else Shape.NDJSON
    with open_store(store, consensus) as opened:
        follower = opened.table(table).listen(since, columns=column, timeout=timeout)
        told = False
        for changes in follower:
            print_rows(changes.rows, shape, header=not told)
            told = True
            sys.stdout.flush()


def _write(snapshot: Snapshot, file: str, kind: Format, where: str | None, *, force: bool) -> int:
    from instar.files.write import write_file, write_text  # noqa: PLC0415 -- slow
    from instar.schema import arrow_schema  # noqa: PLC0415 -- slow

    schema = arrow_schema(snapshot.schema)
    if file == "-":
        if kind not in {Format.CSV, Format.JSON}:
            raise UsageError(f"the standard output takes csv or json, not {kind}: name a file")
        return write_text(sys.stdout, kind, schema, snapshot.to_batches(where))
    with working(f"writing {file}"):
        return write_file(Path(file), kind, schema, snapshot.to_batches(where), replace=force)

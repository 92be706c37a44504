"""`instar adopt` and `instar analyze`: existing Parquet files become part of a table without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from instar.amounts import format_bytes, format_count
from instar.cli.options import ConsensusOption, StoreOption, TableArgument, open_store
from instar.cli.output import JsonOption, console, print_json
from instar.cli.progress import progress
from instar.errors import TableNotFoundError, UsageError

if TYPE_CHECKING:
    from instar import Store, Table

__all__ = ["adopt", "analyze"]


def adopt(
    paths: Annotated[list[str], typer.Argument(help="Parquet files, directories of them, or URLs (s3://…).")],
    *,
    table: Annotated[str, typer.Option("--table", "-t", help="The table that takes them.")],
    create: Annotated[
        bool,
        typer.Option("--create", help="Create the table if there is none, with the columns of the files."),
    ] = False,
    evolve: Annotated[
        bool, typer.Option("--evolve", help="Add missing columns, and widen those that are too narrow.")
    ] = False,
    order_by: Annotated[
        list[str] | None, typer.Option(help="With --create, a column that files are sorted by. Repeatable.")
    ] = None,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make existing Parquet files part of a table without copying them.

    Files are read where they are, and never moved or deleted. Columns are matched by name; a value in a path,
    such as day=2026-11-15, is a column too. Adopting a directory again takes only new files.

    Examples:

        instar adopt warehouse/events --table events --create

        instar adopt s3://logs/2026/ --table logs --evolve

    """
    with open_store(store, consensus) as opened:
        target = _find(opened, table)
        if target is None and not create:
            raise TableNotFoundError(table, known=opened.tables(), may_create=True)
        if target is not None and order_by:
            raise UsageError(f"`{table}` is there already, and its order stays: leave out --order-by")
        made = target is None
        target = target or opened.create_table(table, opened.infer_schema(paths), order_by=order_by or ())
        try:
            with progress("reading footers", things="files") as tell:
                report = target.adopt(paths, evolve=evolve, tell=tell)
        except BaseException:
            if made:
                opened.drop_table(table)
            raise
    if as_json:
        print_json({"table": table, **report._asdict()})
        return
    known = f" {format_count(report.known, 'file')} had been adopted before." if report.known else ""
    if not report.files:
        console().print(f"Nothing new.{known}")
        return
    console().print(
        f"Adopted {format_count(report.files, 'file')} ({format_bytes(report.bytes)}) into {table} under "
        f"schema {report.schema_id}: {format_count(report.rows, 'row')}.{known}"
    )


def analyze(
    table: TableArgument,
    *,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read adopted files once and keep statistics of them, so that queries can skip them.

    Until then, only the values in their paths and the bounds in their footers that can be trusted are used.

    Examples:

        instar analyze events

    """
    with open_store(store, consensus) as opened, progress("analyzing") as tell:
        report = opened.table(table).analyze(tell=tell)
    if as_json:
        print_json(report._asdict())
        return
    if not report.files + report.overtaken:
        console().print("Nothing to do: all parts have statistics.")
        return
    console().print(
        f"Read {format_count(report.files, 'file')} ({format_bytes(report.bytes)}) and kept statistics."
    )


def _find(store: Store, name: str) -> Table | None:
    try:
        return store.table(name)
    except TableNotFoundError:
        return None

"""`instar purge`: remove dropped columns and deleted rows from the files."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from instar.amounts import format_count
from instar.cli.options import ConsensusOption, StoreOption, TableArgument, open_store
from instar.cli.output import JsonOption, console, print_json, print_table, working
from instar.errors import UsageError

__all__ = ["purge"]


def purge(
    table: TableArgument,
    *,
    column: Annotated[
        list[str] | None, typer.Option("--column", "-c", help="A column that was dropped. Repeatable.")
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--where", "-w", help="Delete the rows for which this is true, in Spark SQL."),
    ] = None,
    delete_adopted: Annotated[
        bool, typer.Option("--delete-adopted", help="Also delete adopted files that held them.")
    ] = False,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove dropped columns and deleted rows from the files, and name every file that held them.

    These files are rewritten, and the old ones are deleted. Earlier times of the table can no longer be
    read. The exit code is 1 if files stay, because somebody is reading them or because they were adopted.

    Examples:

        instar purge events --where "user = 'u-17'"

        instar purge events --column email

    """
    if not column and where is None:
        raise UsageError("say what to purge: --column for a dropped column, or --where for rows")
    with open_store(store, consensus) as opened, working("purging"):
        adopted = "delete" if delete_adopted else "keep"
        report = opened.table(table).purge(column or (), where, adopted=adopted)
    if as_json:
        print_json({**report._asdict(), "kept": [kept._asdict() for kept in report.kept]})
    else:
        if where is not None:
            console().print(f"Deleted {format_count(report.rows, 'row')}.")
        gone = [(file, "held it; deleted") for file in report.files]
        unread = [(file, "no longer used, not looked into; deleted") for file in report.unread]
        kept = [(kept.file, f"STAYS: {kept.why}") for kept in report.kept]
        if gone or unread or kept:
            print_table(("file", "what became of it"), [*gone, *unread, *kept])
        else:
            console().print("No file held any of it.")
        if report.log_until is not None:
            until = datetime.fromtimestamp(report.log_until / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
            console().print(
                "The log may hold least and greatest values of these files: run "
                f"`instar vacuum {table}` after {until}."
            )
    if report.kept:
        raise typer.Exit(1)

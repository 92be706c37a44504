"""`instar retain`: remove history that is older than a table should keep."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from instar.cli.options import ConsensusOption, StoreOption, TableArgument, open_store
from instar.cli.output import JsonOption, console, print_json

__all__ = ["retain"]


def retain(
    table: TableArgument,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say which times could still be read afterwards.")
    ] = False,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move the earliest time that can be read as far as the option `retention` says: a week by default.

    Rows that were deleted before that time leave the files at the next compaction, and the store at the next
    vacuum. Readers that read an earlier time already continue.

    Examples:

        instar retain events --dry-run

    """
    with open_store(store, consensus) as opened:
        report = opened.table(table).retain(dry_run=dry_run)
    if as_json:
        print_json({**report._asdict(), "dry_run": dry_run})
        return
    if report.kept is not None:
        console().print(f"All of the history stays: {report.kept}.")
        return
    if report.since == report.before:
        console().print(f"Nothing to do: the earliest time that can be read is {_moment(report.since)}.")
        return
    will = "would be" if dry_run else "is now"
    console().print(f"The earliest time that can be read {will} {_moment(report.since)}.")


def _moment(ms: int) -> str:
    return f"{ms} ({datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec='seconds')})"

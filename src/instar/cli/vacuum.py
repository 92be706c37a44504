"""`instar vacuum`: delete files that are no longer needed."""

from __future__ import annotations

from typing import Annotated

import typer

from instar.amounts import format_bytes, format_count
from instar.cli.options import ConsensusOption, StoreOption, open_store
from instar.cli.output import JsonOption, console, print_json, working
from instar.durations import parse_duration

__all__ = ["vacuum"]


def vacuum(
    table: Annotated[str | None, typer.Argument(help="One table; by default the whole store.")] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what could be deleted now.")] = False,
    grace: Annotated[str, typer.Option(help="Keep files younger than this: 90s, 30m, 24h, 7d.")] = "24h",
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete files that no reader, writer or table needs, and log entries that nobody needs.

    Readers and writers may continue meanwhile. A lease protects the files of each. The grace period protects
    those without a valid lease: processes that were asleep for too long, and readers without permission to
    write. Make it longer than the longest pause of a running process. A machine whose clock is ahead of the
    store's refuses to vacuum.

    Examples:

        instar vacuum events --dry-run

        instar vacuum --grace 7d

    """
    grace_ms = parse_duration(grace)
    with open_store(store, consensus) as opened, working("vacuuming"):
        if table is None:
            report = opened.vacuum(grace_ms=grace_ms, dry_run=dry_run)
        else:
            report = opened.table(table).vacuum(grace_ms=grace_ms, dry_run=dry_run)
    if as_json:
        print_json({**report._asdict(), "dry_run": dry_run})
        return
    verb = "Would delete at least" if dry_run else "Deleted"
    console().print(
        f"{verb} {format_count(report.objects, 'object')} ({format_bytes(report.bytes)}) "
        f"and {format_count(report.log_entries, 'log entry', 'log entries')}; "
        f"{format_count(report.kept_objects, 'object')} ({format_bytes(report.kept_bytes)}) "
        f"{'stays' if report.kept_objects == 1 else 'stay'}."
    )

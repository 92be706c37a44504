"""`instar compact`: rewrite parts so that queries have less to open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from instar.amounts import format_bytes, format_count
from instar.cli.options import ConsensusOption, StoreOption, open_store
from instar.cli.output import JsonOption, console, print_json, print_table
from instar.cli.progress import progress

if TYPE_CHECKING:
    from instar.api import Table

__all__ = ["compact"]


def compact(
    table: Annotated[str, typer.Argument(help="The table.")],
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be rewritten, and why.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Rewrite everything that is not ideal, however little it gains.")
    ] = False,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Merge small parts, sort overlapping ones, and bring old ones to the latest schema.

    A part is one Parquet file of a table. Readers and writers may continue meanwhile, and no reader can
    notice: rows as of any time stay the same. The old files stay until a vacuum finds that nobody needs them.

    Examples:

        instar compact events --dry-run

        instar compact events --full

    """
    with open_store(store, consensus) as opened:
        found = opened.table(table)
        if dry_run:
            _print_plan(found, full=full, as_json=as_json)
            return
        with progress("compacting") as tell:
            report = found.compact(full=full, tell=tell)
    if as_json:
        print_json(report._asdict())
        return
    if not report.jobs + report.overtaken:
        console().print("Nothing to do.")
        return
    console().print(
        f"Rewrote {format_count(report.parts_before, 'part')} ({format_bytes(report.bytes_before)}) as "
        f"{format_count(report.parts_after, 'part')} ({format_bytes(report.bytes_after)}) "
        f"in {format_count(report.jobs, 'commit')}."
    )
    if report.overtaken:
        console().print(
            f"{format_count(report.overtaken, 'job')} did nothing, because others changed the same parts."
        )


def _print_plan(table: Table, *, full: bool, as_json: bool) -> None:
    jobs = table.plan_compaction(full=full)
    if as_json:
        print_json(
            [
                {"reason": job.reason, "parts": len(job.parts), "rows": job.rows, "bytes": job.size}
                for job in jobs
            ]
        )
        return
    if not jobs:
        console().print("Nothing to do.")
        return
    print_table(
        ("reason", "parts", "rows", "bytes"),
        [(job.reason, f"{len(job.parts):,}", f"{job.rows:,}", format_bytes(job.size)) for job in jobs],
    )

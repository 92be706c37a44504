"""`instar optimize`: compact a table, and say how many parts filters open before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from instar.amounts import format_bytes, format_count
from instar.cli.options import ConsensusOption, StoreOption, TableArgument, open_store
from instar.cli.output import JsonOption, console, print_json, print_table
from instar.cli.progress import progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from instar.api import Table
    from instar.table.housekeeping.forecast import FilterForecast

__all__ = ["optimize"]


def optimize(
    table: TableArgument,
    *,
    where: Annotated[
        list[str] | None, typer.Option("--filter", help="A condition to count parts for. Repeatable.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done, and what filters would gain.")
    ] = False,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rewrite everything that is not ideal, and say how many parts filters open before and after.

    It is `instar compact --full` with a report for conditions: those of --filter, or else the last conditions
    of queries. A part is one Parquet file. With --dry-run, the numbers after are estimated from a sample of
    the rows; without, they are counted.

    Examples:

        instar optimize events --dry-run

        instar optimize events --dry-run --filter "country = 'CH'" --filter "at > '2026-11-01'"

        instar optimize events --filter "country = 'CH'"

    """
    with open_store(store, consensus) as opened:
        found = opened.table(table)
        foreseen = found.forecast(where or None)
        if dry_run:
            _print_plan(found, foreseen, as_json=as_json)
            return
        with progress("compacting") as tell:
            report = found.compact(full=True, tell=tell)
        reports = [found.explain(one.filter) for one in foreseen]
        known = zip(foreseen, reports, strict=True)
        counted = [one._replace(total_after=it.total, read_after=it.read) for one, it in known]
    if as_json:
        print_json({"compaction": report._asdict(), "filters": [one._asdict() for one in counted]})
        return
    if report.jobs:
        console().print(
            f"Rewrote {format_count(report.parts_before, 'part')} as "
            f"{format_count(report.parts_after, 'part')} ({format_bytes(report.bytes_after)})."
        )
    else:
        console().print("Nothing to do.")
    _print_filters(counted)


def _print_plan(table: Table, foreseen: Sequence[FilterForecast], *, as_json: bool) -> None:
    jobs = table.plan_compaction(full=True)
    if as_json:
        plan = [
            {"reason": job.reason, "parts": len(job.parts), "rows": job.rows, "bytes": job.size}
            for job in jobs
        ]
        print_json({"plan": plan, "filters": [one._asdict() for one in foreseen]})
        return
    if jobs:
        print_table(
            ("reason", "parts", "rows", "bytes"),
            [(job.reason, f"{len(job.parts):,}", f"{job.rows:,}", format_bytes(job.size)) for job in jobs],
        )
    else:
        console().print("Nothing to do.")
    _print_filters(foreseen)


def _print_filters(filters: Sequence[FilterForecast]) -> None:
    if filters:
        rows = [
            (
                one.filter,
                f"{one.read_before:,} of {one.total_before:,}",
                f"{one.read_after:,} of {one.total_after:,}",
            )
            for one in filters
        ]
        print_table(("filter", "parts before", "parts after"), rows)

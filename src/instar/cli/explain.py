"""`instar explain`: which parts of a table a condition needs, and why."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from instar.amounts import format_bytes, format_count
from instar.cli.options import (
    AsOfOption,
    ConsensusOption,
    StoreOption,
    TableArgument,
    open_store,
    snapshot_at,
)
from instar.cli.output import JsonOption, console, print_json, print_table

if TYPE_CHECKING:
    from instar import ScanReport, Table
    from instar.schema import Schema

__all__ = ["explain"]


def explain(
    table: TableArgument,
    where: Annotated[str, typer.Argument(help="A condition in Spark's SQL, in UTC and ANSI mode.")],
    *,
    parts: Annotated[
        bool, typer.Option("--parts", help="List all parts, with the bounds that decided each.")
    ] = False,
    as_of: AsOfOption = None,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell which parts (Parquet files) a condition needs, from statistics alone; no data file is opened.

    Examples:

        instar explain events "date_trunc('day', at) = '2026-11-15' and amount > 100"

        instar explain events "coalesce(country, 'none') = 'CH'" --parts --json

    """
    with open_store(store, consensus) as opened:
        found = opened.table(table)
        with snapshot_at(found, as_of) as snapshot:
            report = snapshot.explain(where, parts=parts)
            unbounded = _unbounded(found, snapshot.schema, where) if report.read else []
    if as_json:
        print_json(asdict(report) | {"skipped": report.skipped, "unbounded": unbounded})
        return
    _print(report)
    if unbounded:
        console().print(f"Some parts have no bounds of {', '.join(unbounded)}, and are always read.")
        console().print(f"After table.configure(stats={unbounded}), parts that are written have them.")


def _unbounded(table: Table, schema: Schema, where: str) -> list[str]:
    """Return the columns of a condition that have no bounds in some parts."""
    from instar.schema import parse_path  # noqa: PLC0415 -- slow
    from instar.skipping.sql import columns_mentioned  # noqa: PLC0415 -- slow

    mentioned = columns_mentioned(where, schema)
    names = {field.name for field in schema.fields if field.id in mentioned}
    return [path for path in table.unbounded() if parse_path(path)[0] in names]


def _print(report: ScanReport) -> None:
    mode = "" if report.skipping == "on" else f" (skipping is {report.skipping})"
    console().print(
        f"Reads {format_count(report.read)} of {format_count(report.total, 'part')} of {report.table}, "
        f"{format_bytes(report.bytes_read)} of {format_bytes(report.bytes_total)}{mode}"
    )
    if report.chunks_skipped:
        chunks = format_count(report.chunks, "manifest chunk")
        console().print(f"Skips {format_count(report.chunks_skipped)} of {chunks} whole")
    print_table(
        ("condition", "excludes alone"),
        [(own.text, format_count(own.excludes, "part")) for own in report.conjuncts],
    )
    if report.parts:
        rows = [
            (own.key, format_count(own.rows), format_bytes(own.size), "yes" if own.read else "no", own.why)
            for own in report.parts
        ]
        print_table(("part", "rows", "size", "read", "why"), rows)

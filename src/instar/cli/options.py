"""Options that many commands share, and what they mean."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

import instar
from instar.errors import InstarError, UsageError

if TYPE_CHECKING:
    from instar import Snapshot, Store, Table

__all__ = [
    "AsOfOption",
    "ConsensusOption",
    "StoreOption",
    "TableArgument",
    "VersionOption",
    "YesOption",
    "complete_table",
    "confirm",
    "open_store",
    "parse_moment",
    "snapshot_at",
]


def parse_moment(text: str) -> int:
    """Read a time, as milliseconds since 1970 or as ISO 8601; without a zone, it is in UTC."""
    from instar.table.read.moments import parse_time  # noqa: PLC0415 -- slow

    time = parse_time(text)
    if time < 0:
        raise UsageError(f"{text} is not a time that a table may have: it is before 1970")
    return time


StoreOption = Annotated[
    str,
    typer.Option("--store", "-s", envvar="INSTAR_STORE", help="The store: a directory or a URL (s3://…)."),
]
ConsensusOption = Annotated[
    str | None,
    typer.Option(
        envvar="INSTAR_CONSENSUS", help="Where the store keeps its logs, if not in itself: postgresql://…"
    ),
]
AsOfOption = Annotated[
    int | None,
    typer.Option(
        parser=parse_moment,
        metavar="TIME",
        help="The rows as of a time, in UTC: 2026-11-15T12:00, as `instar log` prints it, or milliseconds "
        "since 1970. A table that has not changed since then is read as it is.",
    ),
]
VersionOption = Annotated[
    int | None, typer.Option(help="The rows after a commit: a seqno, as `instar log` prints it.")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def complete_table(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the tables whose names begin with the text; none if the store cannot be read."""
    given = ctx.params.get("store") or os.environ.get("INSTAR_STORE") or "."
    consensus = ctx.params.get("consensus") or os.environ.get("INSTAR_CONSENSUS")
    try:
        with open_store(given, consensus) as store:
            return [name for name in store.tables() if name.startswith(incomplete)]
    except InstarError:
        return []


TableArgument = Annotated[
    str,
    typer.Argument(
        help="The table's name, such as billing/events.", show_default=False, autocompletion=complete_table
    ),
]


def open_store(location: str, consensus: str | None) -> Store:
    """Open a store that must exist."""
    return instar.open(location, consensus=consensus, create=False)


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something that is not easily undone; without a terminal, --yes is required."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question} There is no terminal to ask on: add --yes")
    typer.confirm(question, abort=True, err=True)


def snapshot_at(
    table: Table,
    as_of: int | None,
    version: int | None = None,
    schema: int | None = None,
    columns: list[str] | None = None,
) -> Snapshot:
    """Return the rows of a table as of a time; if it has not changed since, all of them."""
    time = None if as_of is None or as_of >= table.upper else as_of
    return table.snapshot(as_of=time, version=version, schema=schema, columns=columns)

"""Options that many commands share, and what they stand for."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

import instar
from instar.errors import UsageError

if TYPE_CHECKING:
    from instar import Snapshot, Store, Table

__all__ = [
    "AsOfOption",
    "ConsensusOption",
    "StoreOption",
    "TableArgument",
    "YesOption",
    "confirm",
    "open_store",
    "snapshot_at",
]


def _parse_time(text: str) -> int:
    """Read a time, as milliseconds since 1970 or as ISO 8601; without a zone, it is local."""
    try:
        return int(text) if text.isdecimal() else int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{text!r} is not a time that a table may have: write 2026-11-15T12:00, with +00:00 for UTC, "
            "or milliseconds since 1970"
        ) from None


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
        parser=_parse_time,
        metavar="TIME",
        help="Of the rows as of a time: 2026-11-15T12:00, or milliseconds since 1970. A table that has not "
        "changed since is read as it is.",
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
TableArgument = Annotated[
    str, typer.Argument(help="The table's name, such as billing/events.", show_default=False)
]


def open_store(location: str, consensus: str | None) -> Store:
    """Open a store that must be there."""
    return instar.open(location, consensus=consensus, create=False)


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something that is not easily undone; where nobody can answer, --yes has to be said."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question} There is nobody to ask here: say --yes")
    typer.confirm(question, abort=True, err=True)


def snapshot_at(table: Table, as_of: int | None) -> Snapshot:
    """Return the rows of a table as of a time; of one that ends before it, all of them."""
    return table.snapshot(as_of=None if as_of is None or as_of >= table.upper else as_of)

"""Options that many commands share, and what they stand for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final

import typer

import instar
from instar.errors import UsageError

if TYPE_CHECKING:
    from instar import Store

__all__ = ["ConsensusOption", "StoreOption", "TableArgument", "open_store", "parse_duration"]

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
TableArgument = Annotated[
    str, typer.Argument(help="The table's name, such as billing/events.", show_default=False)
]

_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def open_store(location: str, consensus: str | None) -> Store:
    """Open a store that must be there."""
    return instar.open(location, consensus=consensus, create=False)


def parse_duration(text: str) -> int:
    """Read a duration such as `90s`, `24h` or `7d`, and return milliseconds."""
    match = re.fullmatch(r"(\d{1,9})(ms|s|m|h|d)", text.strip())
    if match is None:
        raise UsageError(
            f"{text!r} is not a duration: write a number and a unit, such as 90s, 30m, 24h or 7d"
        )
    return int(match[1]) * _UNITS[match[2]]

"""A calendar in the terminal: a line per month, a cell per day, and a colour and a sign for each version."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Final

from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from instar.stream import Version

__all__ = ["draw_calendar"]

_SIGNS: Final = "123456789abcdefghijklmnopqrstuvwxyz"
_COLOURS: Final = ("red", "yellow", "green", "cyan", "blue", "magenta")
_DAYS: Final = 31


def draw_calendar(tables: Iterable[tuple[date | datetime | None, Version]]) -> Text:
    """Draw which version the tables of each day are stamped with: the lowest, if there are several.

    The newest version has the last sign; what is behind stands out by its colour.
    """
    by_day: dict[date, Version] = {}
    unplaced: list[Version] = []
    for start, version in tables:
        if start is None:
            unplaced.append(version)
            continue
        on = start.date() if isinstance(start, datetime) else start
        by_day[on] = min(by_day.get(on, version), version)
    shown = sorted({*by_day.values(), *unplaced})
    signs = {version: _cell(at, len(shown)) for at, version in enumerate(shown)}
    drawn = Text()
    for month in sorted({on.replace(day=1) for on in by_day}):
        drawn.append(f"  {month:%Y-%m}  ")
        for number in range(1, _DAYS + 1):
            cell = _day(month, number)
            if cell is not None:
                drawn.append(*(signs[by_day[cell]] if cell in by_day else ("·", "dim")))
        drawn.append("\n")
    if unplaced:
        drawn.append("  unplaced ")
        drawn.append(*signs[min(unplaced)])
        drawn.append("\n")
    _legend(drawn, shown, signs)
    return drawn


def _legend(drawn: Text, shown: Sequence[Version], signs: dict[Version, tuple[str, str]]) -> None:
    for version in shown:
        sign, style = signs[version]
        drawn.append("  ")
        drawn.append(sign, style)
        drawn.append(f" {version}")


def _cell(at: int, count: int) -> tuple[str, str]:
    """Return the sign and the colour of a version: the newest is green."""
    behind = count - 1 - at
    colour = "green" if not behind else [name for name in _COLOURS if name != "green"][(behind - 1) % 5]
    return _SIGNS[at % len(_SIGNS)], f"bold {colour}"


def _day(month: date, number: int) -> date | None:
    try:
        return month.replace(day=number)
    except ValueError:
        return None

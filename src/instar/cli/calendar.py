"""A calendar in the terminal: a cell per day, month or year, with a colour and a sign for each version."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from instar.stream import Version

__all__ = ["draw_calendar"]

_SIGNS: Final = "123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BEHIND: Final = ("red", "yellow", "cyan", "blue", "magenta")


class _Lines(NamedTuple):
    """How a line of a calendar is labelled, where the one with a date begins, and what its cells are."""

    label: str
    first: Callable[[date], date]
    cells: Callable[[date], Iterator[date]]


_Table = tuple[date | datetime | None, "Version"]


def draw_calendar(tables: Iterable[_Table], versions: Sequence[Version], period: str = "1d") -> Text:
    """Draw which version the tables of each cell are stamped with: the lowest, if there are several.

    `versions` are those that the legend knows, in order; the last is where all tables should be, and green.
    A line is a month of days; if tables are of months, a year; if they are of years, a decade.
    """
    signs = {version: _sign(at, len(versions)) for at, version in enumerate(versions)}
    lines = _LINES.get(period, _MONTHS)
    by_cell: dict[date, Version] = {}
    unplaced: list[Version] = []
    for start, version in tables:
        if start is None:
            unplaced.append(version)
            continue
        on = start.date() if isinstance(start, datetime) else start
        by_cell[on] = min(by_cell.get(on, version), version)
    drawn = Text()
    for first in sorted({lines.first(on) for on in by_cell}):
        drawn.append(f"  {first.strftime(lines.label):<7}  ")
        for cell in lines.cells(first):
            drawn.append(*(signs[by_cell[cell]] if cell in by_cell else ("·", "dim")))
        drawn.append("\n")
    if unplaced:
        drawn.append("  unplaced ")
        drawn.append(*signs[min(unplaced)])
        drawn.append("\n")
    _legend(drawn, sorted({*by_cell.values(), *unplaced}), signs)
    return drawn


def _legend(drawn: Text, shown: Sequence[Version], signs: dict[Version, tuple[str, str]]) -> None:
    for version in shown:
        sign, style = signs[version]
        drawn.append("  ")
        drawn.append(sign, style)
        drawn.append(f"\N{NO-BREAK SPACE}{version}")


def _sign(at: int, count: int) -> tuple[str, str]:
    """Return the sign and the colour of a version: the newest is green."""
    behind = count - 1 - at
    colour = _BEHIND[(behind - 1) % len(_BEHIND)] if behind else "green"
    return _SIGNS[at % len(_SIGNS)], f"bold {colour}"


def _month(on: date) -> date:
    return on.replace(day=1)


def _year(on: date) -> date:
    return on.replace(month=1, day=1)


def _decade(on: date) -> date:
    return date(max(on.year // 10 * 10, 1), 1, 1)


def _days(first: date) -> Iterator[date]:
    for number in range(1, 32):
        try:
            yield first.replace(day=number)
        except ValueError:  # the month is shorter
            return


def _months(first: date) -> Iterator[date]:
    return (first.replace(month=number) for number in range(1, 13))


def _years(first: date) -> Iterator[date]:
    return (first.replace(year=number) for number in range(first.year, first.year // 10 * 10 + 10))


_MONTHS: Final = _Lines("%Y-%m", _month, _days)
_YEARS: Final = _Lines("%Y", _year, _months)
_LINES: Final = {"1m": _YEARS, "1M": _YEARS, "1y": _Lines("%Ys", _decade, _years)}

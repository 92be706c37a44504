"""The kinds of tables that a stream has, and what their tables are called.

A kind and its period are declared when the stream is created, and never guessed from a path.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from instar.errors import InvalidNameError, UsageError
from instar.stream.period import parse_period
from instar.table import check_table_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from instar.stream.period import Period

__all__ = ["EVOLVED_IN_ORDER", "QUARANTINE_SUFFIX", "Kind", "Layout", "as_kind", "plan_layout"]


class Kind(Enum):
    """What a table of a stream is for."""

    HOURLY = "hourly"
    REGULAR = "regular"
    REPARTITIONED = "repartitioned"
    EOD = "eod"
    ARCHIVE = "archive"


EVOLVED_IN_ORDER: Final = (Kind.REPARTITIONED, Kind.REGULAR, Kind.EOD, Kind.ARCHIVE)
"""The order in which the evolver takes the kinds. Hourly tables keep the schema that they began with."""

_SUFFIXES: Final = {Kind.REPARTITIONED: "-repartitioned", Kind.EOD: "-eod"}
_UNPLACED: Final = "unplaced"
QUARANTINE_SUFFIX: Final = "-quarantine"
_LONGEST_VERSION: Final = "_v0.0.1000000000"
"""What a table beside an hourly one may end with; a name leaves room for it."""


class Layout(NamedTuple):
    """The name of a stream, and the period of each of its kinds."""

    name: str
    periods: Mapping[Kind, Period]

    def period(self, kind: Kind) -> Period:
        """Return the period of a kind, or say that the stream has no such tables."""
        found = self.periods.get(kind)
        if found is None:
            known = ", ".join(each.value for each in self.periods)
            raise UsageError(f"stream `{self.name}` has no {kind.value} tables: its kinds are {known}")
        return found

    def table_name(self, kind: Kind, start: int | None) -> str:
        """Return the name of the table that begins at a time; None is where rows without a place go."""
        period = self.period(kind)
        leaf = _UNPLACED if start is None else period.name(start)
        return f"{self.name}{_SUFFIXES.get(kind, '')}/{period}/{leaf}"


def as_kind(given: str | Kind) -> Kind:
    """Read a kind by its name."""
    try:
        return Kind(given)
    except ValueError:
        known = ", ".join(kind.value for kind in Kind)
        raise UsageError(f"{given!r} is not a kind of table: the kinds are {known}") from None


def plan_layout(name: str, kinds: Mapping[str, str]) -> Layout:
    """Check the kinds of a stream, which needs regular tables, and no two kinds with the same paths."""
    periods = {as_kind(kind): parse_period(period) for kind, period in kinds.items()}
    if Kind.REGULAR not in periods:
        raise UsageError(f"stream `{name}` needs regular tables: add kinds={{'regular': '1d', …}}")
    for suffix in (*_SUFFIXES.values(), QUARANTINE_SUFFIX):
        if name.endswith(suffix):
            raise InvalidNameError(name, f"a stream keeps names that end in {suffix} for its own tables")
    if Kind.HOURLY in periods and not periods[Kind.HOURLY].within_a_day:
        month = " (1m is a month)" if periods[Kind.HOURLY].is_month else ""
        raise UsageError(
            f"hourly tables have a period of minutes or hours, not {periods[Kind.HOURLY]}{month}"
        )
    taken: dict[tuple[str, str], Kind] = {}
    for kind, period in periods.items():
        path = "1M" if period.is_month else str(period)  # no two paths differ in case alone
        other = taken.setdefault((_SUFFIXES.get(kind, ""), path), kind)
        if other is not kind:
            raise UsageError(
                f"{other.value} and {kind.value} tables of `{name}` would have the same names: "
                f"give them different periods, not both {period}"
            )
    layout = Layout(name, {kind: periods[kind] for kind in Kind if kind in periods})
    for kind in layout.periods:
        _check_room(layout, kind)
    return layout


def _check_room(layout: Layout, kind: Kind) -> None:
    """Raise if a stream's name leaves no room for what the names of its tables add to it."""
    longest = layout.table_name(kind, 0) + (_LONGEST_VERSION if kind is Kind.HOURLY else "")
    try:
        check_table_name(longest)
    except InvalidNameError as error:
        raise InvalidNameError(
            layout.name, f"its tables could not be named, such as `{longest}`: {error.why}"
        ) from None

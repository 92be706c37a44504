"""The league: how many files each engine opens for each of twenty filters, and whether it loses rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.measure import say
from bench.opened import Opened
from bench.report import Column, Section
from bench.skipping.contenders import Field, NotExpressibleError, enter
from bench.skipping.filters import PARTS, league_filters
from bench.skipping.peers import write_parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from bench.skipping.contenders import Contender
    from bench.skipping.filters import Filter

__all__ = ["play_league"]

_NOTES: Final = (
    f"{PARTS} files of 100 rows. A figure is the number of files that a query opened, as the kernel saw it;",
    "ideal is to open those that hold a row for which the filter is true.",
    "In brackets: row groups that were read after files had been opened to decide. “no”: cannot be asked.",
    "“-n”: so many rows that the filter is true for were missing in the answer.",
    "instar says the same beforehand, through Table.explain and instar.scan_reports, and opens none for it.",
    "pyiceberg has no now() and gets a literal; to it NaN is not greater than a number, and no row is lost.",
    "instar checks no skipped parts here (skipping_sample 0), which it does for one in a hundred otherwise.",
)


class _Score(NamedTuple):
    """What a contender did for one filter; files are None if it could not be asked."""

    files: int | None
    row_groups: int | None
    lost: int
    at_ideal: bool
    groups_at_ideal: bool = False

    def __str__(self) -> str:
        if self.files is None:
            return "no"
        groups = "" if self.row_groups is None else f" ({self.row_groups})"
        return f"{self.files}{groups}" + (f" -{self.lost}" if self.lost else "")


def play_league(directory: Path, spark: SparkSession | None, left_out: Callable[[str], None]) -> Section:
    """Let everybody that can play answer all filters."""
    filters = league_filters()
    field = Field(directory, write_parquet(directory / "parquet"), spark)
    scores: dict[str, list[_Score]] = {}
    for contender in enter(field, left_out):
        say(f"  {contender.name} …")
        with Opened(contender.data) as opened:
            scores[contender.name] = [_ask(contender, one, opened) for one in filters]
        close: Callable[[], None] = getattr(contender, "close", lambda: None)
        close()
    rows = [_row(one, {name: given[at] for name, given in scores.items()}) for at, one in enumerate(filters)]
    rows.append(_totals(scores))
    columns = {"filter": Column("filter"), "ideal": Column("ideal")}
    columns |= {name: Column(name) for name in scores}
    return Section("The league: files opened for a filter", columns, rows, _NOTES)


def _ask(contender: Contender, condition: Filter, opened: Opened) -> _Score:
    """Ask for rows, and before that how many files it will take, if that can be asked."""
    explain: Callable[[Filter], int] | None = getattr(contender, "explain", None)
    planned = None
    opened.take()
    if explain is not None:
        planned = explain(condition)
        touched = opened.take()
        assert not touched, f"{contender.name} opened {len(touched)} files to explain {condition.sql}"
    try:
        found = contender.find(condition)
    except NotExpressibleError:
        return _Score(None, None, 0, at_ideal=False)
    files = len({path for path in opened.take() if path.parent == contender.data})
    assert planned in {None, files}, f"{contender.name} announced {planned} files and opened {files}"
    wanted, ideal = condition.ids, condition.ideal
    if not contender.nan_is_greatest and condition.nan_ids:
        wanted = wanted - condition.nan_ids
        ideal = len({id_ // 100 for id_ in wanted})
    lost = len(wanted - found.ids)
    at_ideal = (count == ideal and not lost for count in (files, found.row_groups))
    return _Score(files, found.row_groups, lost, *at_ideal)


def _row(condition: Filter, scores: dict[str, _Score]) -> dict[str, Any]:
    return {
        "filter": condition.sql,
        "ideal": str(condition.ideal),
        **{name: str(score) for name, score in scores.items()},
    }


def _totals(scores: dict[str, list[_Score]]) -> dict[str, Any]:
    return {
        "filter": f"at the ideal (of {len(next(iter(scores.values())))}), and rows lost",
        "ideal": None,
        **{name: _total(given) for name, given in scores.items()},
    }


def _total(scores: Sequence[_Score]) -> str:
    """Say how often a contender reached the ideal, in brackets with its row groups, and what it lost."""
    groups = ""
    if any(score.row_groups is not None for score in scores):
        groups = f" ({sum(score.groups_at_ideal for score in scores)})"
    return f"{sum(score.at_ideal for score in scores)}{groups}, {sum(score.lost for score in scores)}"

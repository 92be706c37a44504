"""Queries on Spark: selective ones beside plain Parquet, and one that needs everything, skipping or not."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import instar
from bench.frames import DDL, drain, events, plan_tasks
from bench.measure import Ratio, seconds, timing, warmed
from bench.report import Column, Section

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

    from instar import Table

__all__ = [
    "MOST_OVERHEAD",
    "TIMES_FASTER",
    "Events",
    "make_events",
    "measure_everything",
    "measure_selective",
]

TIMES_FASTER: Final = 5.0
"""A selective query shall be so many times faster than on plain Parquet."""
MOST_OVERHEAD: Final = 1.02
"""A query that nothing can be skipped for may take so many times what it takes with skipping off."""

_EVERYTHING: Final = "abs(id) >= 0 and year(at) >= 2026 and length(note) = 40"
_SELECTIVE_NOTES: Final = (
    "Both read the same files and give the same answer: the number of rows and the sum of a column.",
    "“opened before”: the frame exists, and Spark has listed the files; “opened anew”: with opening it.",
    "Each round asks for other values. instar checks some of the parts that it skips, as its budget allows.",
)
_EVERYTHING_NOTES: Final = (
    f"All columns of all rows where {_EVERYTHING}, which is true for every row.",
    "“on again” is the same as “on”: how far its ratio is from that is the noise.",
    "Skipping acts while a query is planned, and its tasks are the same: what it costs is planning.",
)


class Events(NamedTuple):
    """A table of events in the order of time, on Spark."""

    spark: SparkSession
    table: Table
    rows: int
    parts: int

    @property
    def size(self) -> str:
        """How much it is."""
        return f"{self.table.state.totals.bytes / 1e9:.2f} GB in {self.parts:,} parts"


def make_events(spark: SparkSession, directory: Path, rows: int, parts: int) -> Events:
    """Write a table with so many parts, one from each task."""
    table = instar.open(str(directory)).create_table("events", DDL)
    table.append(events(spark, rows, tasks=parts))
    made = table.state.totals.parts
    assert made == parts, f"{made} parts were made and not {parts}"
    return Events(spark, table, rows, parts)


def measure_selective(made: Events, rounds: int) -> Section:
    """Ask for a little in many parts, of the table and of its plain files by turns."""
    spark, table = made.spark, made.table
    paths = table.read(spark).inputFiles()
    opening: dict[str, Callable[[], DataFrame]] = {
        "ours": partial(table.read, spark),
        "plain": partial(_plain, made, paths),
    }
    opened = {name: open_() for name, open_ in opening.items()}
    before: dict[str, Callable[[], DataFrame]] = {
        name: partial(_same, frame) for name, frame in opened.items()
    }
    rows: list[dict[str, Any]] = []
    for text in _FILTERS:
        for when, frames in {"opened before": before, "opened anew": opening}.items():
            questions = {name: _Question(made, text, frame) for name, frame in frames.items()}
            cases = {name: partial(seconds, question.ask) for name, question in questions.items()}
            took = warmed(f"{text}, {when}", cases, rounds)
            assert questions["ours"].answers == questions["plain"].answers, f"rows are missing for {text}"
            ratio = Ratio.of(took["plain"], took["ours"])
            rows.append(
                {
                    "filter": _fill(made, text, 0),
                    "when": when,
                    "ratio": ratio,
                    "verdict": "met" if ratio.median >= TIMES_FASTER else "missed",
                    "seconds": median(took["ours"]),
                    "base": median(took["plain"]),
                    "read": _parts_read(made, text),
                }
            )
    columns = {
        "filter": Column("filter"),
        "when": Column("when"),
        "ratio": Column("plain Parquet / instar"),
        "verdict": Column(f"target ≥ {TIMES_FASTER:.0f}"),
        "seconds": Column("instar, s", ".3f"),
        "base": Column("plain, s", ".3f"),
        "read": Column("parts read"),
    }
    return Section(
        f"Selective queries beside spark.read.parquet, {made.size}", columns, rows, _SELECTIVE_NOTES
    )


def measure_everything(made: Events, rounds: int) -> Section:
    """Read everything with a filter that is always true, with skipping on and off by turns."""
    assert made.table.read(made.spark).where(_EVERYTHING).count() == made.rows
    labels = ("off", "on", "on again")

    def ask(label: str, do: Callable[[DataFrame], object]) -> None:
        made.spark.conf.set("instar.skipping", label.partition(" ")[0])
        do(made.table.read(made.spark).where(_EVERYTHING))

    took = warmed("reading everything", {it: timing(ask, it, drain) for it in labels}, rounds)
    planned = warmed("planning it", {it: timing(ask, it, plan_tasks) for it in labels}, 5 * rounds)
    made.spark.conf.unset("instar.skipping")
    rows = []
    for label in labels:
        ratio = Ratio.of(took[label], took["off"])
        more = (median(planned[label]) - median(planned["off"])) / median(took["off"])
        verdict = None if label == "off" else "met" if 1 + more <= MOST_OVERHEAD else "missed"
        rows.append(
            {
                "skipping": label,
                "ratio": ratio,
                "seconds": median(took[label]),
                "planning": median(planned[label]) * 1000,
                "more": more,
                "verdict": verdict,
            }
        )
    columns = {
        "skipping": Column("skipping"),
        "ratio": Column("times off"),
        "seconds": Column("seconds", ".2f"),
        "planning": Column("planning, ms", ".1f"),
        "more": Column("more planning / query", "+.2%"),
        "verdict": Column(f"target ≤ {MOST_OVERHEAD - 1:.0%}"),
    }
    return Section(f"A query that needs every part, {made.size}", columns, rows, _EVERYTHING_NOTES)


class _Question:
    """One query of a frame, with other values each time it is asked."""

    def __init__(self, made: Events, text: str, frame: Callable[[], DataFrame]) -> None:
        self._made = made
        self._text = text
        self._frame = frame
        self.answers: list[Row] = []

    def ask(self) -> None:
        where = _fill(self._made, self._text, len(self.answers))
        found = self._frame().where(where).selectExpr("count(*)", "round(sum(amount), 2)").collect()
        assert found[0][0] > 0
        self.answers += found


_FILTERS: Final = (
    "id = {id}",
    "abs(id - {id}) < 100",
    "date_trunc('hour', at) = timestamp'2026-01-01' + interval {hour} hours",
)


def _fill(made: Events, text: str, turn: int) -> str:
    """Put values into a filter that lie somewhere else in the table at each turn."""
    id_ = made.rows * ((37 + 61 * turn) % 100) // 100
    return text.format(id=id_, hour=id_ // 3600)


def _parts_read(made: Events, text: str) -> int:
    frame = made.table.read(made.spark).where(_fill(made, text, 0))
    return sum(report.read for report in instar.scan_reports(frame))


def _same(frame: DataFrame) -> DataFrame:
    return frame


def _plain(made: Events, paths: list[str]) -> DataFrame:
    """Read the same files by their physical names, with the names that people use put on top."""
    frame = made.spark.read.parquet(*paths)
    return frame.selectExpr(*(f"f{field.id} as `{field.name}`" for field in made.table.schema.fields))

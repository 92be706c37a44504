"""How benchmarks compare: by turns, with ratios, and with what moved during the run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from bench.__main__ import app
from bench.measure import Ratio, interleave
from bench.report import Column, Report, Section
from bench.workload import Question, bounds

if TYPE_CHECKING:
    import pytest


def test_cases_take_turns_forwards_and_backwards() -> None:
    """What disturbs the machine for a while meets all cases, and none is always the first."""
    calls: list[str] = []
    cases = {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}
    interleave("turns", cases, 3)
    assert calls == ["a", "b", "b", "a", "a", "b"]


def test_a_ratio_tells_how_much_it_moved() -> None:
    """A ratio is the median over stretches of the run, and says between which values they were."""
    ratio = Ratio.of([2.0, 2.0, 2.0, 3.0, 1.0], [1.0, 1.0, 1.0, 1.0, 1.0])
    assert ratio == Ratio(2.0, 1.0, 3.0)
    assert str(ratio) == "2.00 (1.00…3.00)"
    assert str(Ratio.of([120.0], [1.0])) == "120"


def test_a_report_is_a_table_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    """People see rounded figures and programs the measured ones; what was not measured is a dash."""
    columns = {"engine": Column("engine"), "ratio": Column("ratio"), "ms": Column("median ms", ".1f")}
    rows = [{"engine": "instar", "ratio": Ratio(1.0, 1.0, 1.0), "ms": 0.123}]
    rows += [{"engine": "other", "ratio": None, "ms": None}]
    report = Report("./dev bench x", {"cores": "2"}, [Section("Speed", columns, rows, ["Mind this."])])
    report.skipped.append("a peer, which is not installed here")
    report.print()
    text = capsys.readouterr().out
    assert [" ".join(line.split()) for line in text.splitlines() if "other" in line] == ["other - -"]
    assert "Mind this." in text
    assert "Left out: a peer" in text
    report.print_json()
    assert json.loads(capsys.readouterr().out)["sections"][0]["rows"][0]["ms"] == 0.123


def test_a_question_leaves_few_parts() -> None:
    """The filter is narrow in one column and cuts the other in half."""
    question = Question.about(10_000)
    near = [
        part
        for part, (low, high) in enumerate(bounds(range(10_000)))
        if high[0] >= question.first and low[0] <= question.last
    ]
    assert len(near) == 100
    assert 0 < question.answer() < len(near)


def test_starting_up_is_measured() -> None:
    """Each process has a ratio to one that does nothing, and a peer that is not there is named."""
    done = CliRunner().invoke(app, ["startup", "--quick", "--json"])
    assert done.exception is None, done.output
    report = json.loads(done.stdout)
    rows = {row["what"] for row in report["sections"][0]["rows"]}
    assert {"import instar", "instar --version", "instar --help", "instar, completion"} <= rows
    assert any("sqlite-utils" in row for row in rows) or "sqlite-utils" in report["skipped"][0]

"""`instar stream` and `instar evolver` for people and for programs."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pyarrow as pa
import pytest

import instar as package
from instar import PassReport
from instar.api.evolver import Evolver
from instar.cli import evolver
from instar.cli.calendar import draw_calendar
from instar.errors import ConflictError, StorageError
from instar.stream import as_version
from tests.unit.cli.command import instar

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """Return a store with a stream of four days, two of them behind."""
    location = str(tmp_path / "lake")
    instar("init", location)
    columns = "user string, at timestamp, amount int"
    made = instar(
        "stream", "create", "clicks", columns, "--time", "at", "--kind", "regular=1d", "-s", location
    )
    assert made.returncode == 0, made.stderr
    with package.open(location) as store:
        stream = store.stream("clicks")
        stream.write(_rows(0, amount=1), version="v0.0.1")
        instar(
            "stream", "evolve", "clicks", columns.replace("int", "bigint"), "--version", "v2", "-s", location
        )
        stream.write(_rows(2, amount=2**40), version="v2")
    return location


def _rows(first: int, **columns: Any) -> pa.Table:  # noqa: ANN401 -- any values
    times = [datetime(2026, 11, 1, tzinfo=UTC) + timedelta(days=first + at) for at in range(2)]
    more = {name: [value] * 2 for name, value in columns.items()}
    return pa.table({"user": ["a", "b"], "at": pa.array(times, pa.timestamp("us", "UTC")), **more})


def _json(*arguments: str) -> Any:  # noqa: ANN401 -- whatever was printed
    done = instar(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_stream_is_listed_described_and_read(lake: str) -> None:
    """The calendar shows each day's version, and a range is read in one schema."""
    assert [(fact["name"], fact["tables"]) for fact in _json("stream", "list", "-s", lake)] == [("clicks", 4)]
    shown = instar("stream", "describe", "clicks", "-s", lake).stdout.replace("\N{NO-BREAK SPACE}", " ")
    assert "2026-11  1122" in shown
    assert "1 v0.0.1  2 v2.0.0" in shown
    described = _json("stream", "describe", "clicks", "-s", lake)
    assert [table["version"] for table in described["tables"]] == ["v0.0.1"] * 2 + ["v2.0.0"] * 2
    rows = _json("stream", "read", "clicks", "--start", "2026-11-02", "--end", "2026-11-04", "-s", lake)
    assert [(row["user"], row["amount"]) for row in rows] == [("b", 1), ("a", 2**40)]


def test_a_new_version_is_checked_against_what_tables_hold(lake: str) -> None:
    """Each version that has rows is judged, those without are not; one that breaks a query exits with 1."""
    columns = "user string, at timestamp, amount {}, country string"
    instar("stream", "evolve", "clicks", columns.format("bigint"), "--version", "v3", "-s", lake)
    good = instar("check", columns.format("bigint") + ", more int", "--against", f"{lake}/clicks", "--json")
    assert good.returncode == 0, good.stderr
    assert [it["old"] for it in json.loads(good.stdout)["checks"]] == ["clicks v0.0.1", "clicks v2.0.0"]
    bad = instar("check", columns.format("int"), "--against", f"{lake}/clicks", "--json")
    assert bad.returncode == 1
    assert [it["query"] for it in json.loads(bad.stdout)["checks"]] == ["safe", "unsafe"]
    gone = instar("check", columns.format("int"), "--against", f"{lake}/views")
    assert gone.returncode == 3
    assert "`views` does not exist" in gone.stderr


def test_rows_of_a_stream_are_printed_as_those_of_a_table(lake: str) -> None:
    """Nulls, times and shapes are those of `instar head`, and what is left out is said."""
    days = ("--start", "2026-11-04", "--end", "2026-11-05")
    for shape in ((), ("--vertical",), ("--csv",), ("--ndjson",), ("--json",)):
        of_table = instar("head", "clicks/1d/2026-11-04", *shape, "-s", lake).stdout
        assert "2026-11-04T00:00:00Z" in of_table
        assert instar("stream", "read", "clicks", *days, *shape, "-s", lake).stdout == of_table
    two = instar("stream", "read", "clicks", "--column", "user", "--limit", "2", "-s", lake).stdout
    assert two.splitlines() == ["user", "a", "b", "There are more rows; --limit shows more."]


def test_the_evolver_says_what_it_will_do_did_and_does_next(lake: str) -> None:
    """It explains before, reports after, and has nothing to do until it is due again."""
    assert "a pass is due" in instar("evolver", "explain", "clicks", "-s", lake).stdout
    assert _json("evolver", "explain", "clicks", "-s", lake)["verdicts"][0]["versions"] == ["v0.0.1"]
    assert _json("evolver", "once", "--always", "-s", lake)["stamped"] == 2
    (status,) = _json("evolver", "status", "-s", lake)
    assert (status["target"], status["waiting"], status["passes"]) == ("v2.0.0", 0, 1)
    assert "clicks" in instar("evolver", "status", "-s", lake).stdout
    assert "nothing to do until" in instar("evolver", "explain", "clicks", "-s", lake).stdout
    assert instar("evolver", "run", "--rounds", "2", "--every", "1ms", "-s", lake).stdout == ""


def test_a_table_that_fails_is_shown(lake: str) -> None:
    """The status names it, with how often it was tried and why it failed; once ends with 1."""
    with package.open(lake) as store:
        store.create_table("clicks/1d/2026-11-09", "x int")
        with pytest.raises(ConflictError):
            store.stream("clicks").write(_rows(8, amount=1).slice(0, 1), version="v2")
        store.stream("clicks").evolve("user string, at timestamp, amount bigint, c string", version="v3")
    assert instar("evolver", "once", "--always", "-s", lake).returncode == 1
    shown = instar("evolver", "status", "-s", lake).stdout
    assert "1 waiting, 4 stamped, 0 left alone, 0 dead letters" in shown
    assert (
        "clicks/1d/2026-11-09: 1 attempts, ConflictError: table `clicks/1d/2026-11-09` belongs to no" in shown
    )


def test_an_evolver_that_runs_outlives_a_store_that_does_not_answer(
    lake: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A look that fails is told, and the next one is made; only the first must not fail."""
    outcomes: list[PassReport | StorageError] = [
        PassReport(passes=1),
        StorageError("read it", "no answer"),
        PassReport(passes=2),
    ]

    def look(_: object, **__: object) -> PassReport:
        outcome = outcomes.pop(0)
        if isinstance(outcome, StorageError):
            raise outcome
        return outcome

    monkeypatch.setattr(Evolver, "run_once", look)
    evolver.run(every="1ms", rounds=3, store=lake)
    said = capsys.readouterr()
    assert [line.split(" done")[0] for line in said.out.splitlines()] == ["1 pass", "2 passes"]
    assert "no answer" in said.err
    outcomes.append(StorageError("read it", "no answer"))
    with pytest.raises(StorageError):
        evolver.run(every="1ms", rounds=2, store=lake)


def test_an_evolver_that_is_told_to_stop_lets_others_lead(lake: str) -> None:
    """SIGTERM is no error; whoever comes next need not wait. While it runs, it serves counters."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--always", "--every", "1h", "--metrics-port", str(port), "-s", lake]
    command = [sys.executable, "-m", "instar", "evolver", "run", *options]
    daemon = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert daemon.stdout is not None
        assert "1 pass" in daemon.stdout.readline()
        counters = urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        assert 'instar_evolver_stamped_total{stream="clicks"} 2.0' in counters
        daemon.send_signal(signal.SIGTERM)
        _, errors = daemon.communicate(timeout=60)
        assert (daemon.returncode, errors) == (0, "")
    finally:
        daemon.kill()
        daemon.wait()
    instar("stream", "evolve", "clicks", "user string, at timestamp", "--version", "v3", "-s", lake)
    assert _json("evolver", "once", "--always", "-s", lake)["stamped"] == 4


def test_wrong_calls_end_in_one_line(lake: str) -> None:
    """What is wrong is said with what to do, and no traceback."""
    for arguments, message in (
        (("stream", "describe", "nothing"), "stream `nothing` does not exist"),
        (("stream", "create", "s", "at timestamp", "--time", "at", "--kind", "regular"), "write regular=1d"),
        (("stream", "create", "s", "at timestamp", "--time", "at", "--kind", "regular=7m"), "divide a day"),
        (("stream", "read", "clicks", "--start", "soon"), "is not a time"),
        (("stream", "evolve", "clicks", "user int", "--version", "v3"), "cannot evolve"),
    ):
        done = instar(*arguments, "-s", lake)
        assert done.returncode != 0
        assert message in done.stderr
        assert "Traceback" not in done.stderr


def test_a_calendar_has_a_line_per_month_and_the_lowest_version_of_a_day() -> None:
    """Days without a table are dots; rows without a place have a line of their own; the newest is green."""
    v1, v2, v3 = versions = [as_version(text) for text in ("v1", "v2", "v3")]
    tables = [
        (date(2026, 2, 28), v2),
        (datetime(2026, 3, 1, 6, tzinfo=UTC), v1),
        (datetime(2026, 3, 1, 12, tzinfo=UTC), v2),
        (None, v2),
    ]
    drawn = draw_calendar(tables, versions)
    lines = str(drawn).replace("\N{NO-BREAK SPACE}", " ").splitlines()
    assert lines[0] == "  2026-02  " + "·" * 27 + "2"
    assert lines[1] == "  2026-03  1" + "·" * 30
    assert lines[2:] == ["  unplaced 2", "  1 v1.0.0  2 v2.0.0"]
    assert "green" not in str(drawn.spans)
    assert "green" in str(draw_calendar([(date(2026, 2, 28), v3)], versions).spans)


@pytest.mark.parametrize(
    ("period", "lines"),
    [
        ("1m", ["  2026     ·1··········"]),
        ("1M", ["  2026     ·1··········"]),
        ("1y", ["  2020s    ······1···"]),
        ("1d", ["  2026-02  1" + "·" * 27]),
    ],
)
def test_a_cell_is_as_long_as_a_table(period: str, lines: list[str]) -> None:
    """Tables of months have a line for a year, and tables of years one for a decade."""
    start = date(2026, 1 if period == "1y" else 2, 1)
    drawn = str(draw_calendar([(start, as_version("v1"))], [as_version("v1")], period))
    assert drawn.splitlines()[:-1] == lines


def test_a_stream_is_dropped_if_somebody_says_yes_and_comes_back(lake: str) -> None:
    """Without an answer nothing happens; what was dropped is not listed, and comes back with its rows."""
    assert instar("stream", "drop", "clicks", "-s", lake).returncode != 0
    assert _json("stream", "list", "-s", lake)
    assert _json("stream", "drop", "clicks", "--yes", "-s", lake) == {"dropped": "clicks"}
    assert (_json("stream", "list", "-s", lake), _json("tables", "-s", lake)) == ([], [])
    assert _json("evolver", "status", "-s", lake) == []
    again = instar("stream", "drop", "clicks", "--yes", "-s", lake)
    assert (again.returncode, "was dropped" in again.stderr) == (3, True)
    assert "with 4 tables" in instar("stream", "undrop", "clicks", "-s", lake).stdout
    assert len(_json("stream", "read", "clicks", "-s", lake)) == 4

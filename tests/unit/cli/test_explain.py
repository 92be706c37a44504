"""`instar explain`: what people and programs are told about a filter."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

import instar as library
from tests.unit.cli.command import instar


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Make a store with a table of four parts."""
    location = tmp_path_factory.mktemp("explain") / "lake"
    with library.open(location) as opened:
        table = opened.create_table("t", "a bigint, b string, n struct<x: double>")
        for part in range(4):
            data = {"a": [part * 10, part * 10 + 9], "b": [f"k{part}", None], "n": [{"x": part / 2}, None]}
            table.append(pa.table(data))
    return str(location)


def ask(store: str, *arguments: str) -> dict[str, object]:
    """Run the command with --json and return its answer."""
    done = instar("explain", "t", *arguments, "--json", "--store", store)
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_a_program_is_told_everything(store: str) -> None:
    """Counts, bytes, conditions and, if asked, every part with its bounds."""
    answer = ask(store, "a between 12 and 15 and b like 'k%'")
    assert (answer["table"], answer["total"], answer["read"], answer["skipped"]) == ("t", 4, 1, 3)
    assert answer["parts"] == []
    assert {"(a >= 12)", "(a <= 15)"} <= {own["text"] for own in answer["conjuncts"]}  # type: ignore[attr-defined]
    parts = ask(store, "a = 12", "--parts")["parts"]
    assert [part["read"] for part in parts] == [False, True, False, False]  # type: ignore[attr-defined]
    assert "a is between 20 and 29" in parts[2]["why"]  # type: ignore[index]


def test_a_person_is_told_what_matters(store: str) -> None:
    """How much is read, and what each condition does."""
    done = instar("explain", "t", "n.x > 1 and a > 15", "--parts", "--store", store)
    assert done.returncode == 0
    assert "Reads 1 of 4 parts of t" in done.stdout
    assert re.search(r"\(a > 15\) +1 part$", done.stdout, re.MULTILINE)
    assert "excludes alone" in done.stdout


def test_a_table_that_skips_nothing_says_so(tmp_path: Path) -> None:
    """Everything is read then, whatever a condition would need."""
    lake = str(tmp_path / "lake")
    with library.open(lake) as opened:
        table = opened.create_table("t", "n bigint", options={"skipping": "off"})
        table.append(pa.table({"n": [1, 2]}))
    told = instar("explain", "t", "n > 7", "--store", lake).stdout
    assert "Reads 1 of 1 part of t" in told
    assert "(skipping is off)" in told


def test_no_data_file_is_opened(store: str) -> None:
    """The answer is the same when there are no data files."""
    before = ask(store, "a = 35")
    parts = list(Path(store).glob("tables/*/parts/*"))
    hidden = [part.rename(part.with_suffix(".hidden")) for part in parts]
    try:
        assert ask(store, "a = 35") == before
    finally:
        for part in hidden:
            part.rename(part.with_suffix(".parquet"))


def test_a_time_after_the_last_change_is_the_present(store: str) -> None:
    """Nobody has to know when a table was last written to; what is before its first time is refused."""
    for time in ("9999-12-31", "99999999999999999999"):
        assert ask(store, "a = 12", "--as-of", time)["total"] == 4
    assert ask(store, "a = 12", "--as-of", "0")["total"] == 0
    assert instar("explain", "t", "a = 12", "--as-of", "1969-01-01", "--store", store).returncode == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("t", "a = "), 2, "a ="),
        (("t", "missing = 3"), 3, "missing"),
        (("nowhere", "a = 3"), 3, "nowhere"),
        (("t", "a = 3", "--as-of", "yesterday"), 2, "not a time"),
        (("t", "a = 3", "--as-of", "0001-01-01"), 2, "not a time"),
        (("t", "a = 3", "--as-of", "9" * 5000), 2, "not a time"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    store: str, arguments: tuple[str, ...], code: int, message: str
) -> None:
    """Text that is no condition, a column or a table that is not there."""
    done = instar("explain", *arguments, "--store", store)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_columns_without_bounds_are_told_with_what_to_do(tmp_path: Path) -> None:
    """A condition on the last column of a very wide table reads everything, and why is said."""
    with library.open(tmp_path) as opened:
        table = opened.create_table("t", ", ".join(f"c{at} bigint" for at in range(1000)))
        table.append(pa.table({f"c{at}": [at] for at in range(1000)}))
    told = instar("explain", "t", "c999 > 5000 and c0 >= 0", "--store", str(tmp_path)).stdout
    assert "Some parts have no bounds of c999, and are always read." in told
    assert "table.configure(stats=['c999'])" in told
    assert "no bounds" not in instar("explain", "t", "c0 >= 0", "--store", str(tmp_path)).stdout
    assert ask(str(tmp_path), "c999 > 5000")["unbounded"] == ["c999"]

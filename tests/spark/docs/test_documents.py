"""What the documents show is what happens."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

EXAMPLES = {
    "streams_of_changes.py": [
        "first [{'id': 1",
        "then [{'id': 1",
        "fenced: column `price` (field 3) was dropped by schema 2",
    ],
    "exactly_once_import.py": [
        "monday.csv: 2 rows",
        "tuesday.csv: 1 rows under schema 1",
        "3 rows; user string",
    ],
    "spark_report.py": ["None 499500", "DE 250000000000000", "IT 249500000000000"],
}


def test_the_tutorial_comes_true(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its blocks run one after the other, and print what stands after `# >`."""
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / "docs/tutorial.md").read_text(encoding="utf-8"))
    expected = [line[4:] for block in blocks for line in block.splitlines() if line.startswith("# > ")]
    printed = io.StringIO()
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(printed):
        for number, block in enumerate(blocks):
            exec(compile(block, f"tutorial block {number}", "exec"), names)
    assert printed.getvalue().splitlines() == expected


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_examples_run(name: str, spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Each script runs to its end and prints what it promises."""
    runpy.run_path(os.fspath(ROOT / "examples" / name), run_name="__main__")
    printed = capsys.readouterr().out
    for text in EXAMPLES[name]:
        assert text in printed


def test_every_example_is_tested() -> None:
    """A script in examples/ without an expectation here would rot."""
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(EXAMPLES)

"""What the documents show is what happens."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.command import instar

if TYPE_CHECKING:
    from collections.abc import Iterator

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


CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HOME = "/home/ada"
"""Where README's user is."""
CHANGING = {
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{3})?": "<time>",
    r"(?<=<time>   )\S+ +(?=\S)": "<who> ",
    r"\b[0-9a-f]{8}$": "<commit>",
    r"─+": "─",
    r"[0-9.]+ KiB": "<size>",
    r" +(?=(by|what|schema|commit)\b)": " ",
}
"""What differs from call to call: times, who it was, ids, sizes, and how wide a table is because of these."""


def console_steps(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the commands of console blocks, each with what stands below it."""
    for block in CONSOLE.findall(text):
        for step in block.split("$ ")[1:]:
            command, *answer = step.rstrip("\n").splitlines()
            yield command, answer


def settled(lines: list[str]) -> list[str]:
    """Return an answer without what differs from call to call, and empty lines around it."""
    kept = []
    for line in map(str.rstrip, lines):
        for pattern, word in CHANGING.items():
            line = re.sub(pattern, word, line)  # noqa: PLW2901 -- one after the other
        kept.append(line)
    return "\n".join(kept).strip("\n").splitlines()


def test_the_console_of_readme_comes_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands, one after the other, print what stands below them."""
    monkeypatch.chdir(tmp_path)
    shown = 0
    for command, answer in console_steps((ROOT / "README.md").read_text(encoding="utf-8")):
        match shlex.split(command):
            case ["export", setting]:
                monkeypatch.setenv(*setting.split("=", 1))
            case ["printf", text, ">", name]:
                Path(name).write_text(text.replace("\\n", "\n"), encoding="utf-8")
            case ["instar", *arguments]:
                done = instar(*arguments)
                printed = (done.stdout + done.stderr).replace(str(tmp_path), HOME)
                assert settled(printed.splitlines()) == settled(answer), command
                shown += 1
    assert shown >= 5


def test_readme_with_spark_comes_true(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its second block prints what stands below it."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```python\n(.*?)^```$\n\n^```$\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    block, answer = shown[1]
    exec(compile(block, "README", "exec"), {})
    assert capfd.readouterr().out == answer


CHAPTERS = (
    "1. Write events with Spark",
    "2. Change the schema: one metadata write each, no file is touched",
    "3. Read old and new as one",
    "4. Open only the files that a query needs",
    "5. A reader is never lied to, and no writer loses values in silence",
    "6. Listen to what changes",
    "7. Delete, and still read the past",
    "8. What happened",
    "9. A thousand small appends, a compaction, and the same query before and after",
    "10. Ten days of a stream, three versions, and the evolver",
)
TOLD = (
    "Appended 100,000 rows under schema 0",
    "IncompatibleSchemaError: ",
    "finds 1 row in 1 of",
    "ReaderFencedError: ",
    "WriterFencedError: ",
    "Retracted 50,001 rows: 50,002 are left, and as of the time before there are 100,003.",
    "evolved to schema 3",
    "Compaction wrote 1,000 parts as 1, without Spark.",
)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_the_demo_tells_its_story(tmp_path: Path) -> None:
    """`instar demo` in a process of its own tells all chapters, ends well and leaves nothing behind."""
    command = [str(Path(sys.executable).with_name("instar")), "demo"]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=550)
    assert done.returncode == 0, done.stderr
    found = [done.stdout.find(f"\n{chapter}\n") for chapter in CHAPTERS]
    assert -1 not in found
    assert found == sorted(found)
    assert [text for text in TOLD if text not in done.stdout] == []
    assert list(tmp_path.iterdir()) == []

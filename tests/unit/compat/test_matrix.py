"""Every known kind of change to a message gets the right answer, and Buf and protobuf itself agree."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from instar.compat import Judgement, Level, judge
from tests.meta.modules import ROOT
from tests.protos import Files, buf_breaking, compile_files, version_of
from tests.unit.compat.matrix import MATRIX, Row, proto_text

NUMBERS = range(len(MATRIX))
NAMES = [row.name for row in MATRIX]


class Compiled(NamedTuple):
    """The files of both versions of every row, and what Buf says of each."""

    old: Files
    new: Files
    wire: dict[str, set[str]]
    json: dict[str, set[str]]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """Compile all rows at once, and ask Buf about all of them at once."""
    folder = tmp_path_factory.mktemp("matrix")
    old = compile_files(
        folder / "old", {f"r{at}.proto": proto_text(row, row.old, f"r{at}") for at, row in enumerate(MATRIX)}
    )
    new = compile_files(
        folder / "new", {f"r{at}.proto": proto_text(row, row.new, f"r{at}") for at, row in enumerate(MATRIX)}
    )
    wire = buf_breaking(folder, old, new, "WIRE")
    return Compiled(old, new, wire, buf_breaking(folder, old, new, "WIRE_JSON"))


def judged(compiled: Compiled, at: int) -> Judgement:
    """Judge one row."""
    return judge(version_of(compiled.old, f"r{at}.proto"), version_of(compiled.new, f"r{at}.proto"))


@pytest.mark.parametrize("at", NUMBERS, ids=NAMES)
def test_every_kind_of_change_is_answered(compiled: Compiled, at: int) -> None:
    """Wire, query and meaning are three answers, and whatever is not safe has a reason."""
    row: Row = MATRIX[at]
    judgement = judged(compiled, at)
    assert judgement.wire is not None
    found = (judgement.wire.value, judgement.query.value, judgement.semantic.value)
    assert found == (row.wire, row.query, row.semantic), judgement.differences
    rulings = [it for each in judgement.differences for it in (each.wire, each.query, each.semantic)]
    assert all(ruling.reason for ruling in rulings if ruling is not None)


@pytest.mark.parametrize("at", NUMBERS, ids=NAMES)
def test_buf_says_what_the_matrix_says(compiled: Compiled, at: int) -> None:
    """The matrix tells the truth about Buf, whose real binary is asked."""
    row = MATRIX[at]
    name = f"r{at}.proto"
    assert (not compiled.wire[name], not compiled.json[name]) == (row.buf_wire, row.buf_json), (
        compiled.wire[name],
        compiled.json[name],
    )


@pytest.mark.parametrize("at", NUMBERS, ids=NAMES)
def test_a_version_is_compatible_with_itself(compiled: Compiled, at: int) -> None:
    """Nothing differs between a version and itself."""
    version = version_of(compiled.old, f"r{at}.proto")
    judgement = judge(version, version)
    assert judgement.differences == ()
    assert (judgement.wire, judgement.query, judgement.semantic) == (Level.SAFE, Level.SAFE, Level.SAFE)


def table_row(compiled: Compiled, at: int) -> str:
    """Return the row of docs/compatibility.md for one kind of change."""
    row = MATRIX[at]
    found = judged(compiled, at).differences
    rulings = [it for each in found for it in (each.wire, each.query, each.semantic) if it is not None]
    bad = [it.reason for it in rulings if it.level is not Level.SAFE]
    why = "; ".join(dict.fromkeys(bad or [it.reason for it in rulings][:1]))
    buf = "accepts" if row.buf_wire else "refuses"
    return (
        f"| {row.name} | {row.wire} | {row.query} | {row.semantic} | {buf} | {why.replace(f'r{at}.', '')} |"
    )


def test_the_documentation_shows_every_kind_of_change(compiled: Compiled) -> None:
    """docs/compatibility.md has this very table."""
    text = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
    missing = [row for at in NUMBERS if (row := table_row(compiled, at)) not in text]
    assert missing == [], "\n" + "\n".join(missing)

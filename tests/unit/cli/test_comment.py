"""`instar comment`, and where comments are shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.unit.cli.command import instar

if TYPE_CHECKING:
    from pathlib import Path


def test_comments_are_said_shown_and_taken_back(tmp_path: Path) -> None:
    """Of the table and of columns; `describe` shows them too."""
    where = ("--store", str(tmp_path / "lake"))
    instar("init", str(tmp_path / "lake"))
    instar("create", "t", "id int, s struct<a: int>", *where)
    assert "There are no comments" in instar("comment", "t", *where).stdout
    assert instar("comment", "t", "rows", *where).stdout == "Commented t\n"
    assert instar("comment", "t", "deep", "--column", "s.a", *where).stdout == "Commented s.a of t\n"
    shown = instar("comment", "t", *where).stdout
    assert [line.split() for line in shown.splitlines() if line.strip()][-2:] == [
        ["t", "rows"],
        ["s.a", "deep"],
    ]
    told = json.loads(instar("describe", "t", *where, "--json").stdout)
    assert (told["comment"], told["comments"]) == ("rows", {"s.a": "deep"})
    assert "rows; s.a: deep" in instar("describe", "t", *where).stdout
    instar("comment", "t", "", "--column", "s.a", *where)
    answer = json.loads(instar("comment", "t", *where, "--json").stdout)
    assert answer == {"table": "t", "comment": "rows", "columns": {}}
    wrong = instar("comment", "t", "x", "--column", "nosuch", *where)
    assert (wrong.returncode, "nosuch" in wrong.stderr) == (3, True)

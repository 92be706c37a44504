"""`instar schema check` judges a change and tells people and programs the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.unit.cli.command import instar, instar_process

if TYPE_CHECKING:
    from pathlib import Path


def test_a_permitted_change_exits_with_0_and_says_who_is_fenced() -> None:
    """Widening is allowed, and fences those who read the column."""
    done = instar("schema", "check", "user string, n int", "user string, n bigint, c string")
    assert done.returncode == 0
    assert "widened: int → bigint" in done.stdout
    assert "column `n` (field 2) is widened from int to bigint since schema 1" in done.stdout


def test_a_forbidden_change_exits_with_1() -> None:
    """Narrowing is not allowed; the command is not an error, its answer is no."""
    done = instar("schema", "check", "user string, n bigint", "user string, n int")
    assert (done.returncode, done.stderr) == (1, "")
    assert "Not compatible: 1 of 1 changes break the rules." in done.stdout


def test_nothing_is_said_of_readers_where_the_whole_is_refused() -> None:
    """A change that would fence them, next to one that is forbidden, is not said to let them go on."""
    schemas = ("a int, n bigint", "a bigint, n int")
    done = instar("schema", "check", *schemas)
    assert done.returncode == 1
    assert "go on" not in done.stdout
    answer = json.loads(instar("schema", "check", *schemas, "--json").stdout)
    assert [(change["permitted"], change["fences_readers"]) for change in answer["changes"]] == [
        (True, None),
        (False, None),
    ]


def test_json_says_the_same(tmp_path: Path) -> None:
    """With --json there is one JSON value, also for schemas in files."""
    (tmp_path / "old.sql").write_text("user string not null,\n  n int")
    (tmp_path / "new.json").write_text(
        '{"type": "struct", "fields": [{"name": "user", "type": "string", "nullable": true, "metadata": {}}]}'
    )
    done = instar("schema", "check", str(tmp_path / "old.sql"), str(tmp_path / "new.json"), "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 0
    assert answer["compatible"] is True
    assert [(change["path"], change["kind"]) for change in answer["changes"]] == [
        ("n", "deleted"),
        ("user", "made nullable"),
    ]
    assert all(change["fences_readers"] for change in answer["changes"])


def test_what_names_cannot_decide_is_asked_back() -> None:
    """A possible rename is a usage error that shows the two ways out, and each of them works."""
    old, new = "user string, n int", "user_id string, n int"
    asked = instar("schema", "check", old, new)
    assert asked.returncode == 2
    assert "--rename user=user_id, or --drop user" in asked.stderr
    assert "renamed: user → user_id" in instar("schema", "check", old, new, "--rename", "user=user_id").stdout
    assert "deleted: user string" in instar("schema", "check", old, new, "--drop", "user").stdout


def test_bad_input_is_one_sentence_without_a_traceback() -> None:
    """Each wrong call exits with 2 and says what to do, in JSON too."""
    wrong = [
        ("schema", "check", "nosuchfile", "a int"),
        ("schema", "check", "a int", "a imt"),
        ("schema", "check", "a int", "a int", "--rename", "b=c"),
        ("schema", "check", "a int"),
        ("schema", "chekc"),
        ("--no-such-option",),
    ]
    for arguments in wrong:
        done = instar(*arguments)
        assert done.returncode in {2, 3}, arguments
        assert done.stderr.startswith("error: ")
        assert "Traceback" not in done.stderr
    assert "Traceback" not in instar_process("schema", "check", "a int", "a imt").stderr
    answer = json.loads(instar("schema", "check", "a int", "a imt", "--json").stdout)
    assert answer["error"]["code"] == "invalid-schema"


def test_help_and_version() -> None:
    """`--version` prints the version, and help has examples."""
    assert instar_process("--version").stdout.startswith("instar 0.")
    assert "instar schema evolve" in instar("--help").stdout

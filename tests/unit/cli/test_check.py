"""`instar check` judges versions of a schema for people and for CI."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.command import instar

if TYPE_CHECKING:
    from pathlib import Path

EVENT = 'syntax = "proto3";\npackage shop;\nimport "money.proto";\nmessage Order {\n  %s\n}\n'
MONEY = 'syntax = "proto3";\npackage shop;\nmessage Money { int64 units = 1; }\n'


@pytest.fixture
def protos(tmp_path: Path) -> Path:
    """Return two folders with versions of a message that imports another, the new one with a rename."""
    for name, body in {"old": "Money price = 1;", "new": "Money cost = 1;\n  string note = 2;"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "order.proto").write_text(EVENT % body)
        (tmp_path / name / "money.proto").write_text(MONEY)
    return tmp_path


def test_a_rename_keeps_the_wire_and_breaks_queries(protos: Path) -> None:
    """The command exits with 1 and says what is wrong with it, on which axis."""
    done = instar("check", str(protos / "old/order.proto"), str(protos / "new/order.proto"))
    assert (done.returncode, done.stderr) == (1, "")
    assert "renamed: price → cost" in done.stdout
    assert "Not compatible: 2 changes; wire safe, query unsafe, meaning unsafe." in done.stdout


def test_json_says_the_same(protos: Path) -> None:
    """With --json there is one value, with every ruling and the version of the rules."""
    done = instar("check", str(protos / "old/order.proto"), str(protos / "new/order.proto"), "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 1
    assert answer["compatible"] is False
    [checked] = answer["checks"]
    assert (checked["wire"], checked["query"], checked["semantic"]) == ("safe", "unsafe", "unsafe")
    assert [it["path"] for it in checked["differences"]] == ["shop.Order.cost", "shop.Order.note"]
    assert checked["differences"][0]["query"]["reason"].startswith("columns are found by name")
    assert checked["rules"] >= 1


def test_annotations_point_at_lines(protos: Path) -> None:
    """A difference that is not safe becomes an error beside the line of the field."""
    new = protos / "new/order.proto"
    done = instar("check", str(protos / "old/order.proto"), str(new), "--github")
    [command] = [line for line in done.stdout.splitlines() if line.startswith("::")]
    assert command.startswith(
        f"::error file={new},line=5,title=query%2C meaning unsafe::shop.Order.cost: renamed"
    )


def test_annotations_point_at_the_file_of_the_change(protos: Path) -> None:
    """A change in a file that others import is told once, beside its own line; text has no line at all."""
    folder = protos / "old"
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
    (folder / "money.proto").write_text(MONEY.replace("int64", "string"))
    files = [str(folder / name) for name in ("order.proto", "money.proto")]
    for include in ((), ("-I", str(folder))):
        done = instar("check", "--github", "--since", "HEAD", *include, *files)
        [command] = [line for line in done.stdout.splitlines() if line.startswith("::")]
        assert command.startswith(f"::error file={folder / 'money.proto'},line=3,title=wire%2C query unsafe")
    done = instar("check", "--github", "n int", "n string")
    assert "\n::error title=query unsafe::n: type changed" in done.stdout


def test_columns_are_judged_too() -> None:
    """DDL has no wire; what names cannot tell is a warning, which --strict makes count."""
    old, new = "user string, n int", "user_id string, n bigint"
    done = instar("check", old, new)
    assert done.returncode == 0
    assert "wire not judged, query safe, meaning conditional" in done.stdout
    assert instar("check", old, new, "--strict").returncode == 1
    assert instar("check", "n bigint", "n int").returncode == 1


def test_since_compares_with_a_revision(protos: Path) -> None:
    """With --since, a file is compared with itself at a revision, imports included; a new file is fine."""
    folder = protos / "old"
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
    order = folder / "order.proto"
    assert "nothing changes" in instar("check", "--since", "HEAD", str(order)).stdout
    order.write_text(EVENT % "Money price = 1;\n  int32 count = 2;")
    (folder / "money.proto").write_text(MONEY.replace("int64", "string"))
    done = instar("check", "--since", "HEAD", str(order), "-I", str(folder))
    assert done.returncode == 1
    assert "type changed: int64 → string" in done.stdout
    (folder / "other.proto").write_text('syntax = "proto3";\nmessage Other { int32 a = 1; }\n')
    done = instar("check", "--since", "HEAD", str(folder / "other.proto"))
    assert (done.returncode, done.stdout) == (0, "Nothing to compare: the files are new.\n")
    done = instar("check", "--since", "nowhere", str(order))
    assert done.returncode == 2
    assert "git does not know the revision 'nowhere'" in done.stderr


def test_bad_input_is_told_in_one_error(protos: Path) -> None:
    """Whatever is wrong with a file ends in one error that names it."""
    good = str(protos / "old/order.proto")
    (protos / "broken.proto").write_text('syntax = "proto3";\nmessage Broken { int32 }\n')
    (protos / "lonely.proto").write_text(EVENT % "Money price = 1;")
    (protos / "empty.proto").write_text('syntax = "proto3";\n')
    (protos / "broken.avsc").write_text(
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "x"}]}'
    )
    (protos / "broken.json").write_text('{"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}')
    (protos / "broken.binpb").write_bytes(b"\xff\xff\xff")
    wrong = {
        "nosuch.proto": "there is no such file",
        "broken.proto": "cannot be compiled",
        "lonely.proto": "money.proto",
        "empty.proto": "does not define a message",
        "broken.avsc": "it does not define `x`",
        "broken.json": "leads nowhere",
        "broken.binpb": "not a set of protobuf descriptors",
    }
    for name, why in wrong.items():
        done = instar("check", good, str(protos / name))
        assert done.returncode == 2, name
        assert done.stderr.startswith("error: ")
        assert why in done.stderr
    assert instar("check", good).returncode == 2
    assert instar("check", good, good, "--message", "Nothing").returncode == 2
    assert instar("check", good, good, "--format", "xml").returncode == 2
    both = instar("check", good, "--since", "HEAD", "--against", "lake/events")
    assert (both.returncode, "exclude each other" in both.stderr) == (2, True)


def git(folder: Path, *arguments: str) -> None:
    """Run git in a folder."""
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)

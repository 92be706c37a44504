"""The GitHub action and the pre-commit hook run commands that exist, and end as the check does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.meta.modules import ROOT

OLD = 'syntax = "proto3";\nmessage A { int32 a = 1; }\n'


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository of git with one committed file, which has changed since."""
    (tmp_path / "protos").mkdir()
    file = tmp_path / "protos" / "a.proto"
    file.write_text(OLD)
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    file.write_text(OLD.replace("int32 a", "string a"))
    return tmp_path


def run(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a runner does, with our own commands on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, **variables}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_action_checks_and_annotates(repository: Path) -> None:
    """The script of the action fails for a breaking change, with an annotation, and passes without one."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    step = action["runs"]["steps"][-1]
    names = {name: re.fullmatch(r"\$\{\{ inputs\.(\w+) \}\}", text)[1] for name, text in step["env"].items()}  # type: ignore[index]
    assert set(names.values()) == set(action["inputs"])
    given = {
        "FILES": "protos/a.proto",
        "SINCE": "HEAD",
        "INCLUDE": "protos",
        "MESSAGE": "A",
        "STRICT": "true",
    }
    failed = run(step["run"], repository, **given)
    assert failed.returncode == 1, failed.stderr
    assert "::error file=protos/a.proto,line=2" in failed.stdout
    (repository / "protos" / "a.proto").write_text(OLD.replace("1; }", "1; int32 b = 2; }"))
    assert run(step["run"], repository, **given).returncode == 0


def test_the_hook_checks_what_is_about_to_be_committed(repository: Path) -> None:
    """The entry of the hook, with file names behind it, fails for a breaking change."""
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert re.search(hook["files"], "protos/a.proto")
    failed = run(f"{hook['entry']} protos/a.proto", repository)
    assert failed.returncode == 1, failed.stderr
    assert "type changed: int32 → string" in failed.stdout

"""The repo speaks only of itself: nothing in it depends on the machine it was written on."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tests.meta.modules import ROOT

FOREIGN = re.compile(r"(?<!\w)/(work|root|opt)/|(pypi|pythonhosted|debian|npmjs)[.]org")


def test_no_file_names_a_machine_or_a_registry() -> None:
    """Paths and hosts of one machine do not work on another."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("only git knows which files are tracked")
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    offences = [
        f"{path}: {line.strip()}"
        for path in tracked.stdout.splitlines()
        if (ROOT / path).is_file()
        for line in (ROOT / path).read_text(encoding="utf-8", errors="ignore").splitlines()
        if FOREIGN.search(line)
    ]
    assert offences == []


@pytest.mark.parametrize(
    "lock", ["requirements.lock", "requirements-bench.lock", "requirements-ducklake.lock"]
)
def test_locks_name_no_index(lock: str) -> None:
    """A lock has versions and hashes; where packages come from is the business of who installs."""
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert not re.search(r"://|^-", text, re.MULTILINE)
    pins = re.findall(r"^[\w.\[\]-]+==", text, re.MULTILINE)
    hashed = re.findall(r"^[\w.\[\]-]+==.*\\\n +--hash=sha256:", text, re.MULTILINE)
    assert 0 < len(pins) == len(hashed)

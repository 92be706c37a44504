"""What is installed is what is here: the wheel holds all that it takes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel as `uv build` does, and unpack it where Python finds it first."""
    place = tmp_path_factory.mktemp("wheel")
    build = f"import hatchling.build; print(hatchling.build.build_wheel({str(place)!r}))"
    subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=True, capture_output=True)
    [wheel] = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place / "site")
    return place / "site"


def run(installed: Path, here: Path, *arguments: str) -> str:
    """Run Python with what was installed, far from the repository."""
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=here, env=environment, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_lines_of_readme_run_with_the_wheel(installed: Path, tmp_path: Path) -> None:
    """Outside of the repository; and all files that are not Python came along."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[0]
    printed = run(installed, tmp_path, "-c", f"{lines}\nprint(instar.__file__, events.count())")
    assert f"{installed}/instar/__init__.py 2" in printed
    assert "user_id" in printed
    ours = {path.relative_to(ROOT / "src") for path in (ROOT / "src/instar").rglob("*.*") if path.is_file()}
    missing = [path for path in ours if path.suffix != ".pyc" and not (installed / path).exists()]
    assert missing == []
    assert "events" in run(installed, tmp_path, "-m", "instar", "tables", "--store", "lake")

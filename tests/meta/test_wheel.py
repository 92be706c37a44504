"""The wheel works in an environment that has what it declares and no more, as README says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def build_wheel(place: Path) -> Path:
    """Build the wheel as `uv build` does."""
    build = f"import hatchling.build; print(hatchling.build.build_wheel({str(place)!r}))"
    subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=True, capture_output=True)
    [wheel] = place.glob("*.whl")
    return wheel


def declared(metadata: str) -> set[str]:
    """Return the packages that a package requires without extras, and what these require."""
    found: set[str] = set()
    ahead = [Requirement(it) for it in re.findall(r"^Requires-Dist: (.+)$", metadata, re.MULTILINE)]
    while ahead:
        needed = ahead.pop()
        extras = needed.extras or {""}
        if needed.marker is not None and not any(
            needed.marker.evaluate({"extra": it}) for it in {"", *extras}
        ):
            continue
        key = f"{needed.name}[{','.join(sorted(needed.extras))}]"
        if key in found:
            continue
        found.add(key)
        for text in distribution(needed.name).requires or ():
            inner = Requirement(text)
            if inner.marker is None or any(inner.marker.evaluate({"extra": it}) for it in {"", *extras}):
                inner.marker = None
                ahead.append(inner)
    return {key.partition("[")[0] for key in found}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment of the wheel and of what it declares, linked from this one; return its Python."""
    place = tmp_path_factory.mktemp("wheel")
    venv.create(place / "venv", with_pip=False, symlinks=True)
    [site] = (place / "venv" / "lib").glob("*/site-packages")
    with zipfile.ZipFile(build_wheel(place)) as archive:
        archive.extractall(site)
        [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        needed = declared(archive.read(metadata).decode())
    for name in needed:
        for file in distribution(name).files or ():
            top = site / file.parts[0]
            if file.parts[0] != ".." and not top.exists():
                top.symlink_to(str(distribution(name).locate_file(file.parts[0])))
    return place / "venv" / "bin" / "python"


def run(python: Path, here: Path, *arguments: str, fails: bool = False) -> str:
    """Run Python with what was installed, far from the repository, and return what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [python, *arguments], cwd=here, env=environment, check=False, capture_output=True, text=True
    )
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout


def test_the_lines_of_readme_run_with_the_wheel_alone(python: Path, tmp_path: Path) -> None:
    """They print what stands below them, and the commands work, without anything that is not declared."""
    shown = re.findall(r"^```python\n(.*?)^```$\n\n^```$\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    lines, answer = shown[0]
    assert run(python, tmp_path, "-c", lines) == answer
    (tmp_path / "a.csv").write_text("id,name\n1,ada\n", encoding="utf-8")
    imported = run(python, tmp_path, "-m", "instar", "import", "a.csv", "-t", "a", "--create", "-s", "lake")
    assert imported.startswith("Imported 1 row into a")
    assert "ada" in run(python, tmp_path, "-m", "instar", "head", "a", "-s", "lake")
    assert "events" in run(python, tmp_path, "-m", "instar", "tables", "-s", "lake")


def test_what_needs_more_says_what(python: Path, tmp_path: Path) -> None:
    """Frames of libraries that are not there, and commands of extras, are answered with what to install."""
    for command, extra in (("query", "spark"), ("serve", "lineage")):
        rest = ("select 1",) if command == "query" else ()
        (tmp_path / "lake").mkdir(exist_ok=True)
        run(python, tmp_path, "-m", "instar", "init", "lake")
        where = ("-s", "lake") if command == "query" else ()
        said = run(python, tmp_path, "-m", "instar", command, *rest, *where, fails=True)
        assert f"pip install 'instar[{extra}]'" in said
    lines = (
        "import instar",
        "table = instar.open('memory://a').create_table('t', 'a int')",
        "for name in ('to_pandas', 'to_polars', 'to_duckdb', 'scan'):",
        "    try: getattr(table, name)()",
        "    except instar.errors.MissingExtraError as error: print(error)",
    )
    needs = "this needs {0}, which is not installed. Install it: pip install {0}"
    expected = [needs.format(name) for name in ("pandas", "polars", "duckdb", "polars")]
    assert run(python, tmp_path, "-c", "\n".join(lines)).splitlines() == expected


def test_all_files_come_along(python: Path) -> None:
    """Those that are not Python, too."""
    [site] = (python.parents[1] / "lib").glob("*/site-packages")
    ours = {path.relative_to(ROOT / "src") for path in (ROOT / "src/instar").rglob("*.*") if path.is_file()}
    assert [path for path in ours if path.suffix != ".pyc" and not (site / path).exists()] == []

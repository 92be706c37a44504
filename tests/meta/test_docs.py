"""Documentation is tested: what it names exists, and what exists is named."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

import instar
from instar.schema.primitives import PRIMITIVE_ROWS
from tests.meta.modules import ROOT
from tools.generate_docs import PAGES, commands, error_classes

if TYPE_CHECKING:
    from pathlib import Path


def dev_commands() -> set[str]:
    """Return the commands that `./dev help` lists."""
    text = subprocess.run(["./dev", "help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"^  (\w+)", text, re.MULTILINE))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_generated_pages_are_up_to_date(path: Path) -> None:
    """A generated page is what the code says; `./dev fix` writes it anew."""
    assert path.read_text(encoding="utf-8") == PAGES[path]()


def test_every_error_code_is_documented() -> None:
    """docs/errors.md has a row for each code."""
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert [kind.code for kind in error_classes() if f"| `{kind.code}` |" not in text] == []


def test_every_command_is_documented_and_says_what_it_does() -> None:
    """docs/cli.md has a heading for each command, and each has a help text."""
    headings = re.findall(r"^## (.+)$", (ROOT / "docs" / "cli.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == [name for name, _ in commands()]
    assert [name for name, command in commands() if not command.help] == []


def test_every_public_name_is_documented() -> None:
    """docs/api.md has a heading for each name that `import instar` gives, and for what tables return."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    headings = {name.removeprefix("instar.") for name in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
    assert set(instar.__all__) - {"__version__"} <= headings
    assert {"CommitInfo", "VacuumReport", "SchemaUpdate", "Conjunct"} <= headings


PROSE = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """A link inside the project names a file that is there, and a heading that it has."""
    for target, heading in LINK.findall(page.read_text(encoding="utf-8")):
        found = page.parent / target if target else page
        assert found.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.+)$", found.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_is_on_the_map() -> None:
    """README links every page of docs/."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"docs/{page.name})" not in text] == []


def test_every_type_is_documented() -> None:
    """docs/types.md has a row for each type, with what it may become, and for what other systems have."""
    text = (ROOT / "docs" / "types.md").read_text(encoding="utf-8")
    for row in PRIMITIVE_ROWS.values():
        if row.name.startswith("interval "):
            continue
        line = next(line for line in text.splitlines() if line.startswith(f"| `{row.name}`"))
        assert [it for it in (*row.wider, *row.synonyms) if f"`{it}`" not in line] == []
    assert {"time", "uuid", "varchar", "variant"} <= set(re.findall(r"^\| `(\w+)", text, re.MULTILINE))


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_console_blocks_use_commands_that_exist(page: str) -> None:
    """Whoever copies a line from a console block finds the command."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert "./dev" in blocks
    assert set(re.findall(r"\./dev (\w+)", blocks)) <= dev_commands()
    known = {name for name, _ in commands()}
    used = re.findall(r"^\$ (?:\./dev run )?(instar [a-z]+)", blocks, re.MULTILINE)
    assert set(used) <= known

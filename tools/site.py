"""What the site of the documentation has beside docs/: pages made of files that have their places elsewhere.

mkdocs calls this as it builds. README becomes the first page; examples, stories and design notes, which are
folders in the repository, become a page each, and links to them are turned accordingly.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from collections.abc import Callable

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT: Final = Path(__file__).parent.parent


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    for name, make in PAGES.items():
        files.append(File.generated(config, name, content=make()))
    return files


def turn_links(text: str) -> str:
    """Let links of a file at the root lead to pages of the site."""

    def turn(found: re.Match[str]) -> str:
        path, hash_, heading = found[1].partition("#")
        return f"]({_PLACES.get(path, path.removeprefix('docs/'))}{hash_}{heading})"

    return re.sub(r"\]\((?!https?:)([^)\s]+)\)", turn, text)


def _file(name: str) -> Callable[[], str]:
    return lambda: turn_links((ROOT / name).read_text(encoding="utf-8"))


def _examples() -> str:
    lines = ["# Examples", "", "Scripts in `examples/`, which a test runs.", ""]
    for path in sorted((ROOT / "examples").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        title, _, prose = (ast.get_docstring(ast.parse(text)) or "").partition("\n")
        code = text.split('"""', 2)[2].strip()
        lines += [f"## {title.rstrip('.')}", "", prose.strip(), "", f"`examples/{path.name}`", ""]
        lines += ["```python", code, "```", ""]
    return "\n".join(lines)


def _stories() -> str:
    lines = ["# Rules of evolution, as stories", "", "Tests in `tests/scenarios/schema`, word for word.", ""]
    for path in sorted((ROOT / "tests" / "scenarios" / "schema").glob("*.txt")):
        title = path.stem.partition("-")[2].replace("-", " ")
        story = path.read_text(encoding="utf-8").strip()
        lines += [f"## {title.capitalize()}", "", "```text", story, "```", ""]
    return "\n".join(lines)


def _design() -> str:
    lines = ["# Design notes", "", "Why it is as it is.", ""]
    for path in sorted((ROOT / "docs" / "design").glob("0*.md")):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines) + "\n"


PAGES: Final[dict[str, Callable[[], str]]] = {
    "index.md": _file("README.md"),
    "architecture.md": _file("ARCHITECTURE.md"),
    "contributing.md": _file("CONTRIBUTING.md"),
    "changelog.md": _file("CHANGELOG.md"),
    "examples.md": _examples,
    "stories.md": _stories,
    "design/index.md": _design,
}
_PLACES: Final = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "examples": "examples.md",
    "tests/scenarios/schema": "stories.md",
    "docs/design": "design/index.md",
}

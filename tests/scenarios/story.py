"""Stories: text files of commands and what they answer, which read as documentation.

A line that starts with `> ` is a command; the lines below it, up to an empty line, are its answer.
Everything else is prose. `INSTAR_REWRITE=1 ./dev test tests/scenarios` writes the answers anew.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROMPT = "> "


def run_story(path: Path, answer: Callable[[str], str]) -> None:
    """Run every command of a story and compare the whole text, so that a failure shows as a diff."""
    told = path.read_text(encoding="utf-8")
    retold = retell(told, answer)
    if os.environ.get("INSTAR_REWRITE"):
        path.write_text(retold, encoding="utf-8")
    assert retold == told


def retell(text: str, answer: Callable[[str], str]) -> str:
    """Return the story with each command followed by its real answer."""
    lines: list[str] = []
    in_answer = False
    for line in text.splitlines():
        if line.startswith(PROMPT):
            lines.append(line)
            lines.extend(answer(line.removeprefix(PROMPT)).splitlines())
            in_answer = True
        elif not line:
            in_answer = False
            lines.append(line)
        elif not in_answer:
            lines.append(line)
    return "\n".join(lines) + "\n"

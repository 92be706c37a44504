"""Help as people read it: paragraphs as wide as the terminal, and no types beside switches.

The texts themselves are the docstrings of commands and the help of their options.
"""

from __future__ import annotations

import inspect
from typing import Any

__all__ = ["readable"]


def readable(command: Any) -> Any:  # noqa: ANN401 -- Typer keeps the classes of its command tree private
    """Change how a command and all below it show their help, and return it."""
    if command.help:
        command.help = _joined(command.help)
    for parameter in command.params:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        elif parameter.multiple and parameter.metavar is None:
            parameter.metavar = "TEXT"
    for child in getattr(command, "commands", {}).values():
        readable(child)
    return command


def _joined(text: str) -> str:
    """Undo the line breaks of paragraphs, but for examples, which are indented."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(it if it.startswith(" ") else " ".join(it.split()) for it in paragraphs)

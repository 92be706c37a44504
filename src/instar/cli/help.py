"""Help as people read it: paragraphs as wide as the terminal, examples line by line, and no types of Python.

The texts themselves are the docstrings of commands and the help of their options.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any, Final

__all__ = ["HELP_OPTIONS", "readable"]

HELP_OPTIONS: Final = ["-h", "--help"]


def readable(command: Any) -> Any:  # noqa: ANN401 -- Typer keeps the classes of its command tree private
    """Change how a command and all below it show their help, and return it."""
    if command.help:
        command.help = _joined(command.help)
    asking = command.get_help_option(command.context_class(command, help_option_names=HELP_OPTIONS))
    for parameter in (*command.params, asking):
        parameter.display_type_rich = partial(_shown_type, parameter)
    for child in getattr(command, "commands", {}).values():
        readable(child)
    return command


def _shown_type(parameter: Any, ctx: Any) -> str:  # noqa: ANN401, ARG001 -- of Typer's, as above
    """Return the word that stands for the value of an option."""
    if parameter.param_type_name == "argument" or parameter.is_flag:
        return ""
    if parameter.metavar is not None:
        return str(parameter.metavar)
    return "N" if parameter.type_descriptor.annotation in {int, float} else "TEXT"


def _joined(text: str) -> str:
    """Undo the line breaks of paragraphs; examples, which are indented, stand one below the other."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    lines = [_example(it) if it.startswith(" ") else " ".join(it.split()) for it in paragraphs]
    return "\n\n".join(lines).replace(":\n\n$ ", ":\n$ ").replace("\n\n$ ", "\n$ ")


def _example(text: str) -> str:
    # Typer takes away what is indented, so that a sign has to tell a command from a sentence.
    return "\n".join(f"$ {line.strip()}" for line in text.splitlines())

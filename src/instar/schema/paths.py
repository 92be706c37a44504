"""Dotted paths to columns, as people type them: `addr.city`, `tags.element`, `props.value`.

A step with a dot or other special characters is quoted in backticks, and a backtick in it doubled.
"""

from __future__ import annotations

import re
from typing import Final

from instar.errors import UsageError

__all__ = ["ELEMENT", "KEY", "VALUE", "format_path", "parse_path", "quote_name"]

ELEMENT: Final = "element"
KEY: Final = "key"
VALUE: Final = "value"

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEP = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def quote_name(name: str) -> str:
    """Quote a name where Spark SQL would need it."""
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def format_path(steps: tuple[str, ...]) -> str:
    """Join steps to a path that `parse_path` takes apart again."""
    return ".".join(quote_name(step) for step in steps)


def parse_path(path: str) -> tuple[str, ...]:
    """Split a dotted path into its steps."""
    steps = []
    position = 0
    while True:
        match = _STEP.match(path, position)
        if match is None:
            break
        quoted, plain = match.groups()
        steps.append(quoted.replace("``", "`") if quoted is not None else plain)
        position = match.end()
        if position == len(path):
            return tuple(steps)
        if path[position] != ".":
            break
        position += 1
    msg = (
        f"{path!r} is not a column path: expected names joined by dots, such as addr.city, tags.element or "
        "props.value, with backticks around a name that has a dot in it"
    )
    raise UsageError(msg)

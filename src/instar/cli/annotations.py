"""Judgements as GitHub's workflow commands, which put them beside the lines of a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from instar.compat import Judgement, Version

__all__ = ["annotate"]


def annotate(given: str, includes: Sequence[Path], version: Version, judgement: Judgement) -> Iterator[str]:
    """Yield a command for each difference that is not safe: an error for wire and query, else a warning.

    It points at the file that was given, or at the imported file that has the change.
    """
    lines: dict[str, tuple[str, int]] = getattr(version, "lines", {})
    for difference in judgement.differences:
        rulings = {"wire": difference.wire, "query": difference.query, "meaning": difference.semantic}
        bad = {name: it for name, it in rulings.items() if it is not None and it.level.value != "safe"}
        if not bad:
            continue
        command = "error" if bad.keys() & {"wire", "query"} else "warning"
        unsafe = any(it.level.value == "unsafe" for it in bad.values())
        title = f"{', '.join(bad)} {'unsafe' if unsafe else 'conditional'}"
        place = _place(given, includes or (Path(given).parent,), _find(difference.path, lines))
        properties = ",".join(
            f"{name}={_property(value)}" for name, value in (place | {"title": title}).items()
        )
        text = f"{difference.path}: {difference.what}. " + "; ".join(
            dict.fromkeys(it.reason for it in bad.values())
        )
        yield f"::{command} {properties}::{_data(text)}"


def _place(given: str, folders: Sequence[Path], found: tuple[str, int] | None) -> dict[str, str]:
    """Say where something is; a schema that was given as text has no file."""
    if found is not None:
        name, line = found
        file = next((path for folder in folders if (path := folder / name).is_file()), None)
        if file is not None:
            return {"file": str(file), "line": str(line)}
    return {"file": given} if Path(given).is_file() else {}


def _find(path: str, lines: dict[str, tuple[str, int]]) -> tuple[str, int] | None:
    """Return the file and the line of the nearest enclosing element that still exists."""
    while path:
        if path in lines:
            return lines[path]
        path = path.rpartition(".")[0]
    return None


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

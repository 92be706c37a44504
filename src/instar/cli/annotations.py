"""Judgements as GitHub's workflow commands, which put them beside the lines of a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.cli.output import console

if TYPE_CHECKING:
    from instar.compat import Judgement, Version

__all__ = ["annotate"]


def annotate(file: str, version: Version, judgement: Judgement) -> None:
    """Print a command for each difference that is not safe: an error for wire and query, else a warning."""
    lines: dict[str, tuple[str, int]] = getattr(version, "lines", {})
    for difference in judgement.differences:
        rulings = {"wire": difference.wire, "query": difference.query, "meaning": difference.semantic}
        bad = {name: it for name, it in rulings.items() if it is not None and it.level.value != "safe"}
        if not bad:
            continue
        command = "error" if bad.keys() & {"wire", "query"} else "warning"
        line = _line(difference.path, lines)
        place = f"file={_property(file)}" + (f",line={line}" if line is not None else "")
        unsafe = any(it.level.value == "unsafe" for it in bad.values())
        title = f"{', '.join(bad)} {'unsafe' if unsafe else 'conditional'}"
        text = f"{difference.path}: {difference.what}. " + "; ".join(
            dict.fromkeys(it.reason for it in bad.values())
        )
        console().print(f"::{command} {place},title={_property(title)}::{_data(text)}", soft_wrap=True)


def _line(path: str, lines: dict[str, tuple[str, int]]) -> int | None:
    """Return the line of the nearest thing around that is still there."""
    while path:
        if path in lines:
            return lines[path][1]
        path = path.rpartition(".")[0]
    return None


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

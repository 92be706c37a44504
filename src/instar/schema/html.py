"""Small tables of HTML, which notebooks show. Everything from outside is escaped.

Colours are those of the page around, light or dark; only lines and distances are ours.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["html_table"]

_CELL: Final = "padding:2px 14px 2px 0;white-space:pre"
_RIGHT: Final = "text-align:right"
_LEFT: Final = "text-align:left"
_LINE: Final = "border-bottom:1px solid rgba(128,128,128,.6)"
_NOTHING: Final = '<span style="opacity:.5">null</span>'


def html_table(
    header: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Iterable[int] = ()
) -> str:
    """Return a table of texts; columns at the positions `numbers` end at the right, and None is null."""
    right = set(numbers)
    styles = [f"{_RIGHT if at in right else _LEFT};{_CELL}" for at in range(len(header))]
    head = "".join(
        f'<th style="{style};{_LINE}">{escape(text)}</th>' for style, text in zip(styles, header, strict=True)
    )
    lines = ("".join(map(_cell, styles, row)) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        '<table style="border-collapse:collapse;margin:4px 0">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cell(style: str, cell: object) -> str:
    return f'<td style="{style}">{_NOTHING if cell is None else escape(str(cell))}</td>'

"""Write what is made from the code: docs/api.md, docs/errors.md, docs/cli.md, a table in docs/skipping.md.

With `--check`, write nothing and fail if a page differs from what the code says.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer.main

from instar import errors
from instar.cli.app import app
from instar.cli.help import readable
from instar.skipping.registry import BY_SQL, SUBJECTS
from instar.skipping.sql.calls import SHORTHANDS
from tools.api_reference import render_reference, table_row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.skipping.registry import Row

DOCS = Path(__file__).parent.parent / "docs"
BEGIN = "<!-- Made by `./dev fix` from the registry of functions. -->"
END = "<!-- End of what is made. -->"
NOTICE = "<!-- Made by `./dev fix` from the code; edit the docstrings there. -->"
TERMS = "The [glossary](glossary.md) explains terms such as part, fence, lease and upper."


def error_classes(root: type[errors.InstarError] = errors.InstarError) -> Iterator[type[errors.InstarError]]:
    """Yield a class and all below it, in the order in which they are drawn."""
    yield root
    drawn = {word: place for place, word in enumerate((errors.__doc__ or "").split())}
    for child in sorted(root.__subclasses__(), key=lambda kind: drawn.get(kind.__name__, len(drawn))):
        yield from error_classes(child)


def render_errors() -> str:
    """Return the text of docs/errors.md."""
    tree = inspect.getdoc(errors) or ""
    lines = ["# Errors", "", NOTICE, "", TERMS, "", _markdown(tree), ""]
    lines += ["| code | error | exit code | HTTP status | what happened |", "|---|---|---|---|---|"]
    for kind in error_classes():
        answer = errors.disposition(kind)
        meaning = " ".join((inspect.getdoc(kind) or "").split())
        row = (f"`{kind.code}`", f"`{kind.__name__}`", answer.exit_code, answer.http_status, meaning)
        lines.append(table_row(*row))
    return "\n".join(lines) + "\n"


def commands(command: Any = None, name: str = "instar") -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Yield the full name and the object of every command, parents before children.

    Typer keeps the classes of its command tree private, hence `Any`.
    """
    command = command or readable(typer.main.get_command(app))
    if command.hidden:
        return
    yield name, command
    for child_name, child in sorted(getattr(command, "commands", {}).items()):
        yield from commands(child, f"{name} {child_name}")


def render_cli() -> str:
    """Return the text of docs/cli.md."""
    lines = ["# Commands", "", NOTICE, "", TERMS, ""]
    for name, command in commands():
        context = command.context_class(command, info_name=name, **(app.info.context_settings or {}))
        usage = " ".join([name, *command.collect_usage_pieces(context)])
        lines += [f"## {name}", "", "```console", f"$ {usage}", "```", ""]
        lines += [_markdown(command.help or ""), ""]
        records = [param.get_help_record(context) for param in command.get_params(context)]
        if any(records):
            lines += ["| argument or option | meaning |", "|---|---|"]
            lines += [table_row(f"`{record[0]}`", record[1]) for record in records if record]
            lines += [""]
    return "\n".join(lines).rstrip() + "\n"


def _markdown(text: str) -> str:
    """Put examples between fences."""
    return re.sub(
        r"^\$ .*(\n\$ .*)*", lambda block: f"\n```console\n{block[0]}\n```", text, flags=re.MULTILINE
    )


def render_api() -> str:
    """Return the text of docs/api.md."""
    return render_reference(NOTICE)


def render_skipping() -> str:
    """Return the text of docs/skipping.md, with the list of functions from the registry."""
    page = (DOCS / "skipping.md").read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    lines = [f"| {subject} | {', '.join(_names(rows))} |" for subject, rows in SUBJECTS.items()]
    short = ", ".join(f"`{name}`" for name in sorted(set(SHORTHANDS) - set(BY_SQL)))
    table = "\n".join(["| | functions and operators |", "|---|---|", *lines, f"| shorthands | {short} |"])
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def _names(rows: tuple[Row, ...]) -> list[str]:
    """Return what functions are called in SQL: operators first."""
    operators = dict.fromkeys(row.infix for row in rows if row.infix)
    named = sorted(name for row in rows for name in row.sql)
    return [f"`{name}`" for name in (*operators, *named)]


PAGES = {
    DOCS / "skipping.md": render_skipping,
    DOCS / "api.md": render_api,
    DOCS / "errors.md": render_errors,
    DOCS / "cli.md": render_cli,
}


def main(*, check: bool) -> int:
    """Write or check every page; return the exit code."""
    stale = [
        (path, text)
        for path, text in ((path, render()) for path, render in PAGES.items())
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        if check:
            print(f"{path.name} differs from the code: run ./dev fix")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.name}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))

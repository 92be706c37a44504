"""`instar schema …`: look at schemas and judge changes to them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from instar.cli.output import JsonOption, console, print_json, print_table
from instar.cli.verdicts import Verdict, judge
from instar.errors import AmbiguousEvolutionError, InvalidSchemaError, UsageError
from instar.schema import Change, History, SchemaUpdate, as_schema, parse_path

__all__ = ["app"]

app = typer.Typer(name="schema", help="Look at schemas and judge changes to them.", no_args_is_help=True)

SchemaArgument = Annotated[str, typer.Argument(help="DDL text, or a file with DDL or a Spark schema's JSON.")]


@app.command()
def check(
    old: SchemaArgument,
    new: SchemaArgument,
    *,
    rename: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OLD=NEW", help="A column that was renamed, by its path: addr.zip=code. Repeatable."
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column that was dropped, not renamed. Repeatable."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say whether a table with schema OLD may evolve to NEW, and what it does to readers of OLD.

    Exits with 0 if the schemas are compatible and with 1 if they are not.

    Examples:

        instar schema check "user string, amount int" "user string, amount bigint"

        instar schema check old.sql new.sql --rename user=user_id --drop amount

    """
    history = History.start(as_schema(_read(old)))
    update = SchemaUpdate(history)
    for pair in rename or []:
        path, equals, name = pair.partition("=")
        if not equals:
            raise UsageError(f"--rename {pair}: expected OLD=NEW, such as user=user_id")
        update.rename_column(path, name)
    for path in drop or []:
        update.drop_column(path)
    try:
        verdict = judge(history, update.evolve_to(_read(new)).schema)
    except AmbiguousEvolutionError as error:
        before, after = error.candidates[0]
        hint = f"Here: --rename {before}={parse_path(after)[-1]}, or --drop {before}"
        raise UsageError(f"{error}\n{hint}") from None
    if as_json:
        print_json(verdict.to_json())
    else:
        _print(verdict)
    raise typer.Exit(0 if verdict.compatible else 1)


def _read(given: str) -> str:
    """Return the text of a schema: the argument itself, or the file that it names."""
    if " " in given.strip() and not Path(given).is_file():
        return given
    try:
        return Path(given).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InvalidSchemaError(
            f"cannot read a schema from {given!r}: {why}. Give a file, or DDL such as 'user string, n int'"
        ) from None


def _print(verdict: Verdict) -> None:
    if not verdict.changes:
        console().print("Nothing changes.")
        return
    rows = [
        (
            change.path or "(columns)",
            _what(change),
            Text("allowed", "green") if change.permitted else Text("not allowed", "bold red"),
            verdict.readers(change),
            change.reason,
        )
        for change in verdict.changes
    ]
    print_table(("column", "change", "verdict", "readers of the old schema", "why"), rows)
    console().print(verdict.summary())


def _what(change: Change) -> str:
    if change.old is not None and change.new is not None:
        return f"{change.kind.value}: {change.old} → {change.new}"
    return f"{change.kind.value}: {change.new or change.old}"

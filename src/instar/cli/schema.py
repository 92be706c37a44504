"""`instar schema …`: show schemas, and check changes to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from instar.cli.options import ConsensusOption, StoreOption, TableArgument, open_store
from instar.cli.output import JsonOption, console, print_json, print_table
from instar.errors import AmbiguousEvolutionError, InvalidSchemaError, SchemaNotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from instar.cli.verdicts import SchemaVerdict
    from instar.schema import Change, Field, SchemaUpdate

__all__ = ["app", "read_schema"]

app = typer.Typer(name="schema", help="Show schemas, and check changes to them.", no_args_is_help=True)

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
    """Say whether a table with schema OLD may evolve to NEW, and which readers of OLD that stops.

    Exits with 0 if the schemas are compatible and with 1 if they are not.

    Examples:

        instar schema check "user string, amount int" "user string, amount bigint"

        instar schema check old.sql new.sql --rename user=user_id --drop amount

    """
    from instar.cli.verdicts import judge  # noqa: PLC0415 -- slow
    from instar.schema import History, SchemaUpdate, as_schema  # noqa: PLC0415 -- slow

    history = History.start(as_schema(read_schema(old)))
    update = SchemaUpdate(history)
    _take(update, rename=rename, drop=drop)
    verdict = judge(history, _toward(update, new).schema)
    _answer(verdict, as_json=as_json)


@app.command()
def show(
    table: TableArgument,
    *,
    schema_id: Annotated[
        int | None, typer.Option("--id", help="An older schema, by its id; by default the latest.")
    ] = None,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a schema of a table, with the ids of its fields."""
    from instar.schema import format_type, spark_json  # noqa: PLC0415 -- slow

    with open_store(store, consensus) as opened:
        state = opened.table(table).state
    wanted = state.history.latest_id if schema_id is None else schema_id
    if not 0 <= wanted <= state.history.latest_id:
        raise SchemaNotFoundError(table, wanted, latest=state.history.latest_id)
    schema = state.history.schemas[wanted]
    if as_json:
        fields = _fields_json(schema.fields)
        print_json({"schema_id": wanted, "ddl": str(schema), "fields": fields, "spark": spark_json(schema)})
        return
    rows = [
        (str(field.id), "  " * depth + field.name, format_type(field.type), _null(field))
        for depth, field in schema.walk()
    ]
    latest = ", the latest" if wanted == state.history.latest_id else f" of 0 to {state.history.latest_id}"
    print_table(("id", "column", "type", ""), rows, title=f"{table}, schema {wanted}{latest}")


@app.command()
def diff(
    table: TableArgument,
    old: Annotated[
        int | None, typer.Argument(help="The id of the older schema; by default the one before the newer.")
    ] = None,
    new: Annotated[
        int | None, typer.Argument(help="The id of the newer schema; by default the latest.")
    ] = None,
    *,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what changed between two schemas of a table, and which readers that fences (stops)."""
    from instar.cli.verdicts import judge  # noqa: PLC0415 -- slow
    from instar.schema import History  # noqa: PLC0415 -- slow

    with open_store(store, consensus) as opened:
        history = opened.table(table).state.history
    newer = history.latest_id if new is None else new
    old = max(0, newer - 1) if old is None else old
    for schema_id in (old, newer):
        if not 0 <= schema_id <= history.latest_id:
            raise SchemaNotFoundError(table, schema_id, latest=history.latest_id)
    if old > newer:
        raise UsageError(f"schema {old} is newer than schema {newer}: give the older one first")
    before, after = (History.fold(history.schemas[: schema_id + 1]) for schema_id in (old, newer))
    verdict = judge(before, after.latest, after)
    _answer(verdict, as_json=as_json, old_id=old, new_id=newer)


@app.command()
def evolve(  # noqa: PLR0913 -- one option for each kind of step
    table: TableArgument,
    *,
    add: Annotated[
        list[str] | None, typer.Option(metavar="'PATH TYPE'", help="Add a nullable column.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="PATH", help="Delete a column.")] = None,
    rename: Annotated[list[str] | None, typer.Option(metavar="PATH=NAME", help="Rename a column.")] = None,
    nullable: Annotated[list[str] | None, typer.Option(metavar="PATH", help="Let a column be null.")] = None,
    widen: Annotated[list[str] | None, typer.Option(metavar="'PATH TYPE'", help="Widen a column.")] = None,
    to: Annotated[
        str | None, typer.Option(metavar="SCHEMA", help="Evolve to a schema, matched by name.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change a table's schema: one metadata write, whatever the table holds.

    Options may be repeated; they are applied in the order rename, drop, nullable, widen, add, to.

    Examples:

        instar schema evolve events --add "country string" --rename user=user_id

        instar schema evolve events --to new.sql --dry-run

    """
    from instar.cli.verdicts import judge  # noqa: PLC0415 -- slow

    with open_store(store, consensus) as opened:
        opened_table = opened.table(table)
        history = opened_table.state.history
        update = opened_table.evolve()
        _take(update, rename=rename, drop=drop, nullable=nullable, widen=widen, add=add)
        verdict = judge(history, (update if to is None else _toward(update, to)).schema)
        changes = verdict.changes and not dry_run
        schema_id = update.commit() if changes else history.latest_id
        _answer(verdict, as_json=as_json, schema_id=schema_id, dry_run=dry_run)


def _take(update: SchemaUpdate, **steps: list[str] | None) -> None:
    """Take the steps that options ask for, in the order of the options."""
    for option, values in steps.items():
        for value in values or []:
            path, mark, rest = value.partition("=" if option == "rename" else " ")
            if option in {"rename", "add", "widen"} and not mark:
                form = (
                    "OLD=NEW, such as user=user_id"
                    if option == "rename"
                    else "'PATH TYPE', such as 'n bigint'"
                )
                raise UsageError(f"--{option} {value}: expected {form}")
            match option:
                case "rename":
                    update.rename_column(path, _bare_name(path, rest))
                case "drop":
                    update.drop_column(value)
                case "nullable":
                    update.make_nullable(value)
                case "widen":
                    update.widen_column(path, rest)
                case "add":
                    update.add_column(path, rest)


def _bare_name(path: str, name: str) -> str:
    """Return a new name without the path before it, if the column is already there."""
    from instar.schema import parse_path  # noqa: PLC0415 -- slow

    *parent, _ = parse_path(path)
    try:
        *given, bare = parse_path(name)
    except UsageError:
        return name
    same = [step.lower() for step in given] == [step.lower() for step in parent]
    return bare if parent and same else name


def _toward(update: SchemaUpdate, target: str) -> SchemaUpdate:
    """Evolve to a schema matched by name; if names cannot decide, the error names options of this command."""
    from instar.schema import parse_path  # noqa: PLC0415 -- slow

    try:
        return update.evolve_to(read_schema(target))
    except AmbiguousEvolutionError as error:
        before, after = error.candidates[0]
        hint = f"Here: --rename {before}={parse_path(after)[-1]}, or --drop {before}"
        raise UsageError(f"{error}\n{hint}") from None


def _answer(verdict: SchemaVerdict, *, as_json: bool, dry_run: bool | None = None, **ids: int) -> None:
    """Print a verdict, as JSON with the ids of the schemas, and exit with 1 if it is negative."""
    if as_json:
        written = {} if dry_run is None else {"dry_run": dry_run}
        print_json({**ids, **written, **verdict.to_json()})
    else:
        _print(verdict)
        if dry_run and verdict.changes:
            console().print("This was a dry run: nothing was written.")
        elif dry_run is False and verdict.changes and verdict.compatible:
            console().print(f"The latest schema is now {ids['schema_id']}.")
    if not verdict.compatible:
        raise typer.Exit(1)


def _fields_json(fields: Iterable[Field]) -> list[dict[str, Any]]:
    """Return fields with their ids, and below each the fields inside it, also of elements and of values."""
    from instar.schema import format_type  # noqa: PLC0415 -- slow
    from instar.schema.algebra import member_fields  # noqa: PLC0415 -- slow

    return [
        {
            "id": field.id,
            "name": field.name,
            "type": format_type(field.type),
            "nullable": field.nullable,
            "fields": _fields_json(member_fields(field.type)),
        }
        for field in fields
    ]


def _null(field: Field) -> str:
    return "" if field.nullable else "not null"


def read_schema(given: str) -> str:
    """Return the text of a schema: the argument itself, or the file that it names."""
    if not given.strip():
        raise InvalidSchemaError("the schema is empty: give a file, or DDL such as 'user string, n int'")
    if " " in given.strip() and not Path(given).is_file():
        return given
    try:
        return Path(given).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InvalidSchemaError(
            f"cannot read a schema from {given!r}: {why}. Give a file, or DDL such as 'user string, n int'"
        ) from None


def _print(verdict: SchemaVerdict) -> None:
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

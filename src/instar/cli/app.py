"""The command tree, and how every command ends: one exit code and one shape of error for each kind.

What a command does is in the module of its noun; nothing here knows about tables or schemas.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Final

import typer
import typer.completion
import typer.exceptions
import typer.main
from rich.text import Text

from instar.cli import (
    adopt,
    check,
    comment,
    compact,
    demo,
    doctor,
    evolver,
    explain,
    importing,
    lineage_show,
    lookup,
    maintain,
    names,
    optimize,
    purge,
    query,
    retain,
    rows,
    schema,
    serve,
    sql,
    stream,
    tables,
    vacuum,
)
from instar.cli.help import HELP_OPTIONS, readable
from instar.cli.output import OutputError, error_json, open_output, print_json, stderr_console
from instar.errors import InstarError, MissingExtraError, disposition

__all__ = ["app", "run_command"]

app = typer.Typer(
    name="instar",
    epilog="Every command takes --json. Exit codes: 0 done, 1 the answer is no, 74 it could not be written, "
    "130 interrupted; all others: docs/errors.md.",
    no_args_is_help=True,
    context_settings={"help_option_names": HELP_OPTIONS},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
_TABLES: Final = "Tables"
app.command(rich_help_panel=_TABLES)(tables.init)
app.command(rich_help_panel=_TABLES)(tables.tables)
app.command(rich_help_panel=_TABLES)(tables.create)
app.command(rich_help_panel=_TABLES)(tables.describe)
app.command(rich_help_panel=_TABLES)(comment.comment)
app.command(rich_help_panel=_TABLES)(tables.log)
app.add_typer(schema.app, rich_help_panel=_TABLES)
app.command(rich_help_panel=_TABLES)(rows.restore)
app.command(rich_help_panel=_TABLES)(names.clone)
app.command(rich_help_panel=_TABLES)(names.rename)
app.command(rich_help_panel=_TABLES)(names.drop)
app.command(rich_help_panel=_TABLES)(names.undrop)

_ROWS: Final = "Rows"
app.command("import", rich_help_panel=_ROWS)(importing.import_files)
app.command("upsert", rich_help_panel=_ROWS)(importing.upsert_files)
app.command(rich_help_panel=_ROWS)(rows.delete)
app.command(rich_help_panel=_ROWS)(rows.head)
app.command(rich_help_panel=_ROWS)(rows.count)
app.command(rich_help_panel=_ROWS)(lookup.lookup)
app.command(rich_help_panel=_ROWS)(query.query)
app.command(rich_help_panel=_ROWS)(sql.sql)
app.command(rich_help_panel=_ROWS)(explain.explain)
app.command(rich_help_panel=_ROWS)(rows.export)
app.command(rich_help_panel=_ROWS)(rows.listen)

_UPKEEP: Final = "Upkeep"
app.command(rich_help_panel=_UPKEEP)(compact.compact)
app.command(rich_help_panel=_UPKEEP)(optimize.optimize)
app.command(rich_help_panel=_UPKEEP)(retain.retain)
app.command(rich_help_panel=_UPKEEP)(purge.purge)
app.command(rich_help_panel=_UPKEEP)(vacuum.vacuum)
app.command(rich_help_panel=_UPKEEP)(maintain.maintain)
app.command(rich_help_panel=_UPKEEP)(adopt.adopt)
app.command(rich_help_panel=_UPKEEP)(adopt.analyze)
app.command(rich_help_panel=_UPKEEP)(doctor.doctor)

_BEYOND: Final = "Beyond one table"
app.add_typer(stream.app, rich_help_panel=_BEYOND)
app.add_typer(evolver.app, rich_help_panel=_BEYOND)
app.command(rich_help_panel=_BEYOND)(check.check)
app.command(rich_help_panel=_BEYOND)(serve.serve)
app.add_typer(lineage_show.app, rich_help_panel=_BEYOND)
app.command(rich_help_panel=_BEYOND)(demo.demo)


_EXTRAS: Final = {
    "pyspark": "spark",
    "py4j": "spark",
    "sqlalchemy": "lineage",
    "alembic": "lineage",
    "starlette": "lineage",
    "uvicorn": "lineage",
    "jinja2": "lineage",
    "google": "stream",
    "grpc_tools": "stream",
    "fastavro": "stream",
    "prompt_toolkit": "sql",
}
"""Packages that may be absent, and the extra that has each."""


def _print_version(wanted: bool) -> None:  # noqa: FBT001 -- click hands over the flag's value
    if wanted:
        from instar import __version__  # noqa: PLC0415 -- read from the package's metadata

        typer.echo(f"instar {__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Keep tables whose schema keeps changing.

    Examples:

        instar init lake

        export INSTAR_STORE=lake

        instar import events.csv --table events --create

        instar head events

        instar schema evolve events --add "country string" --rename user=user_id

        instar log events

    """


def run_command() -> None:
    """Run a command, and end the process with its exit code."""
    arguments = sys.argv[1:]
    try:
        with open_output() as output:
            code = _run(arguments)
            output.flush()
    except OutputError as error:
        if not error.hung_up:
            _report("output", str(error), as_json=False)
        code = 141 if error.hung_up else 74
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    as_json = "--json" in arguments
    command = readable(typer.main.get_command(app))
    completing = os.environ.get("_INSTAR_COMPLETE")  # set by the script that --install-completion writes
    try:
        if completing:
            return typer.completion.shell_complete(command, {}, "instar", "_INSTAR_COMPLETE", completing)
        with command.make_context("instar", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except InstarError as error:
        _report(error.code, str(error), as_json=as_json)
        return disposition(error).exit_code
    except typer.exceptions.TyperException as error:
        message = error.format_message()
        if message:  # there is none if no command was given: then help has been printed instead
            asked = getattr(error, "ctx", None)
            remedy = "" if asked is None else f" `{asked.command_path} -h` shows how it is called."
            stop = "" if message.endswith((".", "?")) or not remedy else "."
            _report("usage", message + stop + remedy, as_json=as_json)
        return 2
    except (KeyboardInterrupt, typer.Abort):
        _report("interrupted", "interrupted; nothing that was committed is lost", as_json=as_json)
        return 130
    except OutputError:
        raise
    except ModuleNotFoundError as error:
        missing = _EXTRAS.get((error.name or "").partition(".")[0])
        if missing is None:
            return _fail(error, as_json=as_json)
        _report(MissingExtraError.code, str(MissingExtraError(missing)), as_json=as_json)
        return disposition(MissingExtraError).exit_code
    except Exception as error:  # noqa: BLE001 -- no traceback reaches the user
        return _fail(error, as_json=as_json)
    return 0


def _fail(error: Exception, *, as_json: bool) -> int:
    """Report an unexpected error, which is a bug."""
    if os.environ.get("INSTAR_DEBUG"):
        raise error
    text = f"{type(error).__name__}: {error}. This is a bug in instar; INSTAR_DEBUG=1 shows where."
    _report("internal", text, as_json=as_json)
    return 70


def _report(code: str, message: str, *, as_json: bool) -> None:
    if as_json:
        print_json(error_json(code, message))
    else:
        stderr_console().print(Text("error: ", "bold red"), Text(message), sep="", soft_wrap=True)

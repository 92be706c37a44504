"""The command tree, and how every command ends: one exit code and one shape of error for each kind.

What a command does is in the module of its noun; nothing here knows about tables or schemas.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated

import typer
import typer.exceptions
from rich.console import Console
from rich.text import Text

from instar import __version__
from instar.cli import demo, explain, importing, query, schema, tables, vacuum
from instar.errors import InstarError, disposition

__all__ = ["app", "main"]

app = typer.Typer(
    name="instar",
    epilog="Every command takes --json. Exit codes: 0 done, 1 the answer is no, 2 and up: docs/errors.md.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command()(tables.init)
app.command()(tables.tables)
app.command()(tables.create)
app.command()(tables.describe)
app.command()(tables.log)
app.add_typer(schema.app)
app.command("import")(importing.import_files)
app.command()(query.query)
app.command()(explain.explain)
app.command()(vacuum.vacuum)
app.command()(tables.drop)
app.command()(demo.demo)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 -- click hands over the flag's value
    if wanted:
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

        instar create events "user string not null, at timestamp, amount int" --store lake

        instar schema evolve events --add "country string" --widen "amount bigint" --store lake

        instar log events --store lake --json

        instar schema check old.sql new.sql

    """


def main() -> None:
    """Run the command line; no traceback reaches the user."""
    arguments = sys.argv[1:]
    try:
        code = app(args=arguments, standalone_mode=False)
    except InstarError as error:
        _report(error.code, str(error), as_json="--json" in arguments)
        sys.exit(disposition(error).exit_code)
    except typer.exceptions.TyperException as error:
        _report("usage", str(error), as_json="--json" in arguments)
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        _report(
            "interrupted", "interrupted; nothing that was committed is lost", as_json="--json" in arguments
        )
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception as error:
        if os.environ.get("INSTAR_DEBUG"):
            raise
        text = f"{type(error).__name__}: {error}. This is a bug in instar; INSTAR_DEBUG=1 shows where."
        _report("internal", text, as_json="--json" in arguments)
        sys.exit(70)
    sys.exit(code if isinstance(code, int) else 0)


def _report(code: str, message: str, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({"error": {"code": code, "message": message}}) + "\n")
    else:
        Console(stderr=True, soft_wrap=True).print(Text("error: ", "bold red"), Text(message), sep="")

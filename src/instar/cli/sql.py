"""`instar sql`: one statement over the tables of a store, or a prompt for many."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from instar.amounts import format_count
from instar.cli.options import ConsensusOption, StoreOption, open_store
from instar.cli.output import JsonOption, print_json, stderr_console, working
from instar.cli.printing import (
    CsvOption,
    LimitOption,
    NdjsonOption,
    Printing,
    Shape,
    VerticalOption,
    chosen_printing,
)
from instar.errors import InstarError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from instar import Store

__all__ = ["sql"]

_LEAVING: Final = frozenset(["exit", "quit", "\\q"])


def sql(
    statement: Annotated[
        str | None,
        typer.Argument(help="A statement in Spark's SQL. Without one, a prompt opens, or many are read."),
    ] = None,
    *,
    vertical: VerticalOption = False,
    csv: CsvOption = False,
    ndjson: NdjsonOption = False,
    limit: LimitOption = None,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run SQL over the tables of a store, on a Spark of this machine: queries, and changes to tables.

    Names with a / go in `backticks`. At the prompt, a statement ends with a semicolon; Ctrl-C cancels it, and
    Ctrl-D or `exit` leaves. Statements from the standard input run one after the other, up to the first that
    fails.

    Examples:

        instar sql "select country, count(*) as n from events group by country"

        instar sql "alter table events add column vip boolean"

        instar sql "update events set vip = true where amount > 100" --json

        instar sql

    """
    printing = chosen_printing(as_json=as_json, ndjson=ndjson, csv=csv, vertical=vertical, limit=limit)
    prompts = statement is None and sys.stdin.isatty()
    if prompts:
        import prompt_toolkit  # noqa: F401, PLC0415 -- says at once that it is missing
    with open_store(store, consensus) as opened:
        with working("starting Spark"):
            from instar.spark.commands.sql import sql_session  # noqa: PLC0415 -- slow

            spark = sql_session(opened)
        if prompts:
            _prompt(opened, spark, printing)
            return
        for one in [statement] if statement is not None else _read_statements(sys.stdin.read()):
            _run(opened, spark, one, printing)


def _run(store: Store, spark: SparkSession, statement: str, printing: Printing) -> None:
    """Run a statement, and print its rows."""
    from instar.spark.commands.query import rows_of  # noqa: PLC0415 -- slow
    from instar.spark.problems import spark_errors  # noqa: PLC0415 -- slow
    from instar.spark.session import cancelling  # noqa: PLC0415 -- slow

    if not statement.strip().rstrip(";").strip():
        raise UsageError("there is no statement: write one, such as `show tables`")
    with spark_errors(), cancelling(spark), working("running"):
        frame = store.sql(spark, statement.strip().rstrip(";"))
        found = rows_of(frame, printing.asked) if frame.columns else None
    if found is not None:
        printing.print(found)
    elif printing.shape is Shape.JSON:
        print_json([])
    elif printing.shape in {Shape.TABLE, Shape.VERTICAL}:
        stderr_console().print("done")


def _read_statements(text: str) -> list[str]:
    """Split text into statements at semicolons."""
    from instar.spark.catalog.statements import split_statements  # noqa: PLC0415 -- slow

    return split_statements(text)


def _prompt(store: Store, spark: SparkSession, printing: Printing) -> None:
    """Ask for statements until there are no more."""
    from instar.cli.prompt import SqlPrompt  # noqa: PLC0415 -- only then

    prompt = SqlPrompt(store)
    tables = format_count(len(store.tables()), "table")
    stderr_console().print(f"{store.location}: {tables}", soft_wrap=True)
    stderr_console().print("A statement ends with ; and Tab completes names. Ctrl-C cancels, Ctrl-D leaves.")
    while True:
        try:
            statement = prompt.ask()
        except EOFError:
            return
        except KeyboardInterrupt:
            continue
        if statement.strip().rstrip(";").strip().lower() in _LEAVING:
            return
        if statement.strip(" ;\n"):
            with _told():
                _run(store, spark, statement, printing)


@contextmanager
def _told() -> Iterator[None]:
    """Print an error on one line, and continue."""
    try:
        yield
    except InstarError as error:
        stderr_console().print(f"error: {error}", soft_wrap=True)
    except KeyboardInterrupt:
        stderr_console().print("cancelled")

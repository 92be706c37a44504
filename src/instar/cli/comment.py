"""`instar comment`: what a table or a column is for."""

from __future__ import annotations

from typing import Annotated

import typer

from instar.cli.options import ConsensusOption, StoreOption, TableArgument, open_store
from instar.cli.output import JsonOption, console, print_json, print_table

__all__ = ["comment"]


def comment(
    table: TableArgument,
    text: Annotated[
        str | None, typer.Argument(help="What it is for; an empty text removes the comment.")
    ] = None,
    *,
    column: Annotated[
        str | None, typer.Option(help="The column, or a member of a struct by its path: addr.city.")
    ] = None,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Comment on a table or a column, or without a text show the comments.

    Examples:

        instar comment events "One row for each thing that happened"

        instar comment events "In cents" --column amount

        instar comment events

    """
    with open_store(store, consensus) as opened:
        found = opened.table(table)
        if text is not None:
            found.comment(text or None, column)
        comments = {name: said for name, said in found.comments.items() if column in {None, name}}
    about = comments.pop(None, None)
    if as_json:
        print_json({"table": table, "comment": about, "columns": comments})
    elif text is not None:
        what = table if column is None else f"{column} of {table}"
        console().print(f"Commented {what}" if text else f"Removed the comment on {what}", soft_wrap=True)
    elif about is None and not comments:
        console().print("There are no comments", soft_wrap=True)
    else:
        lines = [] if about is None else [(table, about)]
        print_table(("what", "comment"), [*lines, *((str(name), said) for name, said in comments.items())])

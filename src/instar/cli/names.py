"""`instar drop`, `undrop`, `rename`, `clone`: which tables exist, and their names."""

from __future__ import annotations

from typing import Annotated

import typer

from instar.amounts import format_count
from instar.cli.options import ConsensusOption, StoreOption, TableArgument, YesOption, confirm, open_store
from instar.cli.output import JsonOption, console, print_json

__all__ = ["clone", "drop", "rename", "tell_dropped", "undrop"]

NewNameArgument = Annotated[str, typer.Argument(help="A name that no table has.")]


def drop(
    table: TableArgument,
    *,
    yes: YesOption = False,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Drop a table. Its name is free at once; a vacuum deletes its files after its grace period, a day.

    Until then, and as long as no other table has the name, `instar undrop` brings it back.
    """
    with open_store(store, consensus) as opened:
        totals = opened.table(table).state.totals
        confirm(f"Drop {table}, which holds {format_count(totals.rows - totals.retracted, 'row')}?", yes=yes)
        opened.drop_table(table)
    tell_dropped(table, "instar undrop", as_json=as_json)


def tell_dropped(name: str, undrop_command: str, *, as_json: bool) -> None:
    """Say that something was dropped, and how it comes back."""
    if as_json:
        print_json({"dropped": name})
    else:
        console().print(
            f"Dropped {name}. `{undrop_command} {name}` brings it back, until a vacuum removes its files."
        )


def undrop(
    table: TableArgument,
    *,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring back a table that was dropped, with all its rows and its history.

    That works until a vacuum has removed its files, and as long as no other table has its name.

    Example:

        instar undrop events

    """
    with open_store(store, consensus) as opened:
        rows = opened.undrop_table(table).count()
    if as_json:
        print_json({"undropped": table, "rows": rows})
    else:
        console().print(f"Brought back {table}, which holds {format_count(rows, 'row')}.")


def rename(
    table: TableArgument,
    new_name: NewNameArgument,
    *,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a table another name. No file is moved, and its readers and writers continue.

    Examples:

        instar rename events events_2025

        instar rename staging/orders sales/orders

    """
    with open_store(store, consensus) as opened:
        opened.rename_table(table, new_name)
    if as_json:
        print_json({"renamed": table, "to": new_name})
    else:
        console().print(f"Renamed {table} to {new_name}.")


def clone(
    table: TableArgument,
    new_name: NewNameArgument,
    *,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make another table with the same rows and the same history, without copying files.

    Later writes to one of the tables do not change the other.

    Example:

        instar clone events experiments/events

    """
    with open_store(store, consensus) as opened:
        rows = opened.table(table).clone(new_name).count()
    if as_json:
        print_json({"cloned": table, "to": new_name, "rows": rows})
    else:
        console().print(f"Cloned {table} to {new_name}, which holds {format_count(rows, 'row')}.")

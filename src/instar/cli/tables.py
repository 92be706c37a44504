"""`instar init`, `tables`, `create`, `describe`, `log`: a store and what is in it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

import instar
from instar.amounts import format_bytes, format_count, format_time
from instar.cli.options import ConsensusOption, StoreOption, TableArgument, open_store
from instar.cli.output import JsonOption, console, error_json, print_json, print_table
from instar.cli.schema import read_schema
from instar.errors import disposition

if TYPE_CHECKING:
    from instar import Table
    from instar.errors import InstarError
    from instar.state import ConfigValue
    from instar.table.housekeeping.forecast import TableCondition

_SHOWN: Final = 100
"""How many tables are listed unless another number is asked for."""
_NAMED: Final = 5
"""How many of many columns are named."""
_BY_CLOCK: Final = 100_000_000_000
"""Times from here on are by the clock: the year is 1973 or later."""
_READERS: Final = 16
"""How many tables are looked at side by side."""

__all__ = ["create", "describe", "init", "log", "tables"]


def init(
    location: Annotated[str, typer.Argument(help="A directory or URL that is empty or does not exist yet.")],
    *,
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a store.

    Examples:

        instar init lake

        instar init s3://bucket/lake --consensus postgresql://localhost/instar

    """
    with instar.open(location, consensus=consensus) as store:
        made = store.initialise()
        if as_json:
            print_json({"store": store.location, "made": made})
        else:
            console().print(
                f"Created a store at {store.location}" if made else f"{store.location} is a store already"
            )


def tables(
    prefix: Annotated[str, typer.Argument(help="Only tables whose names begin with this.")] = "",
    *,
    limit: Annotated[
        int | None,
        typer.Option(
            min=0, help="Show this many; 0 is all. By default 100, and all in JSON.", show_default=False
        ),
    ] = None,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the tables of a store.

    Only tables that are shown are opened, so a store may have many.

    If a table cannot be read, because it is damaged or has a newer format, the error at the end names it; in
    JSON, its object has the error.

    Examples:

        instar tables

        INSTAR_STORE=lake instar tables billing/ --json

    """
    unreadable: dict[str, InstarError] = {}
    most = (None if as_json else _SHOWN) if limit is None else limit or None
    with open_store(store, consensus) as opened, ThreadPoolExecutor(_READERS) as pool:
        tables = opened.find_tables(prefix, unreadable=unreadable, limit=None if most is None else most + 1)
        found = list(pool.map(_facts, tables[:most]))
    if as_json:
        errors = [{"name": name, **error_json(it.code, str(it))} for name, it in unreadable.items()]
        print_json([*(fact._asdict() for fact in found), *errors])
        codes = [disposition(error).exit_code for error in unreadable.values()]
        raise typer.Exit(max(codes, default=0))
    if found:
        _print_tables(found)
        if len(tables) > len(found):
            console().print(f"There are more than these {len(found)}: name a prefix, or --limit 0 for all.")
    elif not unreadable:
        console().print(
            f"There are no tables in {opened.location}" + (f" under {prefix}." if prefix else ".")
        )
    for error in unreadable.values():
        raise error


def create(
    table: TableArgument,
    schema: Annotated[str, typer.Argument(help="DDL text, or a file with DDL or a Spark schema's JSON.")],
    *,
    order_by: Annotated[
        list[str] | None, typer.Option(help="A column that files are sorted by. Repeatable.")
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(help="A column that upserts find a row by; appends do not check it. Repeatable."),
    ] = None,
    cluster_by: Annotated[
        list[str] | None, typer.Option(help="A column that compaction keeps rows together by. Repeatable.")
    ] = None,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create an empty table.

    Example:

        instar create events "user string not null, at timestamp, amount int" --order-by at

    """
    with open_store(store, consensus) as opened:
        made = opened.create_table(
            table, read_schema(schema), order_by=order_by or (), key=key or (), cluster_by=cluster_by or ()
        )
        if as_json:
            print_json(_facts(made)._asdict())
        else:
            console().print(f"Created {table}: {made.schema}")


def describe(
    table: TableArgument,
    *,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a table's schema, times, size and options, the state of its parts, and what to do about it."""
    with open_store(store, consensus) as opened:
        found = opened.table(table)
        facts, condition, unbounded = _facts(found), found.condition(), found.unbounded()
    if as_json:
        told = condition._asdict() | {"work": dict(condition.work)}
        print_json(facts._asdict() | {"condition": told, "unbounded": unbounded})
        return
    size = f"{format_count(facts.parts, 'part')}, {format_bytes(facts.bytes)}"
    updates = "" if facts.updates == facts.rows else f" ({format_count(facts.updates, 'update')})"
    held = f"{format_count(facts.rows, 'row')}{updates} in {size}"
    lines = [
        ("schema", f"{facts.schema_id}: {facts.schema}"),
        ("order by", ", ".join(facts.order_by) or "-"),
        (
            "key",
            f"{', '.join(facts.key)} (upserts replace by it, appends do not check it)" if facts.key else "-",
        ),
        ("cluster by", ", ".join(facts.cluster_by) or "-"),
        ("readable as of", _span(facts)),
        ("holds", held),
        *_condition_lines(condition),
        ("without bounds", _some(unbounded) or "-"),
        ("options", ", ".join(f"{name}={value}" for name, value in facts.options.items()) or "-"),
        ("comments", "; ".join(_said(facts)) or "-"),
        ("state", f"seqno {facts.seqno}"),
    ]
    print_table(("table", facts.name), lines)


def _span(facts: _Facts) -> str:
    """Say which times can be read: by the clock, or as numbers if the table has its own times."""
    if not facts.upper:
        return "-"
    first, last = facts.since, facts.upper - 1
    if last < _BY_CLOCK:
        return f"{first} to {last}"
    begin = f"{format_time(first)} UTC" if first >= _BY_CLOCK else "its creation"
    return f"{begin} to {format_time(last)} UTC"


def _said(facts: _Facts) -> list[str]:
    """Return the comments on a table and its columns."""
    about = [] if facts.comment is None else [facts.comment]
    return [*about, *(f"{path}: {text}" for path, text in facts.comments.items())]


def _some(names: list[str]) -> str:
    """Name some columns, and how many there are."""
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} … {names[-1]} ({len(names):,} columns)"


def _condition_lines(condition: TableCondition) -> list[tuple[str, str]]:
    """Say what state the parts of a table are in."""
    under = ", ".join(f"{it} ({format_count(parts, 'part')})" for it, parts in condition.schemas.items())
    order = {None: "-", True: "yes, in one pass", False: "no: parts overlap, or their order was lost"}
    todo = ", ".join(f"{format_count(parts, 'part')} ({reason})" for reason, parts in condition.work)
    return [
        ("small parts", f"{condition.small_parts:,} of {condition.parts:,}"),
        ("schemas in parts", under or "-"),
        ("in order", order[condition.ordered]),
        ("retracted rows", f"{condition.retracted:,}"),
        ("compaction", f"would rewrite {todo}" if todo else "has nothing to do"),
    ]


def log(
    table: TableArgument,
    *,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many commits, newest first.")] = 50,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show who committed what to a table, when, and under which schema."""
    with open_store(store, consensus) as opened:
        commits = opened.table(table).history(limit + 1)
    shown = commits[:limit]
    if as_json:
        print_json([{**commit._asdict(), "at": commit.at.isoformat()} for commit in shown])
        return
    rows = [(*commit.line(), commit.commit_id[:8]) for commit in shown]
    print_table(("seqno", "at (UTC)", "by", "what", "schema", "commit"), rows, numbers=(0, 4))
    if len(shown) < len(commits):
        console().print("There are older commits; --limit shows more.")


def _print_tables(found: list[_Facts]) -> None:
    rows = [
        (
            fact.name,
            str(fact.schema_id),
            str(fact.columns),
            format_count(fact.parts),
            format_count(fact.rows),
            format_bytes(fact.bytes),
        )
        for fact in found
    ]
    print_table(("table", "schema", "columns", "parts", "rows", "size"), rows, numbers=range(1, 6))


class _Facts(NamedTuple):
    """The facts about a table."""

    name: str
    table_id: str
    seqno: int
    schema_id: int
    schema: str
    columns: int
    order_by: list[str]
    key: list[str]
    cluster_by: list[str]
    since: int
    upper: int
    parts: int
    rows: int
    updates: int
    bytes: int
    options: dict[str, ConfigValue]
    comment: str | None
    comments: dict[str, str]


def _facts(table: Table) -> _Facts:
    from instar.parts.layout import path_to  # noqa: PLC0415 -- slow
    from instar.schema import format_path  # noqa: PLC0415
    from instar.state.options import CLUSTER_BY, STATS, parse_fields  # noqa: PLC0415

    state = table.state
    latest = state.history.latest
    options = {name: value for name, value in state.options.items() if name != CLUSTER_BY}

    def named(field_ids: tuple[int, ...]) -> list[str]:
        paths = {field_id: path_to(latest.fields, field_id) for field_id in field_ids}
        return [format_path(path) if path else f"(deleted field {it})" for it, path in paths.items()]

    if STATS in options:
        options[STATS] = ", ".join(named(parse_fields(options[STATS])))
    return _Facts(
        state.name,
        state.table_id,
        state.seqno,
        state.history.latest_id,
        str(latest),
        len(latest.fields),
        named(state.order_by),
        named(state.key),
        named(state.cluster_by),
        state.since,
        state.upper,
        state.totals.parts,
        table.count(),
        state.totals.rows,
        state.totals.bytes,
        options,
        state.comments.get(None),
        {path: text for path, text in state.comments.items() if path is not None},
    )

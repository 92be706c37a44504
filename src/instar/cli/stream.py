"""`instar stream …`: families of tables with one history of schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from instar.amounts import format_count
from instar.cli.calendar import draw_calendar
from instar.cli.names import tell_dropped
from instar.cli.options import ConsensusOption, StoreOption, YesOption, confirm, open_store
from instar.cli.output import JsonOption, console, print_json, print_table, working
from instar.cli.printing import CsvOption, LimitOption, NdjsonOption, VerticalOption, chosen_printing
from instar.cli.schema import read_schema
from instar.errors import UsageError

if TYPE_CHECKING:
    from instar import Stream, StreamTable

__all__ = ["app"]

app = typer.Typer(
    name="stream",
    help="Manage streams: families of tables with one history of schemas.",
    no_args_is_help=True,
)

StreamArgument = Annotated[
    str, typer.Argument(help="The stream's name, such as billing/events.", show_default=False)
]
KindOption = Annotated[
    str, typer.Option(help="The kind of tables: hourly, regular, repartitioned, eod or archive.")
]


@app.command()
def create(
    stream: StreamArgument,
    schema: Annotated[str, typer.Argument(help="DDL text, or a file with DDL or a Spark schema's JSON.")],
    *,
    time: Annotated[str, typer.Option(help="The time column, which decides which table a row belongs to.")],
    version: Annotated[str, typer.Option(help="The version of this schema.")] = "v0.0.1",
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=PERIOD", help="A kind of tables and its period, such as regular=1d. Repeatable."
        ),
    ] = None,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a stream: a family of tables with one history of schemas. Writes create its tables.

    A period is 30m (minutes), 1h, 1d, 1M (a month) or 1y. Without --kind, a stream has regular tables of a
    day and archive tables of a year.

    Example:

        instar stream create events "user string, at timestamp" --time at --kind regular=1d

    """
    kinds = None if not kind else dict(_kind_and_period(text) for text in kind)
    with open_store(store, consensus) as opened:
        made = opened.create_stream(stream, read_schema(schema), version, time=time, kinds=kinds)
        if as_json:
            print_json(_facts(made))
        else:
            console().print(f"Created {stream} at {made.max_version}: {made.schema}")


@app.command("list")
def list_streams(
    *, store: StoreOption = ".", consensus: ConsensusOption = None, as_json: JsonOption = False
) -> None:
    """List the streams of a store.

    Example:

        instar stream list

    """
    with open_store(store, consensus) as opened:
        found = [_facts(opened.stream(name)) for name in opened.streams()]
    if as_json:
        print_json(found)
    elif found:
        print_table(
            ("stream", "version", "kinds", "tables"),
            [
                (
                    str(fact["name"]),
                    str(fact["max_version"]),
                    ", ".join(f"{kind}={period}" for kind, period in fact["kinds"].items()),  # type: ignore[attr-defined]
                    format_count(int(str(fact["tables"]))),
                )
                for fact in found
            ],
        )
    else:
        console().print(f"There are no streams in {opened.location}.")


@app.command()
def describe(
    stream: StreamArgument,
    *,
    kind: Annotated[str | None, typer.Option(help="Only tables of this kind.")] = None,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the versions of a stream, and a calendar of its tables with the version that each is stamped with.

    Example:

        instar stream describe billing/events

    """
    with open_store(store, consensus) as opened, working("reading the states of tables"):
        found = opened.stream(stream)
        facts, versions, tables = _facts(found), found.versions, found.tables(kind)
    if as_json:
        facts["versions"] = {str(version): str(schema) for version, schema in versions.items()}
        facts["tables"] = [_table_facts(table) for table in tables]
        print_json(facts)
        return
    terminal = console()
    terminal.print(f"{stream} is at {facts['max_version']}: {facts['schema']}")
    print_table(("version", "columns"), [(str(version), str(schema)) for version, schema in versions.items()])
    stamps = sorted({max(versions), *(table.version for table in tables)})
    for each in dict.fromkeys(table.kind for table in tables):
        own = [table for table in tables if table.kind == each]
        rows = sum(table.rows for table in own)
        terminal.print(f"{each}: {format_count(len(own), 'table')}, {format_count(rows, 'row')}")
        cells = [(table.start, table.version) for table in own]
        terminal.print(draw_calendar(cells, stamps, found.kinds[each]))


@app.command()
def evolve(
    stream: StreamArgument,
    schema: Annotated[str, typer.Argument(help="DDL text, or a file with DDL or a Spark schema's JSON.")],
    *,
    version: Annotated[str, typer.Option(help="The version of this schema.")],
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Declare a version of a stream. Writes bring their tables to it, and the evolver all others.

    Example:

        instar stream evolve events "user string, at timestamp, city string" --version v0.0.2

    """
    with open_store(store, consensus) as opened:
        found = opened.stream(stream)
        highest = found.evolve(read_schema(schema), version)
        if as_json:
            print_json(_facts(found))
        else:
            console().print(f"{stream} is at {highest}: {found.schema}")


@app.command()
def read(  # noqa: PLR0913 -- each is an option of the command
    stream: StreamArgument,
    *,
    kind: KindOption = "regular",
    start: Annotated[str | None, typer.Option(help="The first event time: 2026-11-15, in UTC.")] = None,
    end: Annotated[str | None, typer.Option(help="The event time to end before.")] = None,
    version: Annotated[str | None, typer.Option(help="Read under the schema of this version.")] = None,
    columns: Annotated[list[str] | None, typer.Option("--column", help="A column. Repeatable.")] = None,
    limit: LimitOption = None,
    vertical: VerticalOption = False,
    csv: CsvOption = False,
    ndjson: NdjsonOption = False,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print rows of a range of tables, in one schema whatever versions they were written in.

    Example:

        instar stream read billing/events --start 2026-11-01 --end 2026-12-01 --limit 5

    """
    import pyarrow as pa  # noqa: PLC0415 -- slow

    from instar.schema import arrow_schema  # noqa: PLC0415 -- slow

    printing = chosen_printing(as_json=as_json, ndjson=ndjson, csv=csv, vertical=vertical, limit=limit)
    found: list[pa.RecordBatch] = []
    left = printing.asked
    with open_store(store, consensus) as opened, working("reading"):
        snapshot = opened.stream(stream).snapshot(kind, start, end, schema=version, columns=columns)
        for batch in snapshot.to_batches():
            found.append(batch.slice(0, left))
            left = None if left is None else left - found[-1].num_rows
            if left == 0:
                break
    printing.print(pa.Table.from_batches(found, arrow_schema(snapshot.schema)))


@app.command()
def drop(
    stream: StreamArgument,
    *,
    yes: YesOption = False,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """End a stream, and drop all its tables. A vacuum deletes their files after its grace period, a day.

    Until then, `instar stream undrop` brings it back. If a drop is interrupted, run it again.

    Example:

        instar stream drop billing/events

    """
    with open_store(store, consensus) as opened:
        if stream in opened.streams():
            tables = opened.stream(stream).tables()
            rows = format_count(sum(table.rows for table in tables), "row")
            confirm(f"Drop {stream}, whose {format_count(len(tables), 'table')} hold {rows}?", yes=yes)
        opened.drop_stream(stream)
    tell_dropped(stream, "instar stream undrop", as_json=as_json)


@app.command()
def undrop(
    stream: StreamArgument,
    *,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring back a stream that was dropped, with the tables that it had.

    This works until a vacuum has removed the files of one of them.

    Example:

        instar stream undrop billing/events

    """
    with open_store(store, consensus) as opened:
        back = opened.undrop_stream(stream)
        if as_json:
            print_json(_facts(back))
        else:
            console().print(f"Brought back {stream} with {format_count(back.table_count, 'table')}.")


@app.command("retry-quarantine")
def retry_quarantine(
    stream: StreamArgument,
    *,
    version: Annotated[
        str | None, typer.Option(help="Only records that were written as this version.")
    ] = None,
    decode_as: Annotated[
        str | None, typer.Option(help="Decode by this version, if records came under a wrong one.")
    ] = None,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decode records of protobuf that are in quarantine again. Those that can be decoded now become rows.

    Example:

        instar stream retry-quarantine shop/orders --version v0.0.2 --decode-as v0.0.3

    """
    with open_store(store, consensus) as opened, working("decoding"):
        done = opened.stream(stream).retry_quarantine(version, decode_as=decode_as)
    if as_json:
        print_json(done._asdict())
        return
    console().print(
        f"{format_count(done.rows, 'record')} became rows of {stream}, "
        f"{format_count(done.quarantined)} still cannot be decoded."
    )


def _facts(stream: Stream) -> dict[str, object]:
    return {
        "name": stream.name,
        "max_version": str(stream.max_version),
        "schema": str(stream.schema),
        "kinds": stream.kinds,
        "tables": stream.table_count,
    }


def _table_facts(table: StreamTable) -> dict[str, object]:
    return {
        "name": table.name,
        "kind": table.kind,
        "start": None if table.start is None else table.start.isoformat(),
        "version": str(table.version),
        "versions": [str(version) for version in table.versions],
        "rows": table.rows,
    }


def _kind_and_period(text: str) -> tuple[str, str]:
    kind, equals, period = text.partition("=")
    if not equals:
        raise UsageError(f"{text!r} is not a kind and its period: write regular=1d")
    return kind, period

"""`instar demo`: the main job, told as a story."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from rich.panel import Panel
from rich.text import Text

from instar.cli.output import console, print_table
from instar.errors import AmbiguousEvolutionError, IncompatibleSchemaError
from instar.schema import (
    History,
    SchemaUpdate,
    arrow_schema,
    as_schema,
    check_reader,
    migrate,
    needs_consolidation,
    preserves_order,
)

if TYPE_CHECKING:
    from instar.schema import Schema

__all__ = ["demo"]

_FIRST = """
    user string not null,
    at timestamp not null,
    amount int,
    addr struct<city: string, zip: int>,
    tags array<string>
"""
_BAD = """
    user_id string,
    country int,
    at timestamp not null,
    amount int,
    addr struct<city: string not null>,
    tags array<string>
"""


def demo() -> None:
    """Tell the story of one table: a history of schemas, its verdicts, its readers and its data."""
    out = console()
    out.print(
        Panel(
            "One table, four schemas: what may change, who is fenced, what old data reads as.", title="instar"
        )
    )
    history = _grow()
    _refuse(history)
    _fence(history)
    _migrate(history)
    _order(history)


def _grow() -> History:
    _chapter(1, "A schema change is one metadata write")
    history = History.start(as_schema(_FIRST))
    steps = [
        SchemaUpdate(history)
        .add_column("country", "string", after="user")
        .add_column("addr.street", "string")
    ]
    history = history.evolve(steps[-1].schema)
    steps.append(SchemaUpdate(history).rename_column("user", "user_id").widen_column("amount", "bigint"))
    history = history.evolve(steps[-1].schema)
    steps.append(SchemaUpdate(history).drop_column("addr.zip").make_nullable("at"))
    changes = ["first", *("\n".join(f"{c.path}: {c.kind.value}" for c in step.changes) for step in steps)]
    history = history.evolve(steps[-1].schema)
    rows = [
        (str(schema_id), changed, str(schema))
        for schema_id, (schema, changed) in enumerate(zip(history.schemas, changes, strict=True))
    ]
    print_table(("schema", "changed", "columns"), rows)
    return history


def _refuse(history: History) -> None:
    _chapter(2, "What would lose or invent data is refused, with every reason at once")
    try:
        history.evolve(SchemaUpdate(history).evolve_to(_BAD).schema, "events")
    except IncompatibleSchemaError as error:
        console().print(Text(str(error), "red"))
    try:
        SchemaUpdate(history).evolve_to(str(history.latest).replace("country", "nation"))
    except AmbiguousEvolutionError as error:
        console().print(Text(f"\n{error}", "red"))


def _fence(history: History) -> None:
    _chapter(3, "A reader is never lied to")
    readers: list[tuple[str, Schema]] = [
        ("schema 3, the latest", history.latest),
        ("schema 0, all columns", history.schemas[0]),
        ("schema 0, only user and tags", history.schemas[0].select(["user", "tags"])),
        ("schema 2, only user_id and amount", history.schemas[2].select(["user_id", "amount"])),
    ]
    rows = []
    for name, schema in readers:
        fences = check_reader(history, schema)
        outcome = Text("fenced", "bold red") if fences else Text("goes on", "green")
        rows.append((name, outcome, "\n".join(map(str, fences))))
    print_table(("reader of", "outcome", "why"), rows)


def _migrate(history: History) -> None:
    _chapter(4, "Every file ever written stays readable")
    written = pa.RecordBatch.from_pylist(
        [
            {"user": "ada", "at": 0, "amount": 7, "addr": {"city": "Turin", "zip": 10121}, "tags": ["new"]},
            {"user": "bob", "at": 86_400_000_000, "amount": None, "addr": None, "tags": None},
        ],
        schema=arrow_schema(history.schemas[0]),
    )
    read = migrate(written, history.schemas[0], history.latest)
    for title, batch in (("written under schema 0", written), ("read under schema 3", read)):
        rows = [tuple(str(value) for value in row.values()) for row in batch.to_pylist()]
        print_table(batch.schema.names, rows, title=title)


def _order(history: History) -> None:
    _chapter(5, "It is known what a change does to sorted files")
    rows = [
        (
            f"{step} → {step + 1}",
            "stays sorted" if preserves_order(old, new) else "must be sorted again",
            "equal rows may appear" if needs_consolidation(old, new) else "rows stay distinct",
        )
        for step, (old, new) in enumerate(zip(history.schemas, history.schemas[1:], strict=False))
    ]
    print_table(("schema", "a sorted run", "its rows"), rows)


def _chapter(number: int, title: str) -> None:
    console().print(f"\n[bold]{number}. {title}[/bold]\n")

"""The words of schema stories: one table's history, its data and its readers."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pyarrow as pa

from instar.errors import InstarError
from instar.schema import (
    Field,
    History,
    List,
    Map,
    Schema,
    SchemaUpdate,
    Struct,
    Type,
    arrow_schema,
    as_schema,
    check_reader,
    fingerprint,
    format_type,
    migrate,
    needs_consolidation,
    preserves_order,
)
from instar.schema.algebra import member_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

_ID = re.compile(r"(\w+)#(\d+)")


class SchemaWorld:
    """What one story has built so far."""

    def __init__(self) -> None:
        self.history: History | None = None
        self.written: list[tuple[int, pa.RecordBatch]] = []

    def answer(self, command: str) -> str:
        """Carry out one command; an error is an answer too."""
        verb, _, rest = command.partition(" ")
        try:
            return str(getattr(self, f"do_{verb}")(rest)).rstrip()
        except InstarError as error:
            return f"{type(error).__name__}: {error}"

    @property
    def table(self) -> History:
        """The history so far."""
        assert self.history is not None, "the story has no table yet"
        return self.history

    def do_table(self, ddl: str) -> str:
        """`table DDL`: begin a history."""
        self.history = History.start(as_schema(ddl))
        self.written = []
        return self.show()

    def do_evolve(self, steps: str) -> str:
        """`evolve STEP; STEP …`: take steps by path and append the schema that they lead to."""
        update = SchemaUpdate(self.table)
        for step in steps.split("; "):
            self.take(update, step)
        return self.append(update.schema)

    def do_become(self, ddl: str) -> str:
        """`become DDL`: evolve to a schema matched by name."""
        return self.append(SchemaUpdate(self.table).evolve_to(ddl).schema)

    def do_propose(self, text: str) -> str:
        """`propose name#id type, …`: evolve to a schema that says its field ids."""
        return self.append(schema_with_ids(text))

    def do_check(self, ddl: str) -> str:
        """`check DDL`: list every violation, and change nothing."""
        violations = SchemaUpdate(self.table).evolve_to(ddl).check()
        return "\n".join(map(str, violations)) or "may evolve"

    def do_reader(self, text: str) -> str:
        """`reader SCHEMA [column …]`: may a reader of that schema, or of some of its columns, go on?"""
        schema_id, *columns = text.split()
        schema = self.table.schemas[int(schema_id)]
        fences = check_reader(self.table, schema.select(columns) if columns else schema)
        return "\n".join(f"fenced: {fence}" for fence in fences) or "goes on"

    def do_write(self, text: str) -> str:
        """`write SCHEMA JSON …`: write rows under a schema."""
        schema_id, rows = text.split(" ", 1)
        batch = pa.RecordBatch.from_pylist(
            json.loads(f"[{rows}]"), schema=arrow_schema(self.table.schemas[int(schema_id)])
        )
        self.written.append((int(schema_id), batch))
        return f"{batch.num_rows} rows"

    def do_read(self, schema_id: str) -> str:
        """`read SCHEMA`: read everything ever written, under a schema."""
        target = self.table.schemas[int(schema_id)]
        rows = [
            row
            for written_id, batch in self.written
            for row in migrate(batch, self.table.schemas[written_id], target).to_pylist()
        ]
        return "\n".join(json.dumps(row) for row in rows)

    def do_order(self, text: str) -> str:
        """`order OLD NEW [by column …]`: what the migration does to a sorted run."""
        old_id, new_id, *by = text.split()
        old, new = self.table.schemas[int(old_id)], self.table.schemas[int(new_id)]
        order_by = [old.load_column(path).id for path in by[1:]]
        order = "stays sorted" if preserves_order(old, new, order_by) else "is no longer sorted"
        return f"{order}, {'must be consolidated' if needs_consolidation(old, new) else 'rows stay distinct'}"

    def do_ddl(self, text: str) -> str:
        """`ddl TEXT`: read a schema and print it."""
        return str(as_schema(text))

    def do_same(self, text: str) -> str:
        """Compare the fingerprints of two schemas: `same DDL | DDL`."""
        first, second = (fingerprint(as_schema(ddl)) for ddl in text.split(" | "))
        return "same fingerprint" if first == second else "different fingerprints"

    def do_forgotten(self, _: str) -> str:
        """`forgotten`: the ids that the migration type remembers as deleted."""
        return ", ".join(map(str, sorted(self.table.migration_type.deleted_ids()))) or "none"

    def append(self, schema: Schema) -> str:
        """Append a schema to the history."""
        before = self.table
        self.history = before.evolve(schema, "events")
        return "nothing to change" if self.history is before else self.show()

    def show(self) -> str:
        """Print the latest schema with its field ids."""
        lines = "\n".join(_lines(self.table.latest.fields, 1))
        return f"schema {self.table.latest_id}\n{lines}"

    def take(self, update: SchemaUpdate, step: str) -> None:
        """Take one step: `add PATH TYPE [first|before X|after X]`, `drop`, `rename`, `nullable`, `widen`."""
        verb, path, *rest = step.split(" ", 2)
        match verb:
            case "add":
                place = re.fullmatch(r"(.*?)(?: (first)| (before|after) (\S+))?", rest[0])
                assert place is not None
                type_, first, side, sibling = place.groups()
                update.add_column(path, type_, first=bool(first), **({side: sibling} if side else {}))
            case "drop":
                update.drop_column(path)
            case "rename":
                update.rename_column(path, rest[0].removeprefix("to "))
            case "nullable":
                update.make_nullable(path)
            case "widen":
                update.widen_column(path, rest[0].removeprefix("to "))
            case _:
                raise AssertionError(f"no such step: {step}")


def schema_with_ids(text: str) -> Schema:
    """Read `name#id type, …`, where names are unique at all levels."""
    ids = {name: int(field_id) for name, field_id in _ID.findall(text)}
    plain = as_schema(_ID.sub(r"\1", text))

    def number(field: Field) -> Field:
        type_ = field.type
        if isinstance(type_, Struct):
            type_ = Struct(tuple(number(member) for member in type_.fields))
        return Field(ids[field.name], field.name, type_, field.nullable)

    return Schema(tuple(number(field) for field in plain.fields))


def _lines(fields: tuple[Field, ...], depth: int) -> Iterator[str]:
    """Print fields with their ids, one a line, struct members below."""
    for field in fields:
        members = tuple(member_fields(field.type))
        null = "" if field.nullable else " not null"
        yield f"{'  ' * depth}{field.id} {field.name} {_shape(field.type)}{null}"
        yield from _lines(members, depth + 1)


def _shape(type_: Type) -> str:
    """Print a type without the members of its structs."""
    match type_:
        case Struct():
            return "struct"
        case List(element=element) if tuple(member_fields(element)):
            return f"array<{_shape(element)}>"
        case Map(key=key, value=value) if tuple(member_fields(type_)):
            return f"map<{_shape(key)}, {_shape(value)}>"
    return format_type(type_)

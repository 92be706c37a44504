"""A table in plain Python: every update ever made, by field id, and what must be seen of it when.

It shares with instar the words for schemas, and none of the code that stores, plans or reads.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from instar.schema import Field, List, Map, Primitive, Schema, Struct, Type
from tests.properties.schema.checker import expected_fences
from tests.properties.schema.data import migrated_row

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from tests.properties.schema.checker import Stop
    from tests.properties.schema.data import Row, Value

__all__ = ["Model", "Update", "row_key", "value_key"]


class Update(NamedTuple):
    """A row of the schema that it was written under, when it counts, and how often."""

    row: Row
    schema_id: int
    ts: int
    diff: int


class Counted(NamedTuple):
    """One of some equal rows, under the latest schema, and how many there are."""

    row: Row
    times: int


def value_key(value: Value, type_: Type) -> Hashable:
    """Return what makes two values the same: zeros have no sign, NaN is NaN, and maps have no order."""
    if value is None:
        return None
    match type_:
        case Struct(fields=members):
            return row_key(value, members)
        case List(element=element):
            return tuple(value_key(item, element) for item in value)
        case Map(key=key, value=item_type):
            pairs = Counter((value_key(k, key), value_key(item, item_type)) for k, item in value)
            return frozenset(pairs.items())
        case Primitive(name="float" | "double"):
            return "nan" if value != value else value + 0.0  # noqa: PLR0124
    return isinstance(value, bool), value


def row_key(row: Row, fields: tuple[Field, ...]) -> Hashable:
    """Return what makes two rows the same."""
    return tuple(value_key(row[it.id], it.type) for it in fields)


@dataclass
class Model:
    """A table as somebody with perfect memory knows it."""

    schemas: list[Schema]
    updates: list[Update] = field(default_factory=list)

    @property
    def latest(self) -> Schema:
        """The schema that rows are told apart by."""
        return self.schemas[-1]

    def add(self, rows: Iterable[Row], ts: int, diff: int = 1, schema_id: int | None = None) -> None:
        """Add rows under a schema, by default the latest."""
        at = len(self.schemas) - 1 if schema_id is None else schema_id
        self.updates += [Update(row, at, ts, diff) for row in rows]

    def times(self) -> list[int]:
        """Return every time at which something happened."""
        return sorted({update.ts for update in self.updates})

    def counted(self, as_of: int | None = None) -> list[Counted]:
        """Return the rows that are there at a time, under the latest schema, and how often."""
        first: dict[Hashable, Row] = {}
        counts: Counter[Hashable] = Counter()
        for update in self.updates:
            if as_of is None or update.ts <= as_of:
                row = self._seen(update, self.latest)
                key = row_key(row, self.latest.fields)
                first.setdefault(key, row)
                counts[key] += update.diff
        return [Counted(first[key], count) for key, count in counts.items() if count]

    def rows(self, as_of: int, reader: Schema) -> Counter[Hashable]:
        """Return what a reader must see at a time."""
        seen: Counter[Hashable] = Counter()
        for row, count in self.counted(as_of):
            assert count > 0, "the history itself is wrong"
            seen[row_key(migrated_row(row, self.latest.fields, reader.fields), reader.fields)] += count
        return seen

    def changes(self, since: int, reader: Schema) -> Counter[tuple[Hashable, int, int]]:
        """Return what somebody who listens from a time on must be told, in all."""
        return Counter(
            (row_key(self._seen(update, reader), reader.fields), update.ts, update.diff)
            for update in self.updates
            if update.ts >= since
        )

    def fences(self, schema_id: int, reader: Schema) -> list[Stop]:
        """Return why a reader of a schema of the history, or a projection of it, is fenced."""
        return expected_fences(self.schemas, schema_id, reader)

    def _seen(self, update: Update, reader: Schema) -> Row:
        return migrated_row(update.row, self.schemas[update.schema_id].fields, reader.fields)

"""`History`: the schemas of one table, first to latest, and the fold of them all.

A history only grows, by schemas that obey the rules; position is the schema id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from instar.errors import IncompatibleSchemaError
from instar.schema.migration_type import MigrationType
from instar.schema.rules import Change, compare

if TYPE_CHECKING:
    from instar.schema.schema import Schema

__all__ = ["History"]


class History(NamedTuple):
    """Every schema that a table has had; never empty."""

    schemas: tuple[Schema, ...]
    migration_type: MigrationType

    @staticmethod
    def start(schema: Schema) -> History:
        """Begin with schema 0."""
        return History((schema,), MigrationType.start(schema))

    @staticmethod
    def fold(schemas: tuple[Schema, ...]) -> History:
        """Rebuild a history from schemas that were accepted before: no rule is checked again."""
        folded = MigrationType.start(schemas[0])
        for schema in schemas[1:]:
            folded = folded.extend(schema)
        return History(schemas, folded)

    @property
    def latest(self) -> Schema:
        """The schema that new readers and writers use."""
        return self.schemas[-1]

    @property
    def latest_id(self) -> int:
        """The id of the latest schema."""
        return len(self.schemas) - 1

    @property
    def next_field_id(self) -> int:
        """An id that was never used at any level of any schema."""
        used = self.migration_type.live_ids() | self.migration_type.deleted_ids()
        return max(used) + 1

    def compare(self, schema: Schema) -> tuple[Change, ...]:
        """Name every change that a schema would make."""
        return compare(self.migration_type, schema)

    def check(self, schema: Schema) -> tuple[Change, ...]:
        """Return every violation of the rules, not only the first; empty means that it may evolve."""
        return tuple(change for change in self.compare(schema) if not change.permitted)

    def evolve(self, schema: Schema, table: str | None = None) -> History:
        """Append a schema, or raise with every violation. The latest schema again changes nothing."""
        if schema == self.latest:
            return self
        violations = self.check(schema)
        if violations:
            raise IncompatibleSchemaError(table, violations)
        return History((*self.schemas, schema), self.migration_type.extend(schema))

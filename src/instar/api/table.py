"""`Table`: one table, through a handle that always answers for the present."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from instar.schema import Schema, SchemaUpdate, as_schema
from instar.schema.matching import match_by_name
from instar.state import (
    Appended,
    Checkpointed,
    Compacted,
    Configured,
    Created,
    Dropped,
    Evolved,
    SinceAdvanced,
)
from instar.state.commands import configure, evolve
from instar.table import VacuumReport, vacuum_table

if TYPE_CHECKING:
    from instar.schema import SchemaLike
    from instar.state import ConfigValue, Step, TableState
    from instar.table import Entry, Services, TableLog

__all__ = ["GRACE_MS", "CommitInfo", "Table"]

GRACE_MS: Final = 24 * 60 * 60 * 1000
"""What a vacuum leaves alone unless told otherwise: everything younger than a day."""


class CommitInfo(NamedTuple):
    """One line of a table's log: who did what, when, under which schema."""

    seqno: int
    at: datetime
    by: str
    what: str
    schema_id: int | None
    commit_id: str


class Table:
    """One table. What it answers is true at the moment of the call; a snapshot stays as it is."""

    def __init__(self, services: Services, log: TableLog) -> None:
        self._services = services
        self._log = log

    @property
    def name(self) -> str:
        """The table's name."""
        return self._log.name

    @property
    def state(self) -> TableState:
        """The durable state, as of now."""
        return self._log.load()

    @property
    def schema(self) -> Schema:
        """The latest schema."""
        return self.state.history.latest

    @property
    def schemas(self) -> tuple[Schema, ...]:
        """Every schema that the table has had; its position is its id."""
        return self.state.history.schemas

    @property
    def upper(self) -> int:
        """All times before this are complete."""
        return self.state.upper

    @property
    def since(self) -> int:
        """Times before this may have been merged together."""
        return self.state.since

    def evolve(self) -> SchemaUpdate:
        """Begin a change of schema: add steps, then `commit()`."""
        state = self.state
        history = state.history
        return SchemaUpdate(
            history, lambda schema: self._evolve(history.latest_id, schema, state.table_id), self.name
        )

    def compare_and_evolve_schema(self, expected_id: int | None, schema: SchemaLike) -> int:
        """Make a schema the latest if `expected_id` is, and return its id.

        A `Schema` is taken by its field ids; every other form is matched by name. The latest schema again
        changes nothing. After a lost reply the commit is looked for, so a retry finds its own success.
        """
        return self._evolve(expected_id, schema)

    def configure(self, **options: ConfigValue | None) -> None:
        """Set options of the table, or with None take them back."""
        self._log.commit(lambda state: configure(self._log.check_exists(state), options))

    def history(self) -> list[CommitInfo]:
        """Return the commits of the log, newest first, as far back as it has not been truncated."""
        return [_describe(entry) for entry in reversed(list(self._log.entries()))]

    def vacuum(self, *, grace_ms: int = GRACE_MS, dry_run: bool = False) -> VacuumReport:
        """Delete what nothing can reach any more and is older than the grace period, in milliseconds."""
        return vacuum_table(self._services, self.name, grace_ms=grace_ms, dry_run=dry_run)

    def _evolve(self, expected_id: int | None, schema: SchemaLike, table_id: str | None = None) -> int:
        def decide(state: TableState | None) -> tuple[Step, ...]:
            current = self._log.check_exists(state, table_id)
            return evolve(current, expected_id, self._resolve(current, schema))

        state, entry = self._log.commit(decide)
        # The state may be newer than the commit; without a commit, it is the one that was decided on.
        found = None if entry is None else _schema_id(entry.commit.steps)
        return state.history.latest_id if found is None else found

    def _resolve(self, state: TableState, schema: SchemaLike) -> Schema:
        if isinstance(schema, Schema):
            return schema
        ids = iter(range(state.history.next_field_id, 2**31))
        return Schema(match_by_name(state.history.latest.fields, as_schema(schema).fields, ids))

    def __repr__(self) -> str:
        return f"Table({self.name!r})"


def _describe(entry: Entry) -> CommitInfo:
    commit = entry.commit
    what = "; ".join(_describe_step(step) for step in commit.steps)
    at = datetime.fromtimestamp(commit.at / 1000, UTC)
    return CommitInfo(entry.seqno, at, commit.by, what, _schema_id(commit.steps), commit.id)


def _describe_step(step: Step) -> str:
    match step:
        case Created():
            return "created"
        case Evolved(schema_id=schema_id):
            return f"evolved to schema {schema_id}"
        case Appended(batch=batch):
            return f"appended {batch.rows} rows at {batch.upper - 1}"
        case Compacted(removed=removed, batch=batch):
            return f"compacted {len(removed)} parts" + ("" if batch is None else f" into {batch.part_count}")
        case SinceAdvanced(since=since):
            return f"advanced since to {since}"
        case Configured(options=options):
            return "configured " + ", ".join(f"{name}={value}" for name, value in options.items())
        case Checkpointed():
            return "checkpointed"
        case Dropped():
            return "dropped"


def _schema_id(steps: tuple[Step, ...]) -> int | None:
    for step in steps:
        match step:
            case Created():
                return 0
            case Evolved(schema_id=schema_id):
                return schema_id
            case Appended(batch=batch):
                return batch.schema_id
    return None

"""Random histories: appends, changes, upserts and evolutions, done to a real table and to the model alike.

Data comes to the table in every form that it takes; who can make a Spark frame gives it as another form.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from instar.api.store import Store
from instar.api.table import Table
from instar.errors import UsageError
from instar.parts import DIFF, TS, PartLimits
from instar.schema import List, Map, Primitive, Schema, Struct
from instar.schema.algebra import member_fields, walk_fields
from instar.schema.paths import quote_name
from instar.schema.schema import number_fields
from instar.table import create_table, vacuum_table
from instar.table.housekeeping.compaction import compact_table, find_goals
from instar.table.housekeeping.rewrite import rewrite_parts
from instar.table.write.append import begin_write, move_since
from instar.table.write.store import LocalRows
from tests.properties.schema.data import batch_of, random_rows
from tests.properties.schema.strategies import Ids, draw_fields, draw_legal
from tests.properties.tables.model import Model, row_key, value_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import DrawFn
    from pyspark.sql import SparkSession

    from instar.schema import Field, Type
    from instar.table import Services, TableLog
    from instar.table.housekeeping.rewrite import Output, Work
    from tests.properties.schema.data import Row

__all__ = ["SMALL", "History", "as_arrow", "as_pandas", "draw_history", "updates_table"]

SMALL = PartLimits(file_bytes=8192, buffer_bytes=1024)
"""Parts of a few rows, so that every table has many."""

Form = Callable[[pa.Table, Schema], object]
"""Makes what a user would give from rows in the layout of a schema, perhaps with `_ts` and `_diff`."""


def as_arrow(table: pa.Table, _: Schema) -> object:
    """Give the rows as a reader that can be read once."""
    return table.to_reader()


def as_pandas(table: pa.Table, _: Schema) -> object:
    """Give the rows as a pandas frame whose columns are Arrow's."""
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def updates_table(
    rows: Sequence[Row],
    schema: Schema,
    random: Random,
    *,
    ts: Sequence[int] | None = None,
    diffs: Sequence[int] | None = None,
) -> pa.Table:
    """Lay rows out in several batches, with times and diffs where they are given."""
    cut = random.randint(0, len(rows))
    batches = [batch_of(piece, schema, random) for piece in (rows[:cut], rows[cut:])]
    table = pa.Table.from_batches(batches)
    for name, values in ((TS, ts), (DIFF, diffs)):
        if values is not None:
            table = table.append_column(name, pa.array(np.array(values, np.int64)))
    return table


class _CrashError(Exception):
    """A process has ended, as far as the table can tell."""


class History:
    """A table, its model, and what can happen to both."""

    def __init__(
        self, table: Table, model: Model, ids: Ids, seed: int, forms: Sequence[Form] = (as_arrow, as_pandas)
    ) -> None:
        self.table = table
        self.model = model
        self.ids = ids
        self.random = Random(seed)
        self.forms = forms
        self.folder = TemporaryDirectory(prefix="instar-adopted-")
        self.others: list[History] = []
        """Tables that this one is a clone of: nothing happens to their rows any more."""

    def give(self, table: pa.Table, schema: Schema) -> object:
        """Give rows in one of the forms."""
        return self.random.choice(self.forms)(table, schema)

    def new_rows(self, schema: Schema, most: int = 8) -> list[Row]:
        """Draw rows; some are there already, and some come twice."""
        rows = random_rows(self.random, schema, self.random.randint(0, most))
        if schema == self.model.latest:
            here = [row for row, _ in self.model.counted()]
            rows += self.random.sample(here, min(len(here), self.random.randint(0, 2)))
        return rows + rows[: self.random.choice((0, 0, 1))]

    def append(self, schema_id: int) -> None:
        """Append under any schema of the history; what a later schema has dropped is null."""
        schema_id %= len(self.model.schemas)
        schema = self.model.schemas[schema_id]
        live = set(self.model.latest.field_ids())
        rows = [_without_dropped(row, schema.fields, live) for row in self.new_rows(schema)]
        if any(row is None for row in rows):
            schema_id, schema = len(self.model.schemas) - 1, self.model.latest
            rows = list(self.new_rows(schema))
        kept: list[Row] = [row for row in rows if row is not None]
        data = self.give(updates_table(kept, schema, self.random), schema)
        commit = self.table.append(data, schema=schema_id)
        assert (commit.rows, commit.schema_id) == (len(kept), schema_id)
        self.model.add(kept, commit.ts, schema_id=schema_id)

    def apply(self, spread: int) -> None:
        """Retract some of the rows that are there and add others, at up to so many times of their own."""
        latest = self.model.latest
        here = self.model.counted()
        gone = [(row, -self.random.randint(1, count)) for row, count in here if self.random.random() < 0.4]
        new = [(row, self.random.choice((1, 1, 1, 2))) for row in self.new_rows(latest, 5)]
        changes = self.random.sample(gone + new, len(gone + new))
        rows, diffs = [row for row, _ in changes], [diff for _, diff in changes]
        first = self.table.upper + self.random.randint(0, 2)
        ts = [first + self.random.randrange(spread) for _ in rows] if spread else None
        data = self.give(updates_table(rows, latest, self.random, ts=ts, diffs=diffs), latest)
        commit = self.table.apply(data)
        for row, at, diff in zip(rows, ts or [commit.ts] * len(rows), diffs, strict=True):
            self.model.add([row], at, diff)

    def upsert(self) -> None:
        """Replace rows by others of the same key, and add some."""
        latest = self.model.latest
        key_ids = set(self.table.state.key)
        key = [it for it in latest.fields if it.id in key_ids]
        here = self.model.counted()
        rows: dict[object, Row] = {}
        for drawn in self.new_rows(latest, 4):
            row = dict(drawn)  # the same row may be drawn twice
            if here and self.random.random() < 0.5:
                same = self.random.choice(here).row
                row.update({it.id: same[it.id] for it in key})
            rows[row_key(row, tuple(key))] = row
        commit = self.table.upsert(self.give(updates_table(list(rows.values()), latest, self.random), latest))
        for row, count in here:
            if row_key(row, tuple(key)) in rows:
                self.model.add([row], commit.ts, -count)
        self.model.add(rows.values(), commit.ts)

    def delete(self, session: SparkSession | None = None) -> None:
        """Delete the rows that have, or have not, a value in a column, with Spark or without."""
        field = self.random.choice(self.model.latest.fields)
        null = self.random.random() < 0.5
        where = f"{quote_name(field.name)} is {'' if null else 'not '}null"
        try:
            commit = self.table.delete(where, session)
        except UsageError:
            assert session is None  # not every type can be told to be null without Spark
            return
        for row, count in self.model.counted():
            if (row[field.id] is None) == null:
                self.model.add([row], commit.ts, -count)

    def times(self) -> list[int]:
        """Return every time at which something happened and that can still be read."""
        return [at for at in self.model.times() if at >= self.table.since]

    def adopt(self) -> None:
        """Take a file that somebody else wrote, with the columns of the latest schema."""
        latest = self.model.latest
        rows = self.new_rows(latest)
        file = Path(self.folder.name) / f"{len(list(Path(self.folder.name).iterdir()))}.parquet"
        pq.write_table(
            updates_table(rows, latest, self.random),
            file,
            row_group_size=self.random.choice((2, 100)),
            store_decimal_as_integer=self.random.random() < 0.5,
            use_dictionary=self.random.random() < 0.5,
        )
        assert self.table.adopt(file).rows == len(rows)
        assert self.table.adopt(file).known == 1
        self.model.add(rows, self.table.upper - 1)

    def care(self, what: str, session: SparkSession | None = None) -> None:
        """Do what no reader may notice."""
        services, log = self.table._services, self.table._log
        match what:
            case "compact":
                self.table.compact(session, full=self.random.random() < 0.5)
            case "analyze":
                self.table.analyze()
            case "since":
                move_since(log, self.random.choice([self.table.since, *self.times()]))
            case "vacuum":
                for table in (self.table, *(other.table for other in self.others)):
                    vacuum_table(services, table._log.key, grace_ms=-(10**13))
            case "clone":
                self._clone()
            case "rename":
                name = f"{self.table.name}r"
                Store(services.blob.url, services).rename_table(self.table.name, name)
            case "cluster":
                simple = [it for it in self.model.latest.fields if isinstance(it.type, Primitive)]
                chosen = self.random.sample(simple, min(len(simple), self.random.randint(0, 2)))
                self.table.configure(cluster_by=[quote_name(it.name) for it in chosen] or None)
            case "crash":
                with suppress(_CrashError):
                    self._crash(services, log)

    def _clone(self) -> None:
        """Go on with a clone; the other table may be compacted, or dropped, but its rows stay as they are."""
        other = History(self.table, Model(list(self.model.schemas), list(self.model.updates)), self.ids, 0)
        name = f"{self.table.name}c"
        self.table = self.table.clone(name)
        match self.random.choice(("keep", "keep", "compact", "drop")):
            case "keep":
                self.others.append(other)
            case "compact":
                self.others.append(other)
                other.table.compact(full=True)
            case "drop":
                services = other.table._services
                Store(services.blob.url, services).drop_table(other.table.name)
                vacuum_table(services, other.table._log.key, grace_ms=-(10**13))

    def restore(self) -> None:
        """Make the rows what they were at some time."""
        as_of = self.random.choice(self.times() or [self.table.upper - 1])
        now, then = self.model.counted(), self.model.counted(as_of)
        commit = self.table.restore(as_of)
        for counted, sign in ((now, -1), (then, 1)):
            for row, count in counted:
                self.model.add([row], commit.ts, sign * count)

    def purge(self, session: SparkSession | None = None) -> None:
        """Let rows leave the bytes that have, or have not, a value in a column."""
        field = self.random.choice(self.model.latest.fields)
        null = self.random.random() < 0.5
        where = f"{quote_name(field.name)} is {'' if null else 'not '}null"
        try:
            self.table.purge(where=where, spark=session)
        except UsageError:
            return  # not every type can be told to be null without Spark
        for row, count in self.model.counted():
            if (row[field.id] is None) == null:
                self.model.add([row], self.table.since, -count)

    def _crash(self, services: Services, log: TableLog) -> None:
        """End after files were written and before anything was committed."""

        def rewrite(work: Work) -> list[Output]:
            list(rewrite_parts(work))
            raise _CrashError

        if self.random.random() < 0.5:
            compact_table(services, log, rewrite, goals=partial(find_goals, full=True))
        else:
            latest = self.model.latest
            rows = updates_table(self.new_rows(latest), latest, self.random)
            with begin_write(services, log) as writer:
                list(LocalRows(rows).store(writer.plan(latest), updates=False))
                raise _CrashError

    def update(self, session: SparkSession | None = None) -> None:
        """Set a column to null, or to another of its type, in rows that have, or have not, a value."""
        latest = self.model.latest
        asked = self.random.choice(latest.fields)
        null = self.random.random() < 0.5
        into = self.random.choice(latest.fields)
        same = [it for it in latest.fields if it.type == into.type and it.nullable <= into.nullable]
        source = self.random.choice([*same, None] if into.nullable else same)
        value = "null" if source is None else quote_name(source.name)
        where = f"{quote_name(asked.name)} is {'' if null else 'not '}null"
        try:
            commit = self.table.update({quote_name(into.name): value}, where, session)
        except UsageError:
            assert session is None  # not every type can be worked out without Spark
            return
        for row, count in self.model.counted():
            if (row[asked.id] is None) == null:
                self.model.add([row], commit.ts, -count)
                other = row | {into.id: None if source is None else row[source.id]}
                self.model.add([other], commit.ts, count)

    def merge(self) -> None:
        """Merge rows by one column: others of the same value go or change, and what is new is added."""
        latest = self.model.latest
        on = self.random.choice([it for it in latest.fields if not _has_map(it.type)] or [None])
        if on is None:
            return
        here = self.model.counted()
        given: dict[object, Row] = {}
        for drawn in self.new_rows(latest, 4):
            row = drawn | ({on.id: self.random.choice(here).row[on.id]} if here else {})
            chosen = row if self.random.random() < 0.5 else drawn
            given[value_key(chosen[on.id], on.type)] = chosen
        asked = self.random.choice(latest.fields)
        goes = f"target.{quote_name(asked.name)} is null"
        data = self.give(updates_table(list(given.values()), latest, self.random), latest)
        merge = self.table.merge(data, [quote_name(on.name)])
        merge = merge.when_matched_delete(goes).when_matched_update().when_not_matched_insert()
        sweeps = self.random.random() < 0.3
        try:
            commit = (merge.when_not_matched_by_source_delete(goes) if sweeps else merge).execute()
        except UsageError:
            assert not hasattr(data, "sparkSession")  # not every type can be worked out without Spark
            return
        new = dict(given)
        for row, count in here:
            partner = given.get(value_key(row[on.id], on.type))
            new.pop(value_key(row[on.id], on.type), None)
            if row[asked.id] is None and (partner is not None or sweeps):
                self.model.add([row], commit.ts, -count)
            elif partner is not None:
                self.model.add([row], commit.ts, -count)
                self.model.add([partner], commit.ts, count)
        self.model.add(new.values(), commit.ts)

    def evolve(self, schema: Schema) -> None:
        """Make a schema the latest."""
        latest_id = len(self.model.schemas) - 1
        kept = set(schema.field_ids())
        if schema != self.model.latest and kept.issuperset(self.table.state.key):
            assert self.table.compare_and_evolve_schema(latest_id, schema) == latest_id + 1
            self.model.schemas.append(schema)


def _without_dropped(row: Row, fields: tuple[Field, ...], live: set[int]) -> Row | None:
    """Return a row without values that nobody could read, or None if there must be one."""
    found: Row = {}
    for it in fields:
        value = row[it.id]
        if it.id not in live:
            if not it.nullable:
                return None
            value = None
        elif not _is_whole(it.type, live) and value is not None:
            if not isinstance(it.type, Struct):
                return None
            value = _without_dropped(value, it.type.fields, live)
            if value is None:
                return None
        found[it.id] = value
    return found


def _is_whole(type_: Type, live: set[int]) -> bool:
    """Whether everything inside a type is still there."""
    return all(it.id in live for it in walk_fields(tuple(member_fields(type_))))


def _has_map(type_: Type) -> bool:
    match type_:
        case Map():
            return True
        case List(element=element):
            return _has_map(element)
        case Struct(fields=members):
            return any(_has_map(member.type) for member in members)
    return False


def draw_history(
    data: st.DataObject,
    services: Services,
    forms: Sequence[Form] = (as_arrow, as_pandas),
    *,
    depth: int = 2,
    most: int = 7,
    name: str = "table",
    session: SparkSession | None = None,
    care: bool = False,
    check: Callable[[History], None] = lambda _: None,
) -> History:
    """Draw a table and let some things happen to it.

    With `care`, it is also compacted and vacuumed, adopts files, and sees crashes. `check` follows each step.
    """
    draw = cast("DrawFn", data.draw)
    ids = Ids(draw(st.sampled_from((1, 7, 4321))), 0)
    first = Schema(number_fields(draw_fields(draw, ids, depth, most=4)))
    ids.last = 5000
    names = [quote_name(it.name) for it in first.fields if not _has_map(it.type)]
    chosen = st.lists(st.sampled_from(names), max_size=2, unique=True) if names else st.just([])
    order_by, key = draw(chosen), draw(chosen)
    log = create_table(services, name, first, order_by=order_by, key=key)
    history = History(Table(services, log), Model([first]), ids, draw(st.integers(0, 2**32 - 1)), forms)
    steps = ["append", "append", "apply", "apply", "evolve", "evolve", *["upsert"] * bool(key)]
    steps += ["delete", "update", "merge", "restore"]
    if care:
        steps += [
            "adopt",
            "adopt",
            *["compact"] * 4,
            "analyze",
            "since",
            "vacuum",
            "vacuum",
            "crash",
            "crash",
            "clone",
            "clone",
            "rename",
            "cluster",
            "purge",
        ]
    history.append(0)
    for step in draw(st.lists(st.sampled_from(steps), min_size=2, max_size=most)):
        match step:
            case "append":
                history.append(draw(st.sampled_from([*range(len(history.model.schemas)), -1])))
            case "apply":
                history.apply(draw(st.sampled_from((0, 0, 1, 3))))
            case "evolve":
                history.evolve(draw_legal(draw, history.model.latest, ids))
            case "upsert" | "merge" | "adopt" | "restore":
                getattr(history, step)()
            case "delete" | "update" | "purge":
                getattr(history, step)(draw(st.sampled_from((session, None))))
            case _:
                history.care(step, draw(st.sampled_from((session, None))))
        check(history)
    return history

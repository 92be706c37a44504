"""What children do while they are killed, or beside one another, and how a table is looked at after that."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import instar
import instar.storage.postgres  # before the first fork, although only some need it
from instar.table import begin_write
from instar.table.log import rollup, table_log
from instar.table.write import append
from testbed.changing import change_for_ever, change_many, look_at_changes, prepare_changes
from testbed.nursery import serve
from tests.crash.ahead import import_ahead
from tests.tables import all_rows, find_missing, make_parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.api import Table
    from instar.storage import AppendResult, Consensus
    from instar.storage.blob import Data
    from testbed.nursery import Task

TABLE = "events"
ROWS = "rows"


def open_table(task: Task) -> Table:
    """Open the store, and its only table; the first one to come creates both."""
    store = instar.open(task["location"], consensus=task["consensus"], options=task["options"])
    if TABLE not in store.tables():
        return store.create_table(TABLE, "n int")
    return store.table(TABLE)


def append_one(table: Table, name: str, count: int = 1) -> None:
    """Append parts in one commit, the last of them with a name."""
    services, table_log = table._services, table._log
    with begin_write(services, table_log) as writer:
        state = table_log.load()
        parts = make_parts(state.table_id, writer.write_id, count)
        parts[-1] = type(parts[-1])(parts[-1].key, 1, 1, last_row=name.encode())
        for part in parts:
            services.blob.put(part.key, b"x")
        writer.append(parts, state.history.latest_id)


def work_for_ever(task: Task, say: Callable[[str], None]) -> None:
    """Commit all sorts of things, and say of each that it is done once it is."""
    for module, constant, value in (
        (append, "INLINE_PARTS", 2),
        (table_log, "ROLLUP_EVERY", 4),
        (rollup, "MAX_CHUNK_PARTS", 8),
    ):
        assert hasattr(module, constant)
        setattr(module, constant, value)
    chance = random.Random(task["seed"])
    table = open_table(task)
    for number in range(1_000_000):
        name = f"{task['seed']}-{number}"
        match chance.choices(["append", "many", "evolve", "checkpoint", "vacuum"], [10, 3, 3, 1, 1])[0]:
            case "append":
                append_one(table, name)
                say(f"part {name}")
            case "many":
                append_one(table, name, 5)
                say(f"part {name}")
            case "evolve":
                column = f"c{task['seed']}_{number}"
                table.evolve().add_column(column, "int").commit()
                say(f"column {column}")
            case "checkpoint":
                table._log.checkpoint()
            case "vacuum":
                table.vacuum(grace_ms=0)


def open_rows(task: Task) -> Table:
    """Open the store, and its table of real rows."""
    store = instar.open(task["location"], consensus=task["consensus"], options=task["options"])
    if ROWS not in store.tables():
        return store.create_table(ROWS, "n bigint", order_by=["n"])
    return store.table(ROWS)


def compact_for_ever(task: Task, say: Callable[[str], None]) -> None:
    """Compact again and again, with some writes in between; say what is about to go, and what is done."""
    chance = random.Random(task["seed"])
    table = open_rows(task)
    for number in range(1_000_000):
        match chance.choices(["append", "delete", "compact", "vacuum"], [4, 2, 6, 1])[0]:
            case "append":
                name = task["seed"] * 1_000_000 + number
                table.append(pa.table({"n": [name]}))
                say(f"row {name}")
            case "delete" if table.state.totals.rows:
                here = table.snapshot().to_arrow()["n"].to_pylist()
                name = chance.choice(here) if here else -1
                say(f"going {name}")
                table.delete(f"n = {name}")
                say(f"gone {name}")
            case "compact":
                table.compact(full=chance.random() < 0.7)
            case "vacuum":
                table.vacuum(grace_ms=0)


def look_at_rows(task: Task) -> dict[str, Any]:
    """Say how often each row is there, before and after another compaction."""
    table = open_rows(task)
    before = Counter(table.snapshot().to_arrow()["n"].to_pylist())
    table.compact(full=True)
    return {"rows": before, "same": before == Counter(table.snapshot().to_arrow()["n"].to_pylist())}


def commit_many(task: Task) -> dict[str, Any]:
    """Commit a number of times beside others, and count how often each was tried."""
    table = open_table(task)
    counting = Counting(table._services.consensus)
    object.__setattr__(table._services, "consensus", counting)
    table._services.__dict__["patience"] = 600.0
    for number in range(task["count"]):
        append_one(table, f"{task['seed']}-{number}")
    table._services.close()
    return {"attempts": counting.attempts}


class Counting:
    """A consensus that counts appends."""

    def __init__(self, consensus: Consensus) -> None:
        self._consensus = consensus
        self.attempts = 0

    def append(self, key: str, expected_seqno: int | None, data: Data) -> AppendResult:
        """Count, and append."""
        self.attempts += 1
        return self._consensus.append(key, expected_seqno, data)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the real one has
        return getattr(self._consensus, name)


def look(task: Task) -> dict[str, Any]:
    """Say what is in the table: how often each name is there, and the columns; and what is missing."""
    table = open_table(task)
    with table._log.pinned() as state:
        rows = all_rows(table._services, state).values()
        missing = find_missing(table._services, state)
    names = Counter(row["last_row"].decode() for row in rows if row["last_row"] is not None)
    return {"names": names, "columns": table.schema.names, "missing": missing}


def _try_everything() -> None:
    """Do what children do, once, in a place that nobody else sees."""
    task = {"location": "memory://", "consensus": None, "options": None}
    append_one(open_table(task), "a")
    open_rows(task)
    table = instar.open("memory://").create_table("t", "who int, n int", key=["n"])
    table.append(pa.table({"n": pa.array([1, 2], pa.int32())}))
    table.upsert(pa.table({"n": pa.array([1], pa.int32())}))
    table.update({"who": "n + 1"}, "n in (1, 3)")
    table.delete("who = 0 and n = 2")
    table.evolve().add_column("c", "int").commit()
    table.compact(full=True)
    table.vacuum(grace_ms=0)
    table.snapshot(columns=["n"]).to_arrow()


if __name__ == "__main__":
    import_ahead(_try_everything)
    serve(
        {
            "look": look,
            "rows": look_at_rows,
            "commit": commit_many,
            "prepare": prepare_changes,
            "change": change_many,
            "look at changes": look_at_changes,
        },
        {"commits": work_for_ever, "changes": change_for_ever, "compaction": compact_for_ever},
    )

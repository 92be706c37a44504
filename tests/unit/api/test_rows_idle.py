"""Changes that change no row: nothing is written, nobody hears of it, and the answer says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar import Commit
from instar.errors import ColumnNotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar import Store, Table

NOBODY = pa.table({"id": pa.array([], pa.int64()), "s": pa.array([], pa.string())})
STRANGER = pa.table({"id": [99], "s": ["z"]})

CHANGES: dict[str, Callable[[Table], Commit]] = {
    "delete": lambda table: table.delete("id > 10"),
    "update": lambda table: table.update({"s": "'x'"}, "id > 10"),
    "upsert": lambda table: table.upsert(NOBODY),
    "overwrite": lambda table: table.overwrite(NOBODY, "id > 10"),
    "restore": lambda table: table.restore(version=table.state.seqno),
    "merge of nothing": lambda table: (
        table.merge(NOBODY, ["id"]).when_matched_update().when_not_matched_insert().execute()
    ),
    "merge of strangers": lambda table: (
        table.merge(STRANGER, ["id"]).when_matched_update().when_matched_delete().execute()
    ),
    "merge by source": lambda table: (
        table.merge(STRANGER, ["id"]).when_not_matched_by_source_delete("target.s = 'x'").execute()
    ),
}


@pytest.fixture
def table(store: Store) -> Table:
    """Return a table of four rows, of which one is retracted by value."""
    table = store.create_table("t", "id bigint, s string", key=["id"])
    table.append([{"id": id_, "s": "a"} for id_ in range(4)])
    table.apply([{"id": 3, "s": "a", "_diff": -1}])
    return table


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_changes_no_row_writes_nothing(table: Table, change: Callable[[Table], Commit]) -> None:
    """There is no version and no time that would be new, and the answer names those that were found."""
    before = table.state
    listen = table.listen(timeout=0)
    assert change(table) == Commit(before.seqno, before.upper - 1, 0, 0)
    assert table.state == before
    assert table.history()[0].seqno == before.seqno
    assert next(listen, None) is None


def test_what_changes_no_row_is_checked_all_the_same(table: Table) -> None:
    """A mistake is told, whether or not there are rows that it would concern."""
    seqno = table.state.seqno
    with pytest.raises(ColumnNotFoundError):
        table.delete("nobody = 1")
    with pytest.raises(ColumnNotFoundError):
        table.update({"nobody": "1"}, "id > 10")
    with pytest.raises(UsageError, match="more than once"):
        table.upsert(pa.table({"id": [99, 99], "s": ["y", "z"]}))
    assert table.state.seqno == seqno


def test_an_empty_upsert_may_still_evolve(table: Table) -> None:
    """The new column is what it was called for."""
    before = table.state.seqno
    commit = table.upsert(NOBODY.append_column("n", pa.array([], pa.int32())), evolve=True)
    assert (commit.seqno, commit.schema_id, commit.rows) == (before + 1, 1, 0)
    assert table.schema.names == ("id", "s", "n")
    again = table.upsert(NOBODY.append_column("n", pa.array([], pa.int32())), evolve=True)
    assert again == commit


def test_an_append_without_rows_remembers_its_token(table: Table) -> None:
    """Its retry does nothing, although it may find rows by then."""
    commit = table.append(NOBODY, token="monday")
    table.append(STRANGER)
    assert table.append(STRANGER, token="monday") == commit
    assert table.count() == 4

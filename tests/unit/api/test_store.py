"""Opening stores: nothing is created by looking, and nobody looks for logs in the wrong place."""

from __future__ import annotations

import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow as pa
import pytest

from instar.api import open_store
from instar.errors import (
    InvalidNameError,
    SchemaMismatchError,
    StorageTimeoutError,
    StoreNotFoundError,
    TableNotFoundError,
    UsageError,
)
from instar.storage import open_blob
from instar.table import TableLog
from instar.table.layout import MARKER
from tests.faults import Faults, Outcome, UnreliableBlob
from tests.tables import append_parts, small_numbers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from instar.api import Table


def memory() -> str:
    """Name a place in memory that nobody else uses."""
    return f"memory://{uuid.uuid4().hex}"


def test_looking_creates_nothing(tmp_path: Path) -> None:
    """Neither opening, nor listing, nor asking for a table, nor a vacuum makes even a directory."""
    place = tmp_path / "lake"
    with open_store(place) as store:
        assert store.tables() == []
        assert store.find_tables() == []
        with pytest.raises(TableNotFoundError):
            store.table("events")
        with pytest.raises(TableNotFoundError):
            store.drop_table("events")
        assert store.vacuum(grace_ms=0).objects == 0
    assert not place.exists()
    with pytest.raises(StoreNotFoundError):
        open_store(place, create=False)
    assert not place.exists()


def test_the_first_table_makes_the_store(tmp_path: Path) -> None:
    """From then on it can be opened as one that must be there."""
    with open_store(tmp_path / "lake") as store:
        store.create_table("a/b", "n int")
    with open_store(tmp_path / "lake", create=False) as store:
        assert store.tables() == ["a/b"]
        assert store.tables("a/") == ["a/b"]
        assert store.tables("b") == []


def test_a_place_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    """A store does not move in with others."""
    (tmp_path / "letter.txt").write_text("dear reader")
    with pytest.raises(UsageError, match="not an instar store"):
        open_store(tmp_path)


def test_a_store_that_appears_while_it_is_opened_is_not_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes that are the first at the same time both get in."""
    blob = open_blob(tmp_path / "lake")

    def after(operation: str, key: str) -> None:
        if operation == "find" and key == MARKER:
            faults.after = None
            open_store(tmp_path / "lake").create_table("theirs", "n int")

    faults = Faults(after=after)
    monkeypatch.setattr("instar.table.opening.open_blob", lambda *_: UnreliableBlob(blob, faults))
    with open_store(tmp_path / "lake") as store:
        assert store.tables() == ["theirs"]
        store.create_table("mine", "n int")
    assert open_store(tmp_path / "lake").tables() == ["mine", "theirs"]


def test_a_handle_from_before_the_store_existed_finds_it() -> None:
    """Whoever opened the empty place sees what another has created there since, and adds to it."""
    place, logs = memory(), memory()
    early, late = open_store(place, consensus=logs), open_store(place, consensus=logs)
    early.create_table("first", "n int")
    assert late.tables() == ["first"]
    assert late.table("first").name == "first"
    other = open_store(place, consensus=logs)
    other.create_table("second", "n int")
    late.create_table("third", "n int")
    assert early.tables() == ["first", "second", "third"]


def test_many_who_create_the_first_table_at_once_share_one_store() -> None:
    """Their tables are all there, whoever wrote the marker."""
    place, logs = memory(), memory()
    stores = [open_store(place, consensus=logs) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: stores[number].create_table(f"t{number}", "n int"), range(8)))
    for store in [*stores, open_store(place, consensus=logs)]:
        assert store.tables() == [f"t{number}" for number in range(8)]
    assert [stores[0].initialise(), open_store(memory()).initialise()] == [False, True]


def test_logs_are_not_looked_for_in_the_wrong_place() -> None:
    """A store whose logs are elsewhere would seem empty: the marker says where they are."""
    place, logs = memory(), memory()
    open_store(place, consensus=logs).create_table("events", "n int")
    with pytest.raises(UsageError, match="keeps its logs in memory"):
        open_store(place)
    with pytest.raises(UsageError, match="not in the one given"):
        open_store(place, consensus=memory())
    inside = memory()
    open_store(inside).create_table("events", "n int")
    with pytest.raises(UsageError, match="in the store itself"):
        open_store(inside, consensus=logs)


def test_whoever_loses_the_race_for_the_marker_with_other_logs_is_told() -> None:
    """Two who open an empty place with different services do not both keep logs for it."""
    place, first_logs, second_logs = memory(), memory(), memory()
    first, second = open_store(place, consensus=first_logs), open_store(place, consensus=second_logs)
    third = open_store(place)
    first.create_table("events", "n int")
    for loser in (second, third):
        with pytest.raises(UsageError):
            loser.create_table("events", "n int")
        with pytest.raises(UsageError):
            loser.tables()


def test_several_stores_share_one_service_of_logs() -> None:
    """Their tables do not see one another."""
    logs = memory()
    one, two = open_store(memory(), consensus=logs), open_store(memory(), consensus=logs)
    one.create_table("events", "a int")
    two.create_table("events", "b string")
    assert one.table("events").schema.names == ("a",)
    assert two.table("events").schema.names == ("b",)
    assert one.tables() == two.tables() == ["events"]


@pytest.mark.parametrize("outcome", [Outcome.DONE_SILENT, Outcome.NOT_DONE_SILENT])
def test_a_store_whose_creation_got_no_answer_is_created_by_trying_again(
    outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The marker that landed is recognised as one's own."""
    place = memory()
    faults = Faults(script=[("put_if_absent", outcome)])
    blob = open_blob(place)
    monkeypatch.setattr("instar.table.opening.open_blob", lambda *_: UnreliableBlob(blob, faults))
    store = open_store(place)
    with pytest.raises(StorageTimeoutError):
        store.create_table("events", "n int")
    store.create_table("events", "n int")
    assert store.tables() == ["events"]


@pytest.mark.parametrize(
    "name", ["", "@store", "/a", "a/", "a//b", "../a", ".hidden", "a\\b", "a\nb", "x" * 241]
)
def test_names_that_could_mean_something_else_are_refused(name: str) -> None:
    """Everywhere where a name is taken."""
    store = open_store(memory())
    for call in (
        lambda: store.create_table(name, "n int"),
        lambda: store.table(name),
        lambda: store.drop_table(name),
    ):
        with pytest.raises(InvalidNameError):
            call()
    assert store.tables() == []


def test_ordinary_names_are_free() -> None:
    """A table may be called what a store is called inside."""
    store = open_store(memory())
    names = ["instar.store", "log", "store", "tables"]
    for name in names:
        store.create_table(name, "n int")
    assert store.tables() == names


def test_a_store_is_not_made_inside_another(tmp_path: Path) -> None:
    """Where it would be found by nobody who looks after the outer one."""
    open_store(tmp_path / "lake").create_table("t", "n int")
    with pytest.raises(UsageError, match="inside the store at"):
        open_store(tmp_path / "lake" / "a" / "b")
    assert not (tmp_path / "lake" / "a").exists()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("cafe\u0301", "normal form NFC"),
        ("a\u200bb", "cannot be seen"),
        ("a\u2028b", "cannot be seen"),
        ("a\u202eb", "cannot be seen"),
        ("a\ud800b", "surrogate"),
        ("a\nb", "control character"),
        (" a", "white space"),
        ("a/b /c", "white space"),
        ("a\u00a0", "white space"),
    ],
)
def test_names_that_look_the_same_are_the_same(name: str, why: str) -> None:
    """A name that could be taken for another, or is none, is refused wherever a table is named."""
    store = open_store(memory())
    calls: list[Callable[[], object]] = [
        lambda: store.create_table(name, "a int"),
        lambda: store.table(name),
        lambda: store.drop_table(name),
    ]
    for call in calls:
        with pytest.raises(InvalidNameError, match=why):
            call()
    assert store.tables() == []
    store.create_table("caf\u00e9 au lait/täglich", "a int")
    assert store.tables("caf") == ["caf\u00e9 au lait/täglich"]


def test_a_change_to_a_table_that_began_anew_is_refused() -> None:
    """Steps that were chosen for the old columns are not applied to another table of the same name."""
    store = open_store(memory())
    table = store.create_table("events", "a int")
    update = table.evolve().add_column("b", "int")
    store.drop_table("events")
    store.create_table("events", "other int")
    with pytest.raises(TableNotFoundError):
        update.commit()
    assert store.table("events").schema.names == ("other",)


def test_the_log_says_who_did_what() -> None:
    """Newest first, with the number of parts whether they came with the commit or in chunks."""
    with small_numbers():
        store = open_store(memory())
        table = store.create_table("events", "a int", options={"skipping": None})  # type: ignore[dict-item]
        append_parts(table._services, table._log, 5)
        table.configure(skipping="audit")
        table.evolve().add_column("b", "int").commit()
        store.drop_table("events")
        what = [(commit.seqno, commit.what, commit.schema_id) for commit in table.history()]
    assert what == [
        (4, "dropped", None),
        (3, "evolved to schema 1", 1),
        (2, "configured skipping=audit", None),
        (1, f"wrote 50 updates at {table._log.refresh().upper - 1}", 0),  # type: ignore[union-attr]
        (0, "created", 0),
    ]


@pytest.mark.parametrize(("clock", "year"), [(10**15, 9999), (2**62, 9999), (-(10**15), 1), (0, 1970)])
def test_the_log_can_be_read_whatever_the_clocks_said(clock: int, year: int) -> None:
    """A commit from a year that no calendar has is shown at the end of the calendar."""
    table = open_store(memory()).create_table("events", "a int")
    with patch.dict(vars(table._services), clock=lambda: clock):
        table.configure(skipping="audit")
    assert table.history()[0].at.year == year


def test_the_newest_commits_are_read_alone() -> None:
    """A limit is a limit of what is read, too: a log may be long."""
    table = open_store(memory()).create_table("events", "a int")
    for name in "bcdef":
        table.evolve().add_column(name, "int").commit()
    consensus = table._services.consensus
    with patch.object(consensus, "scan", wraps=consensus.scan) as scan:
        assert [commit.seqno for commit in table.history(2)] == [5, 4]
    assert min(call.args[1] for call in scan.call_args_list) == 4
    assert [commit.seqno for commit in table.history(99)] == [5, 4, 3, 2, 1, 0]
    with pytest.raises(UsageError, match="limit=0"):
        table.history(0)


def test_closing_waits_for_what_goes_on_in_the_background() -> None:
    """A rollup under way keeps its lease until it is done, and its log is the one that is closed."""
    store = open_store(memory())
    table = store.create_table("events", "a int")
    for _ in range(64):
        append_parts(table._services, table._log)
    store.close()
    state = TableLog(open_store(store.location)._services, "events").load()
    assert state.start.rollup
    assert state.seqno - state.start.seqno <= 2


SCRIPT = """
import sys
from instar.api import open_store
from tests.tables import append_parts
table = open_store(sys.argv[1]).table("events")
for _ in range(int(sys.argv[2])):
    append_parts(table._services, table._log)
"""


def test_a_process_that_just_ends_has_finished_its_rollup(tmp_path: Path) -> None:
    """Nobody has to close a store for its log to stay short."""
    with open_store(tmp_path / "lake") as store:
        store.create_table("events", "n int")
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path / "lake"), "64"], check=True)
    with open_store(tmp_path / "lake") as store:
        state = store.table("events").state
    assert state.totals.parts == 64
    assert state.start.rollup


def test_a_schema_is_taken_by_name_or_by_id() -> None:
    """DDL is matched by names; a mismatch of the expected schema is told apart from one's own retry."""
    table = open_store(memory()).create_table("events", "a int, b string")
    assert table.compare_and_evolve_schema(0, "a int, b string") == 0
    assert table.compare_and_evolve_schema(0, "a bigint, b string, c date") == 1
    assert table.compare_and_evolve_schema(0, "a bigint, b string, c date") == 1
    assert table.compare_and_evolve_schema(None, table.schema) == 1
    with pytest.raises(SchemaMismatchError) as caught:
        table.compare_and_evolve_schema(0, "a bigint")
    assert (caught.value.expected, caught.value.current) == (0, 1)
    assert [field.id for field in table.schema.fields] == [1, 2, 3]


def test_a_handle_stays_with_its_table() -> None:
    """A later table of the same name is another one: nothing is read from it or written to it by mistake."""
    store = open_store(memory())
    table = store.create_table("t", "a bigint")
    opened = store.table("t")
    store.drop_table("t")
    later = store.create_table("t", "b string")
    for old in (table, opened):
        uses: list[Callable[[Table], object]] = [
            lambda it: it.schema,
            lambda it: it.snapshot(),
            lambda it: it.append(pa.table({"a": [1]})),
            lambda it: it.evolve().add_column("c", "int").commit(),
            lambda it: it.configure(skipping="off"),
        ]
        for use in uses:
            with pytest.raises(TableNotFoundError, match="was dropped or replaced"):
                use(old)
    assert later.history()[0].seqno == 2
    assert later.schema.names == ("b",)

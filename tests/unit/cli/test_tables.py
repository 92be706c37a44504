"""The commands for stores and tables, used as a person and as a program would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import instar as library
from instar.errors import CorruptTableError, UsageError, disposition
from instar.parts import DIFF
from tests.unit.cli.command import instar


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Make a store with one table that has evolved once."""
    location = str(tmp_path_factory.mktemp("cli") / "lake")
    assert instar("init", location).returncode == 0
    ddl = "user string not null, at timestamp, amount int, addr struct<city: string>"
    assert instar("create", "billing/events", ddl, "--order-by", "at", "--store", location).returncode == 0
    steps = ("--add", "country string", "--rename", "user=user_id", "--widen", "amount bigint")
    assert instar("schema", "evolve", "billing/events", *steps, "--store", location).returncode == 0
    return location


def ask(store: str, *arguments: str) -> object:
    """Run a command with --json and return its answer."""
    done = instar(*arguments, "--json", "--store", store)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_tables_are_renamed_cloned_dropped_and_brought_back(tmp_path: Path) -> None:
    """Each command says what it did, in words and in JSON."""
    store = str(tmp_path / "lake")
    with library.open(store) as opened:
        opened.create_table("events", "id int").append([{"id": 1}, {"id": 2}])
    assert ask(store, "rename", "events", "sales") == {"renamed": "events", "to": "sales"}
    done = instar("count", "events", "--store", store)
    assert (done.returncode, "was renamed to `sales`" in done.stderr) == (3, True)
    assert ask(store, "clone", "sales", "copy") == {"cloned": "sales", "to": "copy", "rows": 2}
    assert "instar undrop sales" in instar("drop", "sales", "--yes", "--store", store).stdout
    assert instar("undrop", "sales", "--store", store).stdout == "Brought back sales, which holds 2 rows.\n"
    assert instar("rename", "sales", "copy", "--store", store).returncode == 4
    assert instar("vacuum", "--grace", "0s", "--store", store).returncode == 0
    assert instar("count", "copy", "--store", store).stdout.strip() == "2"


def test_init_says_whether_it_made_the_store(store: str) -> None:
    """Making a store twice is no error, and says so."""
    assert "is a store already" in instar("init", store).stdout


def test_init_refuses_what_is_not_empty(tmp_path: Path) -> None:
    """A location that holds something else is left alone."""
    (tmp_path / "letter.txt").write_text("dear reader")
    done = instar("init", str(tmp_path))
    assert done.returncode == 2
    assert "not an instar store" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_read_of_what_is_not_there_creates_nothing(tmp_path: Path) -> None:
    """Listing a store that does not exist exits with 3 and leaves no directory behind."""
    done = instar("tables", "--store", str(tmp_path / "nowhere"))
    assert done.returncode == 3
    assert "instar init" in done.stderr
    assert not (tmp_path / "nowhere").exists()


def test_tables_and_describe_agree(store: str) -> None:
    """What `tables` lists is what `describe` says of each."""
    listed = ask(store, "tables")
    described = ask(store, "describe", "billing/events")
    assert isinstance(described, dict)
    assert described.pop("condition")["parts"] == 0
    assert described.pop("unbounded") == []
    assert listed == [described]
    assert "billing/events" in instar("tables", "billing/", "--store", store).stdout
    assert ask(store, "tables", "other/") == []


def test_a_damaged_table_does_not_hide_the_others(tmp_path: Path) -> None:
    """They are listed, and what is wrong with it is said once, with the exit code of that."""
    store = str(tmp_path / "lake")
    with library.open(store) as opened:
        opened.create_table("bad", "n int")
        opened.create_table("billing/events", "n int")
    (Path(store) / "log/bad/00000000000000000000").write_bytes(b"x")
    listed = instar("tables", "--store", store)
    assert "billing/events" in listed.stdout
    assert "commit 0 of `bad` is corrupt" in listed.stderr
    as_json = instar("tables", "--store", store, "--json")
    good, bad = json.loads(as_json.stdout)
    assert good["name"] == "billing/events"
    assert (bad["name"], bad["error"]["code"]) == ("bad", "corrupt-table")
    assert listed.returncode == as_json.returncode == disposition(CorruptTableError("", "")).exit_code
    with library.open(store) as opened:
        assert opened.tables() == ["bad", "billing/events"]
        with pytest.raises(CorruptTableError):
            opened.find_tables()


def test_log_says_who_did_what_under_which_schema(store: str) -> None:
    """The newest commit comes first, and --limit leaves out the rest."""
    commits = ask(store, "log", "billing/events")
    assert isinstance(commits, list)
    assert [(c["seqno"], c["what"], c["schema_id"]) for c in commits] == [
        (1, "evolved to schema 1", 1),
        (0, "created", 0),
    ]
    newest = instar("log", "billing/events", "--limit", "1", "--store", store).stdout
    assert "evolved to schema 1" in newest
    assert "created" not in newest
    assert "There are older commits" in newest
    assert "older" not in instar("log", "billing/events", "--limit", "2", "--store", store).stdout


def test_log_tells_what_came_from_what_went(tmp_path: Path) -> None:
    """Appends add rows, a retraction takes them away, and an upsert does both."""
    lake = str(tmp_path / "lake")
    with library.open(lake) as opened:
        table = opened.create_table("t", "k int, v int", key=["k"])
        kinds = pa.schema([("k", pa.int32()), ("v", pa.int32())])
        table.append(pa.table({"k": [1, 2], "v": [1, 1]}, kinds))
        table.upsert(pa.table({"k": [2], "v": [2]}, kinds))
        table.apply(pa.table({"k": [1], "v": [1], DIFF: [-1]}, kinds.append(pa.field(DIFF, pa.int64()))))
    commits = ask(lake, "log", "t")
    assert isinstance(commits, list)
    assert [commit["what"].partition(" at ")[0] for commit in commits] == [
        "retracted 1 row",
        "changed rows by 2 updates",
        "appended 2 rows",
        "created",
    ]


def test_schema_show_and_diff(store: str) -> None:
    """A schema is shown with its field ids, and two are compared with what it means for readers."""
    shown = instar("schema", "show", "billing/events", "--id", "0", "--store", store).stdout
    assert "schema 0 of 0 to 1" in shown
    assert "struct<city: string>" in shown
    diff = ask(store, "schema", "diff", "billing/events", "0")
    assert isinstance(diff, dict)
    assert {change["kind"] for change in diff["changes"]} == {"added", "renamed", "widened"}
    assert (diff["old_id"], diff["new_id"]) == (0, 1)
    assert instar("schema", "show", "billing/events", "--id", "9", "--store", store).returncode == 3


def test_a_diff_names_the_schemas_that_changed_something(tmp_path: Path) -> None:
    """Each change by the schema that made it, however many there were between the two."""
    lake = str(tmp_path / "lake")
    with library.open(lake) as opened:
        table = opened.create_table("t", "a int, b int, c int")
        for column in ("d", "e"):
            table.evolve().add_column(column, "int").commit()
        table.evolve().widen_column("c", "bigint").commit()
        table.evolve().drop_column("b").commit()
    diff = instar("schema", "diff", "t", "0", "--store", lake).stdout
    assert "column `b` (field 2) was dropped by schema 4" in diff
    assert "column `c` (field 3) is widened from int to bigint since schema 3" in diff
    assert "by schema" not in instar("schema", "diff", "t", "0", "2", "--store", lake).stdout


def test_a_renamed_member_may_be_named_by_its_path(tmp_path: Path) -> None:
    """It stays where it is: the path in front of its new name is no part of the name."""
    lake = str(tmp_path / "lake")
    with library.open(lake) as opened:
        opened.create_table("t", "geo struct<lat: double>, a int")
        with pytest.raises(UsageError, match="Give 'latitude'"):
            opened.table("t").evolve().rename_column("geo.lat", "geo.latitude")
    done = instar("schema", "evolve", "t", "--rename", "geo.lat=geo.latitude", "--store", lake)
    assert done.returncode == 0
    with library.open(lake) as opened:
        assert str(opened.table("t").schema) == "geo struct<latitude: double>, a int"


def test_a_dry_run_says_so(tmp_path: Path) -> None:
    """Nobody takes it for the change itself."""
    lake = str(tmp_path / "lake")
    with library.open(lake) as opened:
        opened.create_table("t", "a int")
    steps = ("schema", "evolve", "t", "--add", "b int")
    assert "nothing was written" in instar(*steps, "--dry-run", "--store", lake).stdout
    assert "nothing was written" not in instar(*steps, "--store", lake).stdout


def test_a_table_is_not_dropped_unasked(tmp_path: Path) -> None:
    """Where nobody can answer, the question itself is the answer."""
    lake = str(tmp_path / "lake")
    with library.open(lake) as opened:
        opened.create_table("t", "a int").append(pa.table({"a": pa.array([1, 2], pa.int32())}))
    refused = instar("drop", "t", "--store", lake)
    assert refused.returncode == 2
    assert "holds 2 rows? There is no terminal to ask on: add --yes" in refused.stderr
    assert "Dropped t" in instar("drop", "t", "--yes", "--store", lake).stdout


def test_an_evolution_tells_the_id_of_its_schema(tmp_path: Path) -> None:
    """That of the latest now: after a dry run, or a change that changes nothing, the old one."""
    lake = str(tmp_path / "lake")
    instar("init", lake)
    assert instar("create", "t", "a int", "--store", lake).returncode == 0
    for steps, schema_id in (
        (("--add", "b int", "--dry-run"), 0),
        (("--to", "a int"), 0),
        (("--add", "b int"), 1),
        (("--add", "c int"), 2),
    ):
        done = ask(lake, "schema", "evolve", "t", *steps)
        assert isinstance(done, dict)
        assert done["schema_id"] == schema_id


def test_programs_are_told_the_ids_of_fields_at_every_level(tmp_path: Path) -> None:
    """Also inside elements of lists and values of maps."""
    lake = str(tmp_path / "lake")
    instar("init", lake)
    ddl = "k int not null, l array<struct<x: int>>, m map<string, struct<y: struct<z: date>>>"
    assert instar("create", "t", ddl, "--store", lake).returncode == 0
    shown = ask(lake, "schema", "show", "t")
    assert isinstance(shown, dict)

    def ids(fields: list[dict[str, Any]]) -> list[tuple[int, str, Any]]:
        return [(field["id"], field["name"], ids(field["fields"])) for field in fields]

    assert ids(shown["fields"]) == [
        (1, "k", []),
        (2, "l", [(3, "x", [])]),
        (4, "m", [(5, "y", [(6, "z", [])])]),
    ]
    assert [(field["type"], field["nullable"]) for field in shown["fields"][:2]] == [
        ("int", False),
        ("array<struct<x: int>>", True),
    ]


@pytest.mark.parametrize("schema", ["", "  "])
def test_an_empty_schema_is_called_that(store: str, schema: str) -> None:
    """It is no file, and is not taken for one."""
    done = instar("create", "empty", schema, "--store", store)
    assert done.returncode == 2
    assert "the schema is empty" in done.stderr


def test_a_refused_evolution_changes_nothing(store: str) -> None:
    """Every offence is named, the exit code is 5, and the schema stays."""
    done = instar("schema", "evolve", "billing/events", "--to", "user_id int, at date", "--store", store)
    assert done.returncode == 5
    assert "`at` (field 2)" in done.stderr
    assert "`user_id` (field 1)" in done.stderr
    dry = instar("schema", "evolve", "billing/events", "--add", "x int", "--dry-run", "--store", store)
    assert dry.returncode == 0
    facts = ask(store, "describe", "billing/events")
    assert isinstance(facts, dict)
    assert facts["schema_id"] == 1


def test_vacuum_dry_run_reports_and_keeps(store: str) -> None:
    """A dry run says what it would delete, in bytes, and the table is as it was."""
    report = ask(store, "vacuum", "billing/events", "--dry-run", "--grace", "0s")
    assert isinstance(report, dict)
    assert report["dry_run"] is True
    assert ask(store, "log", "billing/events") != []
    assert instar("vacuum", "--grace", "soon", "--store", store).returncode == 2


def test_a_dropped_table_is_gone_and_its_name_is_free(tmp_path: Path) -> None:
    """Dropping ends a table; another may take its name."""
    lake = str(tmp_path / "lake")
    instar("init", lake)
    instar("create", "t", "a int", "--store", lake)
    assert instar("drop", "t", "-y", "--store", lake).returncode == 0
    assert instar("describe", "t", "--store", lake).returncode == 3
    assert instar("create", "t", "b string", "--store", lake).returncode == 0
    assert "b string" in instar("describe", "t", "--store", lake).stdout


@pytest.mark.parametrize("name", ["../up", "/abs", "a//b", ".hidden", "", "@store"])
def test_bad_names_are_refused(store: str, name: str) -> None:
    """A name that could mean something else inside the store is a usage error."""
    done = instar("create", name, "a int", "--store", store)
    assert done.returncode == 2
    assert "is not a usable name" in done.stderr


def test_only_the_first_of_many_tables_are_shown(tmp_path: Path) -> None:
    """The listing says that there are more, and how to see them; JSON has all unless a limit is given."""
    with library.open(tmp_path / "lake") as store:
        for number in range(4):
            store.create_table(f"t{number}", "k int")
    at = ("--store", str(tmp_path / "lake"))
    shown = instar("tables", "--limit", "2", *at).stdout
    assert "t1" in shown
    assert "t2" not in shown
    assert "more than these 2: name a prefix, or --limit 0 for all" in shown
    assert "more than" not in instar("tables", *at).stdout
    assert "more than" not in instar("tables", "--limit", "0", *at).stdout
    assert len(json.loads(instar("tables", "--json", *at).stdout)) == 4
    assert len(json.loads(instar("tables", "--json", "--limit", "3", *at).stdout)) == 3

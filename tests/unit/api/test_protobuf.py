"""Records of protobuf become rows of a stream, whatever version they are of, and none is lost."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from google.protobuf import message_factory

import instar
from instar.compat.protobuf.compile import compile_proto
from instar.compat.protobuf.descriptors import fill_pool
from instar.errors import IncompatibleSchemaError, InvalidSchemaError, UsageError, VersionConflictError
from instar.stream import as_version
from tests.unit.cli.command import instar as instar_command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from instar import Store
    from instar.api.stream import Stream

HEAD = 'syntax = "proto3";\npackage shop;\nimport "google/protobuf/timestamp.proto";\n'
FIRST = (
    HEAD + "message Order { string user = 1; google.protobuf.Timestamp at = 2; repeated Line lines = 3; }\n"
)
FIRST += "message Line { string sku = 1; int32 count = 2; }\n"
SECOND = FIRST.replace("string user", "string buyer").replace("int32 count", "int64 amount")
SECOND = SECOND.replace("= 3; }", "= 3; string note = 4; }", 1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Return a store."""
    with instar.open(tmp_path / "lake") as opened:
        yield opened


@pytest.fixture
def stream(tmp_path: Path, store: Store) -> Stream:
    """Return a stream with two versions of a message, in which fields were renamed, widened and added."""
    made = store.create_stream("shop/orders", "at timestamp", version="v0.0.1", time="at")
    for number, text in enumerate((FIRST, SECOND), 2):
        path = tmp_path / f"v{number}.proto"
        path.write_text(text)
        made.evolve_protobuf(path, f"v0.0.{number}", message="Order")
    return made


def record(folder: Path, number: int, **fields: Any) -> bytes:  # noqa: ANN401 -- values of a message
    """Return a record of one of the versions."""
    pool = fill_pool(compile_proto(folder / f"v{number}.proto"))
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    made = kind(**fields)
    made.at.FromDatetime(dt.datetime(2026, 11, 15, 12, tzinfo=dt.UTC))
    return bytes(made.SerializeToString())


def test_a_renamed_field_is_one_column(tmp_path: Path, stream: Stream) -> None:
    """Numbers tell what a field is: old and new records are read as one, under the newest names."""
    stream.write_protobuf([record(tmp_path, 2, user="ada", lines=[{"sku": "x", "count": 1}])], "v0.0.2")
    wanted = stream.write_protobuf(
        [record(tmp_path, 3, buyer="bob", note="now", lines=[{"sku": "y", "amount": 2**40}])], "v0.0.3"
    )
    assert (wanted.rows, wanted.quarantined, wanted.unknown) == (1, 0, 0)
    rows = sorted(stream.snapshot().to_arrow().to_pylist(), key=lambda row: row["buyer"])
    at = dt.datetime(2026, 11, 15, 12, tzinfo=dt.UTC)
    assert rows == [
        {"at": at, "buyer": "ada", "lines": [{"sku": "x", "amount": 1}], "note": None},
        {"at": at, "buyer": "bob", "lines": [{"sku": "y", "amount": 2**40}], "note": "now"},
    ]


def test_what_cannot_be_decoded_is_kept_with_the_reason(tmp_path: Path, store: Store, stream: Stream) -> None:
    """Broken records go to a table beside the stream, and the others are rows."""
    good = record(tmp_path, 2, user="ada")
    data = pa.table({"value": pa.array([good, b"\xff", None], pa.binary())})
    done = stream.write_protobuf(data, "v0.0.2", token="t1")
    assert (done.rows, done.quarantined) == (1, 2)
    kept = store.table("shop/orders-quarantine").snapshot().to_arrow().to_pylist()
    assert sorted((row["record"] or b"", row["version"], row["stored"]) for row in kept) == [
        (b"", "v0.0.2", False),
        (b"\xff", "v0.0.2", False),
    ]
    assert all(row["reason"] and row["at"] for row in kept)
    stream.write_protobuf(data, "v0.0.2", token="t1")
    assert store.table("shop/orders-quarantine").count() == 2
    assert stream.snapshot().to_arrow().num_rows == 1


def test_unknown_fields_are_kept_beside_their_row(tmp_path: Path, store: Store, stream: Stream) -> None:
    """A record from the future is a row of what is known, and is kept whole."""
    newer = record(tmp_path, 3, buyer="bob", note="now")
    done = stream.write_protobuf([newer], "v0.0.2")
    assert (done.rows, done.quarantined, done.unknown) == (1, 0, 1)
    [kept] = store.table("shop/orders-quarantine").snapshot().to_arrow().to_pylist()
    assert (kept["record"], kept["stored"]) == (newer, True)
    assert "does not know" in kept["reason"]


def test_unknown_fields_may_only_be_counted(tmp_path: Path, store: Store, stream: Stream) -> None:
    """Then nothing is kept beside the row, and what cannot be decoded is kept all the same."""
    newer = record(tmp_path, 3, buyer="bob", note="now")
    done = stream.write_protobuf([newer], "v0.0.2", unknown="count")
    assert (done.rows, done.quarantined, done.unknown) == (1, 0, 1)
    assert "shop/orders-quarantine" not in store.tables()
    done = stream.write_protobuf([newer, b"\xff"], "v0.0.2", unknown="count")
    assert (done.rows, done.quarantined, done.unknown) == (1, 1, 1)
    assert store.table("shop/orders-quarantine").count() == 1
    with pytest.raises(UsageError, match="unknown='drop' is not one of keep, count"):
        stream.write_protobuf([newer], "v0.0.2", unknown="drop")


def test_nothing_but_broken_records_is_no_commit(stream: Stream) -> None:
    """Without a row, the stream is not touched."""
    done = stream.write_protobuf([b"\xff"], "v0.0.2")
    assert (done.commit, done.rows, done.quarantined) == (None, 0, 1)


def test_a_version_is_one_message_for_ever(tmp_path: Path, stream: Stream) -> None:
    """The same again changes nothing; another encoding of the same columns is another version."""
    assert stream.evolve_protobuf(tmp_path / "v2.proto", "v0.0.2", message="shop.Order") == "v0.0.3"
    (tmp_path / "other.proto").write_text(FIRST.replace("int32 count", "sint32 count"))
    with pytest.raises(VersionConflictError):
        stream.evolve_protobuf(tmp_path / "other.proto", "v0.0.2", message="Order")
    (tmp_path / "third.proto").write_text(SECOND.replace("int64 amount", "string amount"))
    with pytest.raises(IncompatibleSchemaError):
        stream.evolve_protobuf(tmp_path / "third.proto", "v0.0.4", message="Order")


def test_bad_calls_say_what_to_do(tmp_path: Path, stream: Stream) -> None:
    """A version without descriptors, a file of two messages, a column that is not there."""
    with pytest.raises(UsageError, match="evolve_protobuf"):
        stream.write_protobuf([b""], "v0.0.1")
    with pytest.raises(InvalidSchemaError, match="choose one"):
        stream.evolve_protobuf(tmp_path / "v2.proto", "v0.0.9")
    with pytest.raises(UsageError, match="there is no column 'value'"):
        stream.write_protobuf(pa.table({"x": [b""]}), "v0.0.2")
    with pytest.raises(UsageError, match="record 0 is not bytes"):
        stream.write_protobuf(["text"], "v0.0.2")


def test_a_new_version_is_judged_against_all_that_tables_hold(tmp_path: Path, stream: Stream) -> None:
    """What is safe after the latest version may not be safe after an older one that tables still hold."""
    stream.write_protobuf([record(tmp_path, 2, user="ada")], "v0.0.2")
    stream.write_protobuf([record(tmp_path, 3, buyer="bob")], "v0.0.3")
    judged = stream.check(tmp_path / "v3.proto", message="Order")
    assert [str(version) for version in judged] == ["v0.0.2", "v0.0.3"]
    assert (judged[as_version("v0.0.3")].differences, judged[as_version("v0.0.3")].wire_safe) == ((), True)
    old = judged[as_version("v0.0.2")]
    assert (old.wire_safe, old.query_compatible, old.keeps_meaning) == (True, False, False)
    arguments = ("check", str(tmp_path / "v3.proto"), "--message", "Order", "--against")
    done = instar_command(*arguments, str(tmp_path / "lake/shop/orders"))
    assert done.returncode == 1, done.stderr
    assert f"shop/orders v0.0.2 → {tmp_path / 'v3.proto'}" in done.stdout
    assert f"{tmp_path / 'v3.proto'}: nothing changes." in done.stdout
    assert (
        instar_command("check", "at timestamp", "--against", str(tmp_path / "lake/shop/orders")).returncode
        == 0
    )
    assert instar_command(*arguments, str(tmp_path / "lake/nothing")).returncode == 3
    assert instar_command(*arguments, str(tmp_path / "nothing/nothing")).returncode == 2

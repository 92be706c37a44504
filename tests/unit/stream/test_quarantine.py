"""Records in quarantine get another try: each becomes a row once, or stays, wherever it is killed."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING

import pytest
from google.protobuf import descriptor_pb2

import instar
from instar.api.table import Table
from instar.errors import ConflictError, UsageError
from instar.storage import MemoryConsensus
from instar.table import TableLog
from tests.protos import compile_files, message_class, with_imports
from tests.streams import NAME, DeadError, Mortal, make_stream, new_world, open_again
from tests.tables import START
from tests.unit.cli.command import instar as instar_command

if TYPE_CHECKING:
    from pathlib import Path

    from instar.api.stream import Stream
    from tests.tables import World

TEXT = """
syntax = "proto2";
package t;
import "google/protobuf/timestamp.proto";
message Event { LABEL string user = 1; optional google.protobuf.Timestamp at = 2; }
"""
QUARANTINE = f"{NAME}-quarantine"


@pytest.fixture(scope="module")
def protos(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[bytes]]:
    """Return two versions, of which only the first requires a user, and records with and without one."""
    folder = tmp_path_factory.mktemp("protos")
    paths, kinds = [], []
    for label in ("required", "optional"):
        files = compile_files(folder / label, {"event.proto": TEXT.replace("LABEL", label)})
        kinds.append(message_class(files, "event.proto", "Event"))
        described = descriptor_pb2.FileDescriptorSet(file=with_imports(files, "event.proto"))
        paths.append(folder / f"{label}.binpb")
        paths[-1].write_bytes(described.SerializeToString())
    records = []
    for user in ("ada", None, None, "bob"):
        made = kinds[1](**({} if user is None else {"user": user}))
        made.at.FromDatetime(datetime.fromtimestamp(START / 1000, UTC))
        records.append(bytes(made.SerializeToString()))
    return paths, records


def _stream(world: World, paths: list[Path]) -> Stream:
    stream = make_stream(world, {"regular": "1d"}, "user string, at timestamp")
    for number, path in enumerate(paths, 2):
        stream.evolve_protobuf(path, f"v0.0.{number}", message="Event")
    return stream


def _kept(world: World) -> list[dict[str, object]]:
    services = world.services()
    with Table(services, TableLog(services, QUARANTINE)).snapshot() as snapshot:
        rows: list[dict[str, object]] = snapshot.to_arrow().to_pylist()
        return rows


def test_records_that_can_be_decoded_now_become_rows(protos: tuple[list[Path], list[bytes]]) -> None:
    """A version that they were not written as may fit them; those that fail again stay, with the reason."""
    paths, records = protos
    world = new_world()
    stream = _stream(world, paths)
    assert stream.retry_quarantine() == (0, 0)
    done = stream.write_protobuf([*records, b"\xff"], "v0.0.2")
    assert (done.rows, done.quarantined) == (2, 3)
    assert stream.retry_quarantine() == (0, 3)
    assert stream.retry_quarantine("v0.0.3") == (0, 0)
    with pytest.raises(UsageError, match="evolve_protobuf"):
        stream.retry_quarantine(decode_as="v0.0.9")
    assert {str(row["reason"]) for row in _kept(world)} >= {"lacks required user"}
    assert stream.retry_quarantine("v0.0.2", decode_as="v0.0.3") == (2, 1)
    assert Counter(stream.snapshot().to_arrow()["user"].to_pylist()) == {"ada": 1, "bob": 1, None: 2}
    [left] = _kept(world)
    assert (left["record"], left["version"], left["stored"], left["retry"]) == (
        b"\xff",
        "v0.0.2",
        False,
        None,
    )
    assert "not a t.Event" in str(left["reason"])


def test_records_that_are_rows_already_are_not_touched(protos: tuple[list[Path], list[bytes]]) -> None:
    """A record with unknown fields has its row; it stays in quarantine, and trying again doubles nothing."""
    paths, records = protos
    world = new_world()
    stream = _stream(world, paths)
    strange = records[0] + b"\x98\x06\x01"
    assert stream.write_protobuf([strange], "v0.0.2").unknown == 1
    assert stream.retry_quarantine() == (0, 0)
    assert stream.write_protobuf([records[1] + b"\x98\x06\x01"], "v0.0.2").quarantined == 1
    assert stream.retry_quarantine(decode_as="v0.0.3") == (1, 0)
    assert stream.snapshot().to_arrow().num_rows == 2
    assert [row["stored"] for row in _kept(world)] == [True, True]


def test_the_quarantine_may_be_renamed_and_its_name_taken(protos: tuple[list[Path], list[bytes]]) -> None:
    """A renamed one keeps its records and another begins; a table of somebody else is left alone."""
    paths, records = protos
    world = new_world()
    stream = _stream(world, paths)
    store = instar.Store("memory", world.services())
    for name in ("first", "second"):
        stream.write_protobuf([records[1]], "v0.0.2")
        store.rename_table(QUARANTINE, name)
        assert stream.retry_quarantine() == (0, 0)
    stream.write_protobuf([records[1]], "v0.0.2")
    assert [store.table(name).count() for name in ("first", "second", QUARANTINE)] == [1, 1, 1]
    assert stream.retry_quarantine(decode_as="v0.0.3") == (1, 0)
    store.drop_table(QUARANTINE)
    store.create_table("plain", "x int")
    store.rename_table("plain", QUARANTINE)
    with pytest.raises(ConflictError, match="another table has that name"):
        stream.write_protobuf([records[0], records[1]], "v0.0.2")
    with pytest.raises(ConflictError, match="another table has that name"):
        stream.retry_quarantine()
    assert stream.snapshot().to_arrow().num_rows == 1


def test_a_retry_may_die_at_every_request(protos: tuple[list[Path], list[bytes]]) -> None:
    """Whoever tries next finishes what was begun: every record is a row once, or in quarantine once."""
    paths, records = protos
    for at in count(1):
        world = new_world(consensus=MemoryConsensus())
        _stream(world, paths).write_protobuf([*records, b"\xff"], "v0.0.2")
        mortal = Mortal(at, after=at % 2 == 1)
        with suppress(DeadError):
            open_again(world, mortal.services(world)).retry_quarantine(decode_as="v0.0.3")
        if not mortal.dead:
            assert at > 5
            return
        stream = open_again(world)
        stream.write_protobuf([records[1]], "v0.0.2")  # what is new must not hide what was begun
        stream.retry_quarantine(decode_as="v0.0.3")
        assert Counter(stream.snapshot().to_arrow()["user"].to_pylist()) == {"ada": 1, "bob": 1, None: 3}
        assert [(row["record"], row["retry"]) for row in _kept(world)] == [(b"\xff", None)]


def test_the_command_tells_what_became_of_them(tmp_path: Path) -> None:
    """Without a quarantine there is nothing to try."""
    lake = str(tmp_path / "lake")
    with instar.open(lake) as store:
        store.create_stream(NAME, "at timestamp", time="at")
    done = instar_command("stream", "retry-quarantine", NAME, "--store", lake)
    assert done.stdout == f"0 records became rows of {NAME}, 0 still cannot be decoded.\n"

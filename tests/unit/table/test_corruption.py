"""Every object that a small but complete table stores, damaged in many ways: never another answer.

Parts are damaged in a table of their own: the one that has everything else has none that can be read.
"""

from __future__ import annotations

import random
import uuid
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import settings

from instar.api import open_store
from instar.errors import CorruptTableError, FormatTooNewError, InstarError
from instar.stats import FieldStats
from instar.storage import open_blob
from instar.storage.frame import FORMAT_VERSION
from instar.table import TableLog, begin_write
from instar.table.layout import MARKER, rollup_key, table_root
from tests.tables import all_rows, append_parts, small_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from instar.storage import Blob

NAME = "events"
FLIPS = 40 * (settings.default.max_examples // 100 if settings.default else 1)
"""How many bits are flipped in an object that has more bytes than that."""


class Stored:
    """A store in memory with one table, everything that it stores, and what it truly says."""

    def __init__(self) -> None:
        self.url = f"memory://{uuid.uuid4().hex}"
        with open_store(self.url) as store:
            table = store.create_table(NAME, "n int, s string", order_by=["n"])
            self._fill(table._services, table._log)
            table.evolve().add_column("later", "double").rename_column("s", "t").commit()
            append_parts(table._services, table._log, 1, bounds)
            append_parts(table._services, table._log, 5, bounds, token="a token")
            self.blob: Blob = open_blob(self.url)
            state = TableLog(table._services, NAME).load()
            self.lease = table._services.leases.take(state.table_id, state.seqno)
            table._services.leases._forget(self.lease)
        self.objects = {stored.key: self.blob.get(stored.key) for stored in self.blob.list()}
        self.needed = {key: name for key, name in self._names(state).items() if key in self.objects}
        self.truth = self.read()

    def _fill(self, services: Any, log: TableLog) -> None:  # noqa: ANN401 - the table's own
        for _ in range(5):
            append_parts(services, log, 3, bounds)
        with begin_write(services, log) as writer:
            state = log.load()
            places = list(all_rows(services, state))[1:3]
            writer.replace(state.seqno, places, (20, 203), None)
        log.checkpoint()

    def _names(self, state: Any) -> dict[str, str]:  # noqa: ANN401 - a state
        """Return what an error must say for each object that is read."""
        refs = [*state.chunks, *(ref for batch in state.tail for ref in batch.chunks)]
        entries = {key: key.rpartition("/")[2] for key in self.objects if key.startswith("log/")}
        numbered = {
            key: number for key, number in entries.items() if number.isdigit() and "/floor/" not in key
        }
        return {
            MARKER: MARKER,
            **{key: f"commit {int(number)} of `{NAME}`" for key, number in numbered.items()},
            **{ref.key: ref.key for ref in refs},
            rollup_key(state.table_id, state.start.seqno): f"rollup {table_root(state.table_id)}",
            f"{table_root(state.table_id)}/leases/{self.lease.id}": f"{self.lease.id}",
        }

    def read(self) -> Any:  # noqa: ANN401 - everything
        """Read all that there is through a fresh store: state, metadata, log, and what a vacuum looks at."""
        with open_store(self.url, create=False) as store:
            table = store.table(NAME)
            state = table.state
            facts = (state.seqno, state.history.schemas, state.since, state.upper, state.totals, state.tokens)
            report = table.vacuum(grace_ms=10**15, dry_run=True)
            return (
                store.tables(),
                facts,
                all_rows(table._services, state),
                [commit[:4] for commit in table.history()],
                (report.objects, report.kept_objects),
            )

    def check(self, key: str, data: bytes) -> None:
        """Put other content in an object's place: reading says which object is corrupt, or is not misled."""
        if data == self.objects[key]:
            return
        self.blob.put(key, data)
        try:
            answer = self.read()
        except CorruptTableError as error:
            assert self.needed.get(key, key) in str(error)  # noqa: PT017 - most of the times it is raised
        else:
            assert key not in self.needed, "the damage went unnoticed"
            assert answer == self.truth, "the damage changed the answer"
        finally:
            self.blob.put(key, self.objects[key])


def bounds(number: int) -> dict[int, FieldStats]:
    """Make up statistics."""
    return {1: FieldStats(0, 0, number, number + 5), 2: FieldStats(1, 0, "a", f"b{number}")}


@pytest.fixture(scope="module")
def stored() -> Iterator[Stored]:
    """Return a table with everything that a table can store."""
    with small_numbers(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("instar.storage.bloblog._HINT_EVERY", 2)
        yield Stored()


def kinds(stored: Stored) -> set[str]:
    """Name the sorts of objects that the table has."""
    return {key.split("/")[2] if key.startswith("tables/") else key.split("/")[0] for key in stored.objects}


def test_the_table_is_complete(stored: Stored) -> None:
    """It has a marker, a log with a hint, rollups, chunks of batches and of rollups, and a lease."""
    assert kinds(stored) == {"instar.store", "log", "rollups", "chunks", "leases"}
    assert any(key.endswith("/hint") for key in stored.objects)
    assert sum("/chunks/" in key for key in stored.needed) >= 2
    assert sum(key.startswith("log/") for key in stored.needed) >= 9
    assert stored.read() == stored.truth


def test_a_flipped_bit_is_found(stored: Stored) -> None:
    """In every object, at every byte of small ones: the error names the object."""
    chance = random.Random(1)
    for key, data in stored.objects.items():
        places = range(len(data)) if len(data) <= FLIPS else sorted(chance.sample(range(len(data)), FLIPS))
        for at in places:
            stored.check(key, data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :])


def test_a_truncated_object_is_found(stored: Stored) -> None:
    """Wherever it ends too early, even if nothing is left of it."""
    chance = random.Random(2)
    for key, data in stored.objects.items():
        for end in {0, 1, 8, len(data) // 2, len(data) - 16, len(data) - 1, chance.randrange(len(data))}:
            stored.check(key, data[: max(end, 0)])


def test_an_object_in_the_place_of_another_is_found(stored: Stored) -> None:
    """An intact object of the same kind, or of another, is not the one that belongs there."""
    for key, data in stored.objects.items():
        for other in stored.objects.values():
            if other != data:
                stored.check(key, other)


def test_an_object_from_a_table_of_the_same_shape_is_found(stored: Stored) -> None:
    """What another table stores at the same place, byte for byte as good, belongs to that table."""
    twin = Stored()
    theirs = {key.rpartition("/")[2]: data for key, data in twin.objects.items()}
    swapped = 0
    for key in stored.needed:
        data = theirs.get(key.rpartition("/")[2])
        if data is not None and key != MARKER and "/chunks/" not in key and data != stored.objects[key]:
            stored.check(key, data)
            swapped += 1
    assert swapped > 0


def test_rubbish_at_the_end_changes_nothing(stored: Stored) -> None:
    """It is found, or it is not read."""
    for key, data in stored.objects.items():
        if "/chunks/" in key:
            stored.blob.put(key, data + b"rubbish")
            assert stored.read() == stored.truth
            stored.blob.put(key, data)
        else:
            stored.check(key, data + b"rubbish")


def test_what_is_missing_is_an_error(stored: Stored) -> None:
    """Where a rollup or a chunk should be and is not, nothing is read at all."""
    for key, data in stored.objects.items():
        if key in stored.needed and ("/chunks/" in key or "/rollups/" in key):
            stored.blob.delete([key])
            with pytest.raises(CorruptTableError, match="missing"):
                stored.read()
            stored.blob.put(key, data)


def test_a_missing_commit_is_found(stored: Stored) -> None:
    """The log does not seem to end before it, nor is it put together from what is left."""
    *entries, _ = sorted(key for key in stored.needed if key.startswith("log/"))
    for key in entries:
        stored.blob.delete([key])
        with pytest.raises(CorruptTableError, match="is missing"):
            stored.read()
        stored.blob.put(key, stored.objects[key])


def test_commits_after_a_gap_are_not_taken_for_what_follows(stored: Stored) -> None:
    """Who goes on before a gap, because it did not look behind it, does not join what is there."""
    *_, before, lost, last = sorted(key for key in stored.needed if key.startswith("log/"))
    with open_store(stored.url, create=False) as store:
        table = store.table(NAME)
        assert table.state.seqno == int(last.rpartition("/")[2])
        stored.blob.delete([lost, last])
        with open_store(stored.url, create=False) as other:
            other.table(NAME).configure(skipping="off")
        stored.blob.put(last, stored.objects[last])
        with open_store(stored.url, create=False) as other, pytest.raises(CorruptTableError, match="follow"):
            _ = other.table(NAME).state
    stored.blob.put(lost, stored.objects[lost])
    assert stored.read() == stored.truth
    assert before in stored.needed


def test_a_newer_format_is_refused_by_name(stored: Stored) -> None:
    """An intact object of a version to come is not called corrupt: whoever reads it should upgrade."""
    newer = 0
    for key, data in stored.objects.items():
        if key in stored.needed and data.startswith(b"INSTAR"):
            body = data[:6] + (FORMAT_VERSION + 1).to_bytes(2, "little") + data[8:-16]
            stored.blob.put(key, body + blake2b(body, digest_size=16).digest())
            with pytest.raises(FormatTooNewError) as caught:
                stored.read()
            assert stored.needed[key] in str(caught.value)
            stored.blob.put(key, data)
            newer += 1
    assert newer >= 12


def test_a_wrong_hint_is_only_a_slower_way(stored: Stored) -> None:
    """Whatever number it says, or none, the answer is the same."""
    [hint] = [key for key in stored.objects if key.endswith("/hint")]
    for text in ("", "0", "3", "7", "99", "18446744073709551616", "-1", "seven", "1e3", " 5", "٣"):
        stored.blob.put(hint, text.encode())
        assert stored.read() == stored.truth, text
    stored.blob.put(hint, stored.objects[hint])


def test_every_error_of_damage_is_an_instar_error(stored: Stored) -> None:
    """Random bytes of the right length raise nothing else either."""
    chance = random.Random(3)
    for key, data in stored.objects.items():
        stored.blob.put(key, chance.randbytes(len(data)))
        try:
            assert stored.read() == stored.truth
        except InstarError as error:
            assert isinstance(error, CorruptTableError)  # noqa: PT017 - which it is raised for, differs
        finally:
            stored.blob.put(key, data)


@pytest.mark.parametrize("place", ["directory", "memory"])
def test_a_damaged_part_is_found(tmp_path: Path, place: str) -> None:
    """Of a flipped bit in a part, wherever it is read from, the rows are right or the part is named."""
    with open_store(str(tmp_path) if place == "directory" else f"memory://{uuid.uuid4().hex}") as store:
        table = store.create_table(NAME, "n int, s struct<t: string, ns: array<int>>")
        rows = [{"n": 1, "s": {"t": "a", "ns": [1, None]}}, {"n": None, "s": None}]
        table.append(pa.Table.from_pylist(rows, table.snapshot().to_arrow().schema))
        blob = open_blob(store.location)
        [key] = [stored.key for stored in blob.list() if "/parts/" in stored.key]
        whole = blob.get(key)
        found = 0
        for at in range(0, len(whole), 3):
            blob.put(key, whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
            try:
                assert table.snapshot().to_arrow().to_pylist() == rows
            except CorruptTableError as error:
                assert key in str(error)  # noqa: PT017 - of most places it is raised
                found += 1
        assert found > len(whole) // 6


@pytest.mark.parametrize("place", ["directory", "memory"])
def test_a_part_that_is_not_whole_is_found(tmp_path: Path, place: str) -> None:
    """A part that ends too early, or is not there at all, is named."""
    with open_store(str(tmp_path) if place == "directory" else f"memory://{uuid.uuid4().hex}") as store:
        table = store.create_table(NAME, "n int")
        table.append(pa.table({"n": pa.array([1, 2], pa.int32())}))
        blob = open_blob(store.location)
        [key] = [stored.key for stored in blob.list() if "/parts/" in stored.key]
        whole = blob.get(key)
        for end in (0, 1, 8, len(whole) // 2, len(whole) - 1):
            blob.put(key, whole[:end])
            with pytest.raises(CorruptTableError, match=key):
                table.snapshot().to_arrow()
        blob.delete([key])
        with pytest.raises(CorruptTableError, match=f"{key} is corrupt: its file is missing"):
            table.snapshot().to_arrow()

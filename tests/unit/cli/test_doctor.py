"""`instar doctor` says what is wrong and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import instar as library
from instar.errors import UsageError
from instar.storage import BlobConsensus, DirectoryBlob
from instar.table import Services
from instar.table.housekeeping.examination import Health, examine_store
from instar.table.marker import StoreMarker, write_marker
from tests.unit.cli.command import instar

if TYPE_CHECKING:
    from pathlib import Path

    from instar.storage.blob import Data


class Careless(DirectoryBlob):
    """A service that takes no notice of conditions."""

    def put_if_absent(self, key: str, data: Data) -> bool:
        """Write whatever is there."""
        self.put(key, data)
        return True


def findings(services: Services) -> dict[str, Health]:
    """Return how each thing is."""
    return {finding.what: finding.health for finding in examine_store(services)}


def test_a_sound_store_has_no_remedies(tmp_path: Path) -> None:
    """A directory can be written, honours conditions, and has our own clock; nothing of the probe stays."""
    with library.open(tmp_path / "lake") as store:
        store.create_table("t", "id int")
        found = store.examine()
    assert {finding.what for finding in found} == {"store", "conditional writes", "clock", "logs"}
    assert all(finding.health is Health.FINE and not finding.remedy for finding in found)
    assert not list(tmp_path.rglob("probes/*"))


def test_a_service_without_conditional_writes_is_found_out(tmp_path: Path) -> None:
    """Two writers would both win there, so no store keeps its logs in it; PostgreSQL may have them."""
    blob = Careless(tmp_path / "lake")
    found = findings(Services(blob, BlobConsensus(blob)))
    assert found["conditional writes"] is Health.WRONG
    with pytest.raises(UsageError, match="does not honour conditional writes"):
        write_marker(blob, BlobConsensus(blob), StoreMarker("id", "blob", 0))
    assert not list((tmp_path / "lake").rglob("*.json"))
    assert write_marker(blob, BlobConsensus(blob), StoreMarker("id", "file", 0)).store_id == "id"


def test_clocks_that_differ_are_told(tmp_path: Path) -> None:
    """A minute is more than a store may be apart from its writers."""
    blob = DirectoryBlob(tmp_path / "lake")
    late = Services(blob, BlobConsensus(blob), clock=lambda: 1_000)
    assert findings(late)["clock"] is Health.WARNING


def test_the_command_ends_with_one_if_something_is_wrong(tmp_path: Path) -> None:
    """A store that is not there is wrong; without Spark nothing else is."""
    done = instar("doctor", "--no-spark", "--store", str(tmp_path / "none"))
    assert done.returncode == 1
    assert "Check its address" in done.stdout
    with library.open(tmp_path / "lake") as store:
        store.create_table("t", "id int")
    assert instar("doctor", "--no-spark", "--store", str(tmp_path / "lake")).returncode == 0

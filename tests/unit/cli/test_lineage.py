"""`instar lineage show` and `retire`: what feeds a table, and what is too old to keep."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from instar.lineage import open_database
from testbed.lineage import dataset, run_event
from tests.lineage import send
from tests.unit.cli.command import instar

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Make a database in which two jobs lead from `raw` by way of `clean` to `report`."""
    found = f"sqlite:///{tmp_path}/lineage.db"
    steps = [("clean_up", "raw", "clean"), ("sum_up", "clean", "report")]
    with open_database(found) as database:
        for number, (job, source, target) in enumerate(steps, start=1):
            read, made = [dataset(source, "a int")], [dataset(target, "a int")]
            send(database, run_event("COMPLETE", number, number, job=job, inputs=read, outputs=made))
    return found


def test_what_feeds_a_table_and_what_it_feeds_is_shown(url: str) -> None:
    """Each step has the dataset and the job in between; an end has nothing beyond it."""
    told = instar("lineage", "show", "clean", "--db", url).stdout.splitlines()
    assert told[0].endswith("clean is fed by")
    assert "raw  (job" in told[1]
    assert "clean_up)" in told[1]
    assert told[2].endswith("clean feeds")
    assert "report  (job" in told[3]
    assert "sum_up)" in told[3]
    assert "report feeds nothing known." in instar("lineage", "show", "report", "--db", url).stdout


def test_the_depth_ends_the_walk(url: str) -> None:
    """One job away there is one dataset, and two jobs away there are two."""
    for depth, datasets in (("1", ["clean"]), ("2", ["clean", "raw"])):
        done = instar("lineage", "show", "report", "--db", url, "--depth", depth, "--json")
        steps = json.loads(done.stdout)["fedBy"]
        assert [step["dataset"].rpartition(":")[2] for step in steps] == datasets


def test_a_dataset_that_is_not_known_is_said(url: str) -> None:
    """Its name comes back, and the exit code is that of something that does not exist."""
    done = instar("lineage", "show", "nothing", "--db", url)
    assert (done.returncode, done.stdout) == (3, "")
    assert "'nothing' is not known" in done.stderr


def test_old_versions_are_retired(url: str) -> None:
    """What was superseded long ago goes, and is counted; the current versions stay."""
    with open_database(url) as database:
        send(database, run_event("COMPLETE", 3, 3, job="sum_up", outputs=[dataset("report", "a int, b int")]))
    gone = json.loads(instar("lineage", "retire", "1s", "--db", url, "--json").stdout)
    assert gone["dataset_versions"] == 1
    told = instar("lineage", "retire", "1s", "--db", url).stdout
    assert "0 dataset versions" in told
    assert instar("lineage", "show", "report", "--db", url).returncode == 0

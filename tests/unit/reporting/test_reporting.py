"""instar reports its writes through the OpenLineage client, and never waits for it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import instar
from instar.errors import InstarError
from instar.lineage import decode_event, ingest_event, open_database
from instar.lineage.queries.neighbours import neighbours
from instar.reporting import RunInput, reading_from, sender
from instar.reporting.run import Notice, is_configured
from tests.reporting import Endpoint, column_sources, endpoint, own_sender
from tests.streams import day, events, make_stream, new_world

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["endpoint", "own_sender"]

pytestmark = pytest.mark.usefixtures("own_sender")


def _count(outcome: str) -> float:
    return float(sender.EVENTS.labels(outcome)._value.get())


def test_a_commit_is_a_run_with_schema_statistics_and_version(endpoint: Endpoint, tmp_path: Path) -> None:
    """An append starts and completes a run whose output has the schema, the rows and the version."""
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("events", "user string not null, place struct<city: string>")
        with reading_from([RunInput("file", "/in.csv", same_columns=True)]):
            commit = table.append(pa.table({"user": ["a", "b"]}))
        location = store.location
    assert sender.flush(30)
    start, complete = endpoint.events
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert complete["job"]["name"] == "events.append"
    (output,) = complete["outputs"]
    assert (output["namespace"], output["name"]) == (location, "events")
    fields = output["facets"]["schema"]["fields"]
    assert [(field["name"], field["type"]) for field in fields] == [("user", "string"), ("place", "struct")]
    assert fields[1]["fields"][0]["name"] == "city"
    assert output["facets"]["version"]["datasetVersion"] == str(commit.seqno)
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 2
    made = output["facets"]["columnLineage"]["fields"]["user"]["inputFields"]
    assert [(one["namespace"], one["name"], one["field"]) for one in made] == [("file", "/in.csv", "user")]
    with open_database(f"sqlite:///{tmp_path}/lineage.db") as database:
        for event in endpoint.events:
            ingest_event(database, decode_event(event), received_at=0)
        with database.reading() as connection:
            found = neighbours(connection, "events", 3)
    assert [step["dataset"] for step in found["fedBy"]] == ["dataset:file:/in.csv"]
    assert found["feeds"] == []


def test_a_write_that_fails_is_a_run_that_failed(endpoint: Endpoint, tmp_path: Path) -> None:
    """What was refused is reported with the reason, and raises as it would without reporting."""
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("events", "n int")
        with pytest.raises(InstarError):
            table.append(pa.table({"n": ["no number"]}))
    assert sender.flush(30)
    assert endpoint.events[-1]["eventType"] == "FAIL"
    assert "DataMismatchError" in endpoint.events[-1]["run"]["facets"]["errorMessage"]["message"]


def test_an_endpoint_that_does_not_answer_costs_a_writer_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A write returns before a dead endpoint has been given up, and what is not sent is counted."""
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:9")
    failed, dropped = _count("failed"), _count("dropped")
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("events", "n int")
        for number in range(3):
            table.append(pa.table({"n": [number]}))
        assert table.count() == 3
    assert sender.flush(60)
    assert _count("failed") == failed + 1  # after that, it is left alone for a while
    assert _count("dropped") == dropped + 5


def test_a_full_queue_drops_events_and_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most so many events wait, however slow the endpoint is."""
    gate = threading.Event()
    monkeypatch.setattr(sender.Sender, "_deliver", lambda *_: gate.wait())
    slow = sender.Sender(capacity=2)
    before = _count("dropped")
    for _ in range(10):
        slow.send(Notice("START", "", "", ""))
        time.sleep(0.001)
    assert _count("dropped") - before in {7, 8}
    gate.set()
    assert slow.flush(10)


def test_the_file_of_the_client_configures_reporting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the client would find, instar finds: a URL, a file that is named, or one in the usual places."""
    assert not is_configured()
    (tmp_path / "openlineage.yml").write_text("transport:\n  type: console\n")
    assert is_configured()
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    assert not is_configured()


def test_nothing_is_loaded_or_started_without_a_configuration(tmp_path: Path) -> None:
    """Without an endpoint, a write imports no client and starts no thread."""
    script = """
import sys, threading, instar, pyarrow as pa
with instar.open("lake") as store:
    store.create_table("t", "n int").append(pa.table({"n": [1]}))
loaded = [name for name in sys.modules if name.startswith(("openlineage", "instar.reporting.sender"))]
assert not loaded, loaded
assert not [thread for thread in threading.enumerate() if thread.name == "instar-lineage"]
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path)


def test_a_compaction_is_a_run_that_writes_a_version_if_it_did_anything(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    """What was rewritten is reported with its parts and bytes; if nothing was, no version is."""
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("events", "n int")
        table.compact()
        assert "outputs" not in endpoint.completed("events.compact") or not endpoint.events[-1]["outputs"]
        for number in range(4):
            table.append(pa.table({"n": [number]}))
        report = table.compact(full=True)
        seqno = table.state.seqno
    complete = endpoint.completed("events.compact")
    assert complete["job"]["facets"]["jobType"]["jobType"] == "COMPACTION"
    (output,) = complete["outputs"]
    assert output["facets"]["version"]["datasetVersion"] == str(seqno)
    statistics = output["outputFacets"]["outputStatistics"]
    assert (statistics["fileCount"], statistics["size"]) == (report.parts_after, report.bytes_after)


def test_a_change_of_no_row_is_a_run_that_made_no_version(endpoint: Endpoint, tmp_path: Path) -> None:
    """The version that it found is that of another run."""
    with instar.open(tmp_path / "lake") as store:
        table = store.create_table("events", "n int")
        table.append([{"n": 1}])
        table.delete("n = 2")
    assert sender.flush(30)
    (output,) = endpoint.events[-1]["outputs"]
    assert "version" not in output["facets"]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 0


def test_a_stream_is_a_dataset_for_each_kind_of_its_tables(endpoint: Endpoint) -> None:
    """Writes fill regular and hourly tables, and jobs copy the regular ones, column by column."""
    stream = make_stream(new_world())
    stream.write(events([2, 1]))
    write = endpoint.completed("billing/events.write")
    assert [one["name"] for one in write["outputs"]] == ["billing/events/1d", "billing/events/6h"]
    assert {one["outputFacets"]["outputStatistics"]["rowCount"] for one in write["outputs"]} == {4}
    stream.close_day(None, day(2))
    stream.repartition(by="at")
    stream.archive(before=day(0))
    for job, kind in (("close_day", "eod"), ("repartition", "repartitioned"), ("archive", "archive")):
        copied = endpoint.completed(f"billing/events.{job}")
        assert [one["name"] for one in copied["inputs"]] == ["billing/events/1d"]
        (output,) = copied["outputs"]
        (period,) = {table.name.rpartition("/")[0] for table in stream.tables(kind)}
        assert output["name"] == period
        assert column_sources(copied)["user"] == {("billing/events/1d", "user", "IDENTITY")}
    stream.archive(before=day(0))  # nothing is new
    assert not endpoint.completed("billing/events.archive").get("outputs")


def test_an_endpoint_that_never_answers_does_not_keep_a_process(tmp_path: Path) -> None:
    """A process that ends gives its last events a moment, however long the endpoint would take."""
    script = """
import instar, pyarrow as pa
with instar.open("lake") as store:
    store.create_table("t", "n int").append(pa.table({"n": [1]}))
"""
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # takes connections, and says nothing
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        environment = {**os.environ, "OPENLINEAGE_URL": url}
        command = [sys.executable, "-c", script]
        subprocess.run(command, check=True, cwd=tmp_path, env=environment, timeout=60)

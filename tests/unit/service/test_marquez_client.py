"""marquez-python, the client that people have, works unchanged: every call that it makes."""

from __future__ import annotations

import uuid
import warnings
from typing import TYPE_CHECKING

import pytest
from marquez_client import MarquezClient
from marquez_client.errors import APIError
from marquez_client.models import DatasetId, DatasetType, JobType

from testbed.lineage import dataset, run_event

if TYPE_CHECKING:
    from testbed.service import Client

NAMESPACE = "s3://bucket/with:colon%2Fand space"


@pytest.fixture
def marquez(service: Client) -> MarquezClient:
    """Return the client."""
    warnings.simplefilter("ignore", DeprecationWarning)
    return MarquezClient(service.url)


def test_the_legacy_writes_and_all_reads(marquez: MarquezClient, service: Client) -> None:  # noqa: PLR0915 -- every call
    """Namespaces, sources, datasets, jobs, runs, tags and column lineage are written and read back."""
    made = marquez.create_namespace(NAMESPACE, "me", "mine")
    assert (made["name"], made["ownerName"], made["description"]) == (NAMESPACE, "me", "mine")
    assert marquez.get_namespace(NAMESPACE) == made
    assert [one["name"] for one in marquez.list_namespaces()["namespaces"]] == [NAMESPACE]

    source = marquez.create_source("my/source", "postgresql", "postgresql://db:5432/x", "a source")
    assert source["type"] == "POSTGRESQL"
    assert marquez.get_source("my/source") == source
    assert marquez.list_sources()["sources"] == [source]

    fields = [
        {"name": "a", "type": "INTEGER", "tags": ["PII"], "description": "first"},
        {"name": "b", "type": None},
    ]
    name = "public.orders/2024:x"
    shown = marquez.create_dataset(
        NAMESPACE, name, DatasetType.DB_TABLE, "public.orders", "my/source", "orders", fields=fields,
        tags=["GOLD"],
    )  # fmt: skip
    assert shown["id"] == {"namespace": NAMESPACE, "name": name}
    assert shown["physicalName"] == "public.orders"
    assert shown["sourceName"] == "my/source"
    assert shown["tags"] == ["GOLD"]
    assert [(one["name"], one["type"], one["tags"]) for one in shown["fields"]] == [
        ("a", "INTEGER", ["PII"]),
        ("b", None, []),
    ]
    assert marquez.get_dataset(NAMESPACE, name) == shown
    again = marquez.create_dataset(
        NAMESPACE, name, DatasetType.DB_TABLE, "public.orders", "my/source", "orders", fields=fields
    )
    assert again["currentVersion"] == shown["currentVersion"], "the same dataset is no new version"
    listed = marquez.list_datasets(NAMESPACE)
    assert (listed["totalCount"], [one["name"] for one in listed["datasets"]]) == (1, [name])
    versions = marquez.list_dataset_versions(NAMESPACE, name)
    assert versions["totalCount"] == len(versions["versions"]) == 1
    version = versions["versions"][0]
    assert marquez.get_dataset_version(NAMESPACE, name, version["version"]) == version
    assert version["version"] == shown["currentVersion"]

    job = marquez.create_job(
        NAMESPACE, "job/1", JobType.BATCH, "https://code/x", inputs=[DatasetId(NAMESPACE, name)],
        outputs=[DatasetId(NAMESPACE, "out")], description="a job", context={"sql": "select 1"},
    )  # fmt: skip
    assert (job["type"], job["location"], job["description"]) == ("BATCH", "https://code/x", "a job")
    assert job["inputs"] == [{"namespace": NAMESPACE, "name": name}]
    assert job["outputs"] == [{"namespace": NAMESPACE, "name": "out"}]
    assert marquez.get_job(NAMESPACE, "job/1") == job
    assert marquez.list_jobs(NAMESPACE)["jobs"] == [job]

    run_id = str(uuid.uuid4())
    run = marquez.create_job_run(
        NAMESPACE, "job/1", run_id, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", {"x": "1"}
    )
    assert (run["id"], run["state"], run["args"]) == (run_id, "NEW", {"x": "1"})
    assert run["nominalStartTime"] == "2026-01-01T00:00:00Z"
    with pytest.raises(APIError):
        marquez.create_job_run(NAMESPACE, "job/1", run_id)
    assert marquez.mark_job_run_as_started(run_id)["state"] == "RUNNING"
    written = marquez.create_dataset(
        NAMESPACE, "out", DatasetType.DB_TABLE, "out", "my/source", run_id=run_id,
        fields=[{"name": "a", "type": "INTEGER"}],
    )  # fmt: skip
    assert written["currentVersion"] is None, "the run has not completed"
    done = marquez.mark_job_run_as_completed(run_id)
    assert done["state"] == "COMPLETED"
    assert done["durationMs"] is not None
    assert marquez.get_job_run(run_id) == done
    output = done["outputDatasetVersions"][0]["datasetVersionId"]
    found = marquez.get_dataset_version(NAMESPACE, "out", output["version"])
    assert found["createdByRun"]["id"] == run_id, "the version that a run names can be asked for"
    other = marquez.create_job_run(NAMESPACE, "job/1", mark_as_running=True)
    assert marquez.mark_job_run_as_failed(other["id"])["state"] == "FAILED"
    third = marquez.create_job_run(NAMESPACE, "job/1")
    assert marquez.mark_job_run_as_aborted(third["id"])["state"] == "ABORTED"
    runs = marquez.list_job_runs(NAMESPACE, "job/1")
    assert (runs["totalCount"], runs["runs"][0]["id"]) == (3, third["id"])

    assert marquez.create_tag("NEW", "new")["description"] == "new"
    assert {one["name"] for one in marquez.list_tags()["tags"]} == {"GOLD", "NEW", "PII"}
    assert marquez.tag_dataset(NAMESPACE, name, "NEW")["tags"] == ["GOLD", "NEW"]
    tagged = marquez.tag_dataset_field(NAMESPACE, name, "b", "NEW")
    assert tagged["fields"][1]["tags"] == ["NEW"]
    assert marquez.list_events()["totalCount"] >= 5
    assert marquez.list_events(namespace="jobs")["totalCount"] == 0


def test_column_lineage(marquez: MarquezClient, service: Client) -> None:
    """Columns are followed by dataset, by column and by job, upstream and downstream."""
    made = {"fields": {"b": {"inputFields": [{"namespace": "db", "name": "x", "field": "a"}]}}}
    service.tell(run_event("COMPLETE", 1, outputs=[dataset("y", "b int", columnLineage=made)]))
    for graph in (
        marquez.get_column_lineage_by_dataset("db", "y"),
        marquez.get_column_lineage_by_dataset_field("db", "y", "b"),
        marquez.get_column_lineage_by_job("jobs", "job"),
        marquez.get_column_lineage_by_dataset_field("db", "x", "a", with_downstream=True),
    ):
        nodes = {node["id"]: node for node in graph["graph"]}
        assert nodes.keys() == {"datasetField:db:x:a", "datasetField:db:y:b"}
        edge = {"origin": "datasetField:db:y:b", "destination": "datasetField:db:x:a"}
        assert nodes["datasetField:db:y:b"]["inEdges"] == [edge]
        assert nodes["datasetField:db:y:b"]["data"]["inputFields"][0]["field"] == "a"
    version = marquez.get_dataset("db", "y")["currentVersion"]
    graph = marquez.get_column_lineage_by_dataset("db", "y", version=version)
    assert len(graph["graph"]) == 2
    with pytest.raises(APIError):
        marquez.get_column_lineage_by_dataset("db", "y", version=version, with_downstream=True)


def test_what_is_not_known_is_an_error(marquez: MarquezClient) -> None:
    """Unknown names are 404, and a dataset of an unknown namespace cannot be made."""
    with pytest.raises(APIError):
        marquez.get_namespace("x")
    with pytest.raises(APIError):
        marquez.get_source("x")
    with pytest.raises(APIError):
        marquez.create_dataset("x", "x", DatasetType.DB_TABLE, "x", "x")
    with pytest.raises(APIError):
        marquez.get_job_run(str(uuid.uuid4()))

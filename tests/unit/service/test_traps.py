"""What went wrong elsewhere, and does not here: each trap of other services is a fact about this one."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from testbed.lineage import dataset, run_event

if TYPE_CHECKING:
    import pytest

    from testbed.service import Client


def path(namespace: str, name: str, kind: str = "datasets") -> str:
    """Return the path of a dataset or job."""
    return f"/namespaces/{quote(namespace, safe='')}/{kind}/{quote(name, safe='')}"


def test_names_with_slashes_and_escapes_are_routed_as_they_were_sent(service: Client) -> None:
    """A name may contain a slash, a whole path of the API, a percent sign or an escape."""
    names = ["a/datasets/b", "%2F", "100%", "a//b/", "ü", "a?b#c", "versions/1", " "]
    service.tell(run_event("COMPLETE", 1, outputs=[dataset(f"s3://b/c|{name}") for name in names]))
    for name in names:
        assert service.ask(path("s3://b/c", name))["name"] == name
        assert service.ask(f"{path('s3://b/c', name)}/versions")["totalCount"] == 1


def test_node_ids_are_resolved_against_known_names(service: Client) -> None:
    """Namespaces and names with colons, digits and hashes are found, however they could be split."""
    names = [("arn:aws:glue:eu:1", "table/x"), ("s3://b", "2024_sales"), ("s3://b:80", "a#b"), ("a", "b:c:d")]
    outputs = [dataset("x", "f int") | {"namespace": one, "name": two} for one, two in names]
    service.tell(run_event("COMPLETE", 1, outputs=outputs))
    for namespace, name in names:
        graph = service.ask("/lineage", nodeId=f"dataset:{namespace}:{name}", depth=1)["graph"]
        assert f"dataset:{namespace}:{name}" in {node["id"] for node in graph}
        columns = service.ask("/column-lineage", nodeId=f"datasetField:{namespace}:{name}:f")["graph"]
        assert [node["data"]["dataset"] for node in columns] == [name]


def test_namespaces_are_never_rewritten(service: Client) -> None:
    """A namespace with unusual characters is one namespace, under the name that events use."""
    service.tell(run_event("COMPLETE", 1, outputs=[dataset("kafka;x=1 & é|topic", "a int")]))
    names = {space["name"] for space in service.ask("/namespaces")["namespaces"]}
    assert names == {"jobs", "kafka;x=1 & é"}
    assert service.ask(f"{path('kafka;x=1 & é', 'topic')}/versions")["totalCount"] == 1


def symlink(name: str) -> dict[str, Any]:
    """Return a facet that gives a dataset another name."""
    namespace, _, short = name.rpartition("|")
    return {"identifiers": [{"namespace": namespace or "db", "name": short, "type": "TABLE"}]}


def test_symlinks_unite_datasets_that_exist_already(service: Client) -> None:
    """Two datasets that turn out to be one are one: versions, schemas, graph, search and runs agree."""
    service.tell(
        run_event("COMPLETE", 1, 1, job="writer", outputs=[dataset("s3://b|path", "a int")]),
        run_event("COMPLETE", 2, 2, job="reader", inputs=[dataset("table")], outputs=[dataset("out")]),
        run_event(
            "COMPLETE", 3, 3, job="writer", outputs=[dataset("s3://b|path", symlinks=symlink("table"))]
        ),
    )
    one, other = service.ask(path("s3://b", "path")), service.ask(path("db", "table"))
    assert one == other
    assert one["name"] == "path"
    for name in (path("s3://b", "path"), path("db", "table")):
        assert service.ask(f"{name}/versions")["totalCount"] == 2
        assert service.ask(f"{name}/schema-versions")["totalCount"] == 1
    graph = service.ask("/lineage", nodeId="dataset:db:table")["graph"]
    assert {node["id"] for node in graph} == {
        "dataset:s3://b:path", "job:jobs:writer", "job:jobs:reader", "dataset:db:out",
    }  # fmt: skip
    read = service.ask("/namespaces/jobs/jobs/reader/runs")["runs"][0]["inputDatasetVersions"]
    first = service.ask(f"{path('db', 'table')}/versions")["versions"][1]
    assert read[0]["datasetVersionId"] == {"namespace": "s3://b", "name": "path", "version": first["version"]}
    found = service.ask("/search", q="table")
    assert (found["totalCount"], found["results"][0]["nodeId"]) == (1, "dataset:s3://b:path")
    assert service.ask("/search", q="table", namespace="db")["totalCount"] == 1
    assert service.ask("/namespaces/db/datasets")["totalCount"] == 1


def test_a_missing_facet_takes_nothing_away(service: Client) -> None:
    """A description stays until another one comes, or until it is deleted."""
    documented = dataset("x", "a int", documentation={"description": "words"})
    service.tell(
        run_event("COMPLETE", 1, 1, outputs=[documented]),
        run_event("COMPLETE", 2, 2, outputs=[dataset("x", "a int")]),
    )
    assert service.ask(path("db", "x"))["description"] == "words"
    gone = dataset("x", documentation={"_deleted": True})
    service.tell(run_event("COMPLETE", 3, 3, outputs=[gone]))
    assert service.ask(path("db", "x"))["description"] is None
    assert "documentation" not in service.ask(path("db", "x"))["facets"]


def test_facets_of_an_input_belong_to_the_run(service: Client) -> None:
    """What one run measured about its input is no property of the dataset."""
    measured = dataset("x") | {"inputFacets": {"dataQualityMetrics": {"rowCount": 7}}}
    service.tell(run_event("COMPLETE", 1, inputs=[measured]))
    assert service.ask(path("db", "x"))["facets"] == {}
    run = service.ask("/namespaces/jobs/jobs/job/runs")["runs"][0]
    assert run["inputDatasetVersions"][0]["facets"] == {"dataQualityMetrics": {"rowCount": 7}}


def test_a_run_that_failed_leaves_the_current_version_alone(service: Client) -> None:
    """Only what a completed run wrote is current."""
    service.tell(
        run_event("COMPLETE", 1, 1, outputs=[dataset("x", "a int")]),
        run_event("FAIL", 2, 2, outputs=[dataset("x", "b int")]),
    )
    shown = service.ask(path("db", "x"))
    assert [field["name"] for field in shown["fields"]] == ["a"]
    versions = service.ask(f"{path('db', 'x')}/versions")
    assert versions["totalCount"] == 2
    assert versions["versions"][1]["version"] == shown["currentVersion"]


def test_a_dataset_is_dropped_when_the_run_that_drops_it_completes(service: Client) -> None:
    """START drops nothing, a reader revives nothing, and the next writer does."""
    drop = dataset("x", lifecycleStateChange={"lifecycleStateChange": "DROP"})
    service.tell(run_event("COMPLETE", 1, 1, outputs=[dataset("x", "a int")]))
    service.tell(run_event("START", 2, 2, outputs=[drop]))
    assert service.ask(path("db", "x"))["deleted"] is False
    service.tell(run_event("COMPLETE", 3, 2, outputs=[drop]))
    assert service.ask(path("db", "x"))["deleted"] is True
    service.tell(run_event("COMPLETE", 4, 3, inputs=[dataset("x")]))
    assert service.ask(path("db", "x"))["deleted"] is True
    service.tell(run_event("COMPLETE", 5, 4, outputs=[dataset("x", "a int")]))
    assert service.ask(path("db", "x"))["deleted"] is False


def test_column_lineage_is_kept_without_a_schema_and_without_inputs(service: Client) -> None:
    """What an event says about columns counts, whatever else it leaves out."""
    made = {"fields": {"b": {"inputFields": [{"namespace": "db", "name": "x", "field": "a"}]}}}
    service.tell(run_event("COMPLETE", 1, outputs=[dataset("y", columnLineage=made)]))
    graph = service.ask("/column-lineage", nodeId="datasetField:db:y:b")["graph"]
    assert {node["id"] for node in graph} == {"datasetField:db:x:a", "datasetField:db:y:b"}


def test_a_child_is_found_under_its_name_and_under_its_parents(service: Client) -> None:
    """A job keeps the name that events use, and `parent.child` means the same job."""
    parent = {"parent": {"job": {"namespace": "jobs", "name": "dag"}, "run": {"runId": "x"}}}
    service.tell(run_event("COMPLETE", 1, job="task", facets=parent))
    job = service.ask("/namespaces/jobs/jobs/task")
    assert (job["simpleName"], job["parentJobName"]) == ("task", "dag")
    assert service.ask("/namespaces/jobs/jobs/dag.task") == job
    service.tell(run_event("COMPLETE", 2, 2, job="dag.other", facets=parent))
    assert service.ask("/namespaces/jobs/jobs/dag.other")["simpleName"] == "other"


def test_a_run_id_may_be_any_text(service: Client) -> None:
    """A run whose id is no UUID is found under its own id, and under the UUID that Marquez makes of it."""
    service.tell(run_event("COMPLETE", 1, "scheduled__2026/01"))
    run = service.ask(f"/jobs/runs/{quote('scheduled__2026/01', safe='')}")
    assert run["externalId"] == "scheduled__2026/01"
    assert service.ask(f"/jobs/runs/{run['id']}") == run


def test_an_event_without_inputs_wipes_no_edges(service: Client) -> None:
    """Edges are the union over runs, there from the first event on."""
    service.tell(run_event("START", 1, inputs=[dataset("x")], outputs=[dataset("y")]))
    job = service.ask("/namespaces/jobs/jobs/job")
    assert job["inputs"] == [{"namespace": "db", "name": "x"}]
    service.tell(run_event("COMPLETE", 2), run_event("COMPLETE", 3, 2))
    assert service.ask("/namespaces/jobs/jobs/job")["outputs"] == job["outputs"]
    assert len(service.ask("/lineage", nodeId="job:jobs:job")["graph"]) == 3


def test_untyped_fields_are_found_again(service: Client) -> None:
    """A field without a type is the same field in the next event."""
    for run in range(1, 4):
        service.tell(run_event("COMPLETE", run, run, outputs=[dataset("x", "a, b")]))
    assert service.ask(f"{path('db', 'x')}/schema-versions")["totalCount"] == 1


def test_one_column_never_has_two_types(service: Client) -> None:
    """A reader that sees another type of a column replaces it in the version that it read."""
    service.tell(
        run_event("COMPLETE", 1, 1, outputs=[dataset("x", "a int, b int")]),
        run_event("COMPLETE", 2, 2, inputs=[dataset("x", "a bigint")]),
    )
    shown = service.ask(path("db", "x"))
    assert [(field["name"], field["type"]) for field in shown["fields"]] == [("a", "bigint"), ("b", "int")]
    version = service.ask(f"{path('db', 'x')}/versions")["versions"][0]
    assert version["fields"] == shown["fields"]
    assert version["currentSchemaVersion"] == shown["currentSchemaVersion"]


def test_every_dataset_of_a_list_has_its_facets(service: Client) -> None:
    """A long list shows as much of the last dataset as of the first."""
    outputs = [dataset(f"x{n:02}", documentation={"description": str(n)}) for n in range(15)]
    service.tell(run_event("COMPLETE", 1, outputs=outputs))
    listed = service.ask("/namespaces/db/datasets")["datasets"]
    assert [one["facets"]["documentation"]["description"] for one in listed] == [str(n) for n in range(15)]


def test_search_sorts_and_counts(service: Client) -> None:
    """The order is the one that was asked for, and the total is not the size of the page."""
    service.tell(
        run_event("COMPLETE", 1, 1, job="b_x", outputs=[dataset("c_x")]),
        run_event("COMPLETE", 2, 2, job="z", outputs=[dataset("A_X"), dataset("100%")]),
    )
    by_name = service.ask("/search", q="_x", limit=2)
    assert (by_name["totalCount"], [one["name"] for one in by_name["results"]]) == (3, ["A_X", "b_x"])
    by_time = service.ask("/search", q="_x", sort="UPDATE_AT")["results"]
    assert [one["name"] for one in by_time] == ["A_X", "b_x", "c_x"]
    assert [one["type"] for one in service.ask("/search", q="_x", filter="JOB")["results"]] == ["JOB"]
    assert service.ask("/search", q="%")["totalCount"] == 1


def test_search_finds_names_in_other_alphabets(service: Client) -> None:
    """A name is found as it is written; in another case too, as far as the database knows the letters."""
    service.tell(run_event("COMPLETE", 1, outputs=[dataset("ÄÖÜ_Straße"), dataset("Заказы")]))
    for text in ("ÄÖÜ", "Straße", "Заказ"):
        assert service.ask("/search", q=text)["totalCount"] == 1, text
    if service.service.database.is_sqlite:
        for text in ("äöü", "заказ"):
            assert service.ask("/search", q=text)["totalCount"] == 1, text


def test_only_events_of_runs_are_listed_where_marquez_lists_them(service: Client) -> None:
    """Whoever asks `/events/lineage` expects a run in each event; `/events` has all kinds."""
    at = "2026-01-01T00:00:09Z"
    service.tell(
        run_event("COMPLETE", 1),
        {"eventTime": at, "dataset": dataset("x", "a int")},
        {"eventTime": at, "job": {"namespace": "jobs", "name": "static"}},
    )
    assert service.ask("/events/lineage")["totalCount"] == 1
    assert service.ask("/events")["totalCount"] == 3


def test_hidden_things_are_not_followed_and_come_back_with_an_event(service: Client) -> None:
    """What was deleted is in no list and in no graph, until an event names it again."""
    event = run_event("COMPLETE", 1, inputs=[dataset("x")], outputs=[dataset("y")])
    service.tell(event)
    assert service.delete("/api/v1/namespaces/jobs/jobs/job").status_code == 200
    assert len(service.ask("/lineage", nodeId="dataset:db:x")["graph"]) == 1
    assert service.get("/api/v1/namespaces/jobs/jobs/job").status_code == 404
    assert service.delete("/api/v1/namespaces/db/datasets/y").json()["name"] == "y"
    for node in ("dataset:db:y", "job:jobs:job"):
        assert service.get("/api/v1/lineage", params={"nodeId": node}).status_code == 404
    assert service.ask("/namespaces/db/datasets")["totalCount"] == 1
    service.tell(run_event("COMPLETE", 2, 2, inputs=[dataset("x")], outputs=[dataset("y")]))
    assert len(service.ask("/lineage", nodeId="dataset:db:x")["graph"]) == 3
    assert service.ask("/namespaces/db/datasets")["totalCount"] == 2
    assert service.delete("/api/v1/namespaces/db").status_code == 200
    assert [one["name"] for one in service.ask("/namespaces")["namespaces"]] == ["jobs"]


def test_unparsable_events_are_refused_and_never_retried(service: Client) -> None:
    """Bad JSON, bad dates and bad gzip are 4xx, with one shape of error; nothing of them is kept."""
    good = run_event("COMPLETE", 1, outputs=[dataset("x")])
    bodies: list[tuple[int, bytes, dict[str, str]]] = [
        (400, b"{", {}),
        (400, b"\xff\xfe", {}),
        (400, b'{"a": "\\ud800"}', {}),
        (400, b"[" * 100_000, {}),
        (422, b"", {}),
        (422, b"[]", {}),
        (422, b"1", {}),
        (400, b"not gzip", {"content-encoding": "gzip"}),
        (400, gzip.compress(b"{}")[:-4], {"content-encoding": "gzip"}),
        (413, gzip.compress(b" " * (20 * 2**20)), {"content-encoding": "gzip"}),
        (400, gzip.compress(b"") * 1000, {"content-encoding": "gzip"}),  # each member copied all that follow
        (413, b" " * (17 * 2**20), {}),
        (415, b"{}", {"content-encoding": "br"}),
    ]
    for status, body, headers in bodies:
        response = service.post("/api/v1/lineage", content=body, headers=headers)
        assert (response.status_code, response.json()["code"]) == (status, status), body[:20]
    for change in (
        {"eventTime": "2026-13-01T00:00:00Z"},
        {"eventTime": "2026-01-01"},
        {"eventTime": 5},
        {"eventType": "EXPLODE"},
        {"schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/WeatherEvent"},
        {"run": None},
        {"run": {"runId": ""}},
        {"job": {"namespace": "x"}},
        {"job": {"namespace": "x\0", "name": "y"}},
        {"outputs": [dataset("x", schema={"fields": "none"})]},
        {"outputs": [dataset("x", schema={"fields": [{"type": "int"}]})]},
        {"outputs": [dataset("x", symlinks={"identifiers": [{"namespace": "x"}]})]},
        {"outputs": [dataset("x" * 3000)]},
        {"outputs": [dataset("x", columnLineage={"fields": {"a": {"transformationType": "\0"}}})]},
        {"outputs": [dataset("x", columnLineage={"fields": {"a": {"transformationDescription": "\0"}}})]},
    ):
        response = service.post("/api/v1/lineage", json={**good, **change})
        assert response.status_code == 422, (change, response.text)
        assert response.json().keys() == {"code", "message", "error"}
    assert service.ask("/events/lineage")["totalCount"] == 0
    assert service.ask("/namespaces")["totalCount"] == 0


def test_a_batch_says_which_events_failed(service: Client) -> None:
    """Good events of a batch are stored, and bad ones are named."""
    events = [run_event("COMPLETE", 1), {"eventTime": "x"}, run_event("COMPLETE", 2, 2)]
    answer = service.post("/api/v1/lineage/batch", json=events)
    assert answer.status_code == 200
    assert answer.json()["status"] == "partial_success"
    assert answer.json()["summary"] == {
        "received": 3, "successful": 2, "failed": 1, "retriable": 0, "non_retriable": 1,
    }  # fmt: skip
    assert [(one["index"], one["retriable"]) for one in answer.json()["failed_events"]] == [(1, False)]
    assert service.post("/api/v1/lineage/batch", json=events[:1]).json()["status"] == "success"
    assert service.ask("/events/lineage")["totalCount"] == 2


def test_long_lists_are_counted_up_to_a_limit(service: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that grows forever says how many there are behind the page, but does not count them all."""
    service.tell(*[run_event("COMPLETE", number, number + 1) for number in range(9)])
    runs = "/namespaces/jobs/jobs/job/runs"
    assert service.ask(runs, limit=2)["totalCount"] == 9
    monkeypatch.setattr("instar.lineage.queries.rows.COUNTED", 3)
    assert service.ask(runs, limit=2)["totalCount"] == 5
    assert service.ask(runs, limit=2, offset=6)["totalCount"] == 9
    assert service.ask("/events/lineage", limit=1)["totalCount"] == 4

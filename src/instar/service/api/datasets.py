"""Datasets: their versions, schemas, tags and policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from instar.lineage import edits
from instar.lineage.queries.alerts import list_alerts
from instar.lineage.queries.datasets import list_datasets, list_versions, show_dataset, show_version
from instar.lineage.queries.names import load_dataset, load_namespace
from instar.lineage.queries.schemas import diff_schema_versions, list_schema_versions, show_schema_version
from instar.service.parameters import PAGE, page_of
from instar.service.routing import ApiCall, Endpoint, Reply
from instar.service.webhooks import check_webhook

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from sqlalchemy import Connection

__all__ = ["DATASETS"]


def _ask(call: ApiCall, question: Callable[[Connection, UUID], Any]) -> Reply:
    """Ask something about the dataset that the path names."""
    with call.database.reading() as connection:
        return Reply(question(connection, load_dataset(connection, call["namespace"], call["dataset"])))


def get_datasets(call: ApiCall) -> Reply:
    """List the datasets of a namespace."""
    with call.database.reading() as connection:
        namespace = load_namespace(connection, call["namespace"])
        return Reply(list_datasets(connection, namespace, page_of(call.query)))


def get_dataset(call: ApiCall) -> Reply:
    """Show a dataset."""
    return _ask(call, show_dataset)


def put_dataset(call: ApiCall) -> Reply:
    """Create or change a dataset."""
    edits.put_dataset(call.database, call["namespace"], call["dataset"], call.body, now=call.now)
    return get_dataset(call)


def delete_dataset(call: ApiCall) -> Reply:
    """Hide a dataset."""
    return Reply(edits.delete_dataset(call.database, call["namespace"], call["dataset"]))


def get_versions(call: ApiCall) -> Reply:
    """List the versions of a dataset."""
    return _ask(call, lambda connection, root: list_versions(connection, root, page_of(call.query)))


def get_version(call: ApiCall) -> Reply:
    """Show a version of a dataset."""
    return _ask(call, lambda connection, root: show_version(connection, root, call["version"]))


def get_schema_versions(call: ApiCall) -> Reply:
    """List the schemas that a dataset has had."""
    return _ask(call, lambda connection, root: list_schema_versions(connection, root, page_of(call.query)))


def get_schema_version(call: ApiCall) -> Reply:
    """Show a schema of a dataset."""
    return _ask(call, lambda connection, root: show_schema_version(connection, root, call["version"]))


def get_schema_diff(call: ApiCall) -> Reply:
    """Compare two schemas of a dataset."""
    return _ask(
        call, lambda connection, root: diff_schema_versions(connection, root, call["old"], call["new"])
    )


def get_alerts(call: ApiCall) -> Reply:
    """List the alerts of a dataset."""
    return _ask(call, lambda connection, root: list_alerts(connection, page_of(call.query), root))


def put_policy(call: ApiCall) -> Reply:
    """Set the compatibility policy of a dataset."""
    webhook = call.body.get("webhookUrl") if isinstance(call.body, dict) else None
    if isinstance(webhook, str):
        check_webhook(webhook, allow_local=call.allow_local_webhooks)
    return Reply(edits.put_policy(call.database, call["namespace"], call["dataset"], call.body))


def change_tag(*, remove: bool) -> Callable[[ApiCall], Reply]:
    """Return a handler that gives a dataset a tag, or takes it away."""

    def handler(call: ApiCall) -> Reply:
        edits.tag_dataset(call.database, call["namespace"], call["dataset"], call["tag"], remove=remove)
        return get_dataset(call)

    return handler


def change_field_tag(*, remove: bool) -> Callable[[ApiCall], Reply]:
    """Return a handler that gives a field a tag, or takes it away."""

    def handler(call: ApiCall) -> Reply:
        edits.tag_field(
            call.database, call["namespace"], call["dataset"], call["field"], call["tag"], remove=remove
        )
        return get_dataset(call)

    return handler


_ALL = "/api/v1/namespaces/{namespace}/datasets"
_ONE = f"{_ALL}/{{dataset}}"
_TAG = f"{_ONE}/tags/{{tag}}"
_FIELD_TAG = f"{_ONE}/fields/{{field}}/tags/{{tag}}"
_SCHEMAS = f"{_ONE}/schema-versions"

DATASETS = [
    Endpoint("GET", _ALL, get_datasets, "List the datasets of a namespace.", PAGE),
    Endpoint("GET", _ONE, get_dataset, "Show a dataset, under any of its names."),
    Endpoint("PUT", _ONE, put_dataset, "Create or change a dataset.", body="Dataset", writes=True),
    Endpoint("DELETE", _ONE, delete_dataset, "Hide a dataset until the next event.", writes=True),
    Endpoint("GET", f"{_ONE}/versions", get_versions, "List the versions of a dataset.", PAGE),
    Endpoint("GET", f"{_ONE}/versions/{{version}}", get_version, "Show a version of a dataset."),
    Endpoint("GET", _SCHEMAS, get_schema_versions, "List the schemas that a dataset has had.", PAGE),
    Endpoint("GET", f"{_SCHEMAS}/{{version}}", get_schema_version, "Show a schema of a dataset."),
    Endpoint("GET", f"{_SCHEMAS}/{{old}}/diff/{{new}}", get_schema_diff, "Compare two schemas of a dataset."),
    Endpoint("GET", f"{_ONE}/alerts", get_alerts, "List the alerts of a dataset.", PAGE),
    Endpoint("PUT", f"{_ONE}/compatibility", put_policy, "Set the compatibility policy.", body="Policy",
             writes=True),
    Endpoint("POST", _TAG, change_tag(remove=False), "Tag a dataset.", writes=True),
    Endpoint("DELETE", _TAG, change_tag(remove=True), "Take a tag from a dataset.", writes=True),
    Endpoint("POST", _FIELD_TAG, change_field_tag(remove=False), "Tag a field.", writes=True),
    Endpoint("DELETE", _FIELD_TAG, change_field_tag(remove=True), "Take a tag from a field.", writes=True),
]  # fmt: skip

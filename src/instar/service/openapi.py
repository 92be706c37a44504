"""The OpenAPI document, made from the endpoints: what is described is what is served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from instar import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from instar.service.routing import Endpoint

__all__ = ["describe"]

_NAME: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 2048, "pattern": "^[^\\u0000]+$"}
_TEXT: dict[str, Any] = {"type": ["string", "null"], "pattern": "^[^\\u0000]*$"}
_OPEN: dict[str, Any] = {"type": "object"}


def _object(required: Sequence[str] = (), **properties: Any) -> dict[str, Any]:  # noqa: ANN401 -- JSON Schema
    return {"type": "object", "required": list(required), "properties": properties}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


_FACETS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "object"}}
_EVENT_JOB = _object(["namespace", "name"], namespace=_NAME, name=_NAME, facets=_FACETS)
_EVENT_DATASET = _object(
    ["namespace", "name"],
    namespace=_NAME, name=_NAME, facets=_FACETS, inputFacets=_FACETS, outputFacets=_FACETS,
)  # fmt: skip
_DATASET_ID = _object(["namespace", "name"], namespace=_NAME, name=_NAME)

SCHEMAS: dict[str, Any] = {
    "Error": _object(
        ["code", "message"],
        code={"type": "integer", "description": "The HTTP status."},
        message={"type": "string"},
        error={"type": "string", "description": "What kind of error it is; see docs/errors.md."},
    ),
    "Event": _object(
        ["eventTime"],
        eventTime={"type": "string", "format": "date-time"},
        eventType={"type": "string", "enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
        producer={"type": "string"},
        schemaURL={"type": "string"},
        run=_object(["runId"], runId=_NAME, facets=_FACETS),
        job=_EVENT_JOB,
        dataset=_EVENT_DATASET,
        inputs={"type": "array", "items": _EVENT_DATASET},
        outputs={"type": "array", "items": _EVENT_DATASET},
    ),
    "Batch": {"type": "array", "items": _reference("Event")},
    "Namespace": _object(["ownerName"], ownerName=_NAME, description=_TEXT),
    "Source": _object(
        ["type", "connectionUrl"],
        type=_NAME, connectionUrl={"type": "string", "pattern": "^[^\\u0000]*$"}, description=_TEXT,
    ),
    "Tag": _object(description=_TEXT),
    "Dataset": _object(
        ["type", "physicalName", "sourceName"],
        type={"type": "string", "enum": ["DB_TABLE", "STREAM"]},
        physicalName=_NAME,
        sourceName=_NAME,
        fields={
            "type": "array",
            "items": _object(["name"], name=_NAME, type=_TEXT, description=_TEXT),
        },
        description=_TEXT,
        runId=_NAME,
        schemaLocation=_TEXT,
    ),
    "Policy": _object(
        ["compatibility"],
        compatibility={"type": "string", "enum": ["none", "backward", "full"]},
        webhookUrl={"type": ["string", "null"]},
    ),
    "Job": _object(
        ["type"],
        type={"type": "string", "enum": ["BATCH", "STREAM", "SERVICE"]},
        inputs={"type": "array", "items": _DATASET_ID},
        outputs={"type": "array", "items": _DATASET_ID},
        location=_TEXT,
        description=_TEXT,
        runId=_NAME,
        context=_OPEN,
    ),
    "Run": _object(
        id=_NAME,
        nominalStartTime={"type": "string", "format": "date-time"},
        nominalEndTime={"type": "string", "format": "date-time"},
        args=_OPEN,
    ),
}  # fmt: skip


def describe(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """Return the document."""
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        if endpoint.template.endswith("...}"):
            continue  # a path with slashes in it, which OpenAPI cannot say
        paths.setdefault(endpoint.template, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "instar lineage",
            "version": __version__,
            "description": "OpenLineage events in, the Marquez API out.",
        },
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    names = [part[1:-1] for part in endpoint.parts if part.startswith("{")]
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": f"{endpoint.method.lower()}{endpoint.template}",
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": _NAME} for name in names
        ] + [parameter.to_openapi() for parameter in endpoint.parameters],
        "responses": {
            str(endpoint.status): {"description": "Done.", "content": {"application/json": {}}},
            "4XX": {
                "description": "The request is wrong, and nothing was changed.",
                "content": {"application/json": {"schema": _reference("Error")}},
            },
        },
    }  # fmt: skip
    if endpoint.body is not None:
        content = {"application/json": {"schema": _reference(endpoint.body)}}
        operation["requestBody"] = {"required": endpoint.body not in {"Tag", "Run"}, "content": content}
    return operation

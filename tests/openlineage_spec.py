"""The specification of OpenLineage: events are checked against it, and facets are made from it."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from tests.lineage import DATA

if TYPE_CHECKING:
    from collections.abc import Iterator

SPEC = DATA / "spec"
EVENT = "https://openlineage.io/spec/2-0-2/OpenLineage.json"
OWNERS = {
    "RunFacet": "run",
    "JobFacet": "job",
    "DatasetFacet": "dataset",
    "InputDatasetFacet": "input",
    "OutputDatasetFacet": "output",
}


@cache
def _documents() -> dict[str, dict[str, Any]]:
    paths = [SPEC / "OpenLineage.json", *sorted((SPEC / "facets").glob("*.json"))]
    found = [json.loads(path.read_text()) for path in paths]
    return {document["$id"]: document for document in found}


@cache
def _validator(uri: str) -> jsonschema_rs.Validator:
    registry = jsonschema_rs.Registry(list(_documents().items()))
    return jsonschema_rs.validator_for({"$ref": uri}, registry=registry, validate_formats=True)


@cache
def _facets() -> dict[tuple[str, str], str]:
    """Return where each facet is defined, by the kind of its owner and by its name."""
    found = {}
    for uri, document in _documents().items():
        for definition, schema in document["$defs"].items():
            for base in (part.get("$ref", "").rsplit("/", 1)[-1] for part in schema.get("allOf", [])):
                if base in OWNERS and uri != EVENT:
                    for name in document["properties"]:
                        found[OWNERS[base], name] = f"{uri}#/$defs/{definition}"
    return found


def check_event(event: dict[str, Any]) -> int:
    """Check an event and each facet in it; return how many facets the specification knows."""
    _validator(f"{EVENT}#/$defs/RunEvent").validate(event)
    groups = [("run", event["run"].get("facets")), ("job", event["job"].get("facets"))]
    for side in ("input", "output"):
        for one in event.get(f"{side}s", []):
            groups += [("dataset", one.get("facets")), (side, one.get(f"{side}Facets"))]
    known = 0
    for owner, facets in groups:
        for name, facet in (facets or {}).items():
            uri = _facets().get((owner, name))
            assert uri is not None, f"OpenLineage knows no facet {name} of a {owner}"
            _validator(uri).validate(facet)
            known += 1
    return known


def sample_facets() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield a valid example of each facet, with everything in it: its owner, its name and its content."""
    for (owner, name), uri in _facets().items():
        sample = _sample(uri.partition("#")[0], {"$ref": uri}, 3)
        _validator(uri).validate(sample)
        yield owner, name, sample


def _sample(base: str, schema: dict[str, Any], depth: int) -> Any:  # noqa: ANN401, C901, PLR0912 -- one line for each form
    if "$ref" in schema:
        uri, _, path = schema["$ref"].partition("#")
        found: Any = _documents()[uri or base]
        for part in path.strip("/").split("/"):
            found = found[part]
        return _sample(uri or base, found, depth)
    if "allOf" in schema:
        merged: dict[str, Any] = {}
        for part in schema["allOf"]:
            merged |= _sample(base, part, depth)
        return merged
    for choice in ("oneOf", "anyOf"):
        if choice in schema and "properties" not in schema:
            return _sample(base, schema[choice][0], depth)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    match kind if isinstance(kind, str) else kind[0]:
        case "string":
            formats = {
                "uri": "https://example.com/x",
                "date-time": "2026-01-01T00:00:00Z",
                "uuid": "3f5e83fa-3480-44ff-99c5-ff943904e5e8",
            }
            return formats.get(schema.get("format", ""), "text")
        case "integer":
            return 7
        case "number":
            return 0.5
        case "boolean":
            return False
        case "array":
            return [_sample(base, schema["items"], depth - 1)] if depth else []
    required = schema.get("required", [])
    members = {
        name: _sample(base, member, depth - (name not in required))
        for name, member in schema.get("properties", {}).items()
        if depth or name in required
    }
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict) and extra and depth:
        members["extra"] = _sample(base, extra, depth - 1)
    return members

"""Bodies of the older API: what each may say, and how it is read."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from instar.errors import InvalidEventError
from instar.lineage.events import MAX_NAME

__all__ = [
    "DatasetBody",
    "JobBody",
    "NamespaceBody",
    "PolicyBody",
    "RunBody",
    "SourceBody",
    "TagBody",
    "check_name",
    "check_tag",
    "read_body",
]

Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
TagName = Annotated[str, Meta(min_length=1, max_length=255)]


class NamespaceBody(Struct, rename="camel"):
    """A namespace."""

    owner_name: Name
    description: str | None = None


class SourceBody(Struct, rename="camel"):
    """A source."""

    type: Name
    connection_url: str
    description: str | None = None


class _Field(Struct):
    name: Name
    type: str | None = None
    tags: list[TagName] | None = None
    description: str | None = None
    fields: list[dict[str, Any]] | None = None


class DatasetBody(Struct, rename="camel"):
    """A dataset, with its fields."""

    type: str
    physical_name: Name
    source_name: Name
    fields: list[_Field] | None = None
    tags: list[TagName] | None = None
    description: str | None = None
    run_id: Name | None = None
    schema_location: str | None = None


class _DatasetId(Struct):
    namespace: Name
    name: Name


class JobBody(Struct, rename="camel"):
    """A job, with what it reads and writes."""

    type: str
    inputs: list[_DatasetId] | None = None
    outputs: list[_DatasetId] | None = None
    location: str | None = None
    description: str | None = None
    run_id: Name | None = None
    context: dict[str, Any] | None = None


class RunBody(Struct, rename="camel"):
    """A run that has not started."""

    id: Name | None = None
    nominal_start_time: str | None = None
    nominal_end_time: str | None = None
    args: dict[str, Any] | None = None


class TagBody(Struct):
    """A tag."""

    description: str | None = None


class PolicyBody(Struct, rename="camel"):
    """How a dataset's schema may change."""

    compatibility: str
    webhook_url: str | None = None


def read_body(body: object, kind: type[Any]) -> Any:  # noqa: ANN401 -- an instance of kind
    """Read a body as one of the kinds above, or raise."""
    try:
        found = msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise InvalidEventError(str(error)) from None
    if b"\\u0000" in msgspec.json.encode(found):
        raise InvalidEventError("it contains a zero character")
    return found


def check_name(name: str) -> str:
    """Return a name that came in a path, or raise if it cannot be one."""
    return str(read_body({"ownerName": name}, NamespaceBody).owner_name)


def check_tag(name: str) -> str:
    """Return the name of a tag that came in a path, or raise if it cannot be one."""
    return str(read_body({"name": "x", "tags": [name]}, _Field).tags[0])

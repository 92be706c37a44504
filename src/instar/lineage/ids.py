"""Ids that are derived from what they name: the same thing has the same id, in any order of reports.

Parts are encoded as a JSON array before they are hashed, so no choice of names makes two things look alike.
"""

from __future__ import annotations

import hashlib
from uuid import UUID

import msgspec

__all__ = ["content_id", "dataset_id", "job_id", "namespace_id", "run_uuid", "source_id", "stable_id"]


def stable_id(kind: str, *parts: str | int | UUID | None) -> UUID:
    """Return the id of a thing of a kind, from the parts that make it what it is."""
    data = msgspec.json.encode([kind, *parts])
    return UUID(bytes=hashlib.sha256(data).digest()[:16], version=5)


def content_id(data: bytes) -> UUID:
    """Return the id of some bytes."""
    return UUID(bytes=hashlib.sha256(data).digest()[:16], version=5)


def namespace_id(name: str) -> UUID:
    """Return the id of a namespace."""
    return stable_id("namespace", name)


def source_id(name: str) -> UUID:
    """Return the id of a source."""
    return stable_id("source", name)


def dataset_id(namespace: str, name: str) -> UUID:
    """Return the id of a dataset's name."""
    return stable_id("dataset", namespace, name)


def job_id(namespace: str, name: str) -> UUID:
    """Return the id of a job."""
    return stable_id("job", namespace, name)


def run_uuid(run_id: str) -> UUID:
    """Return a run's id as a UUID: its own, or the hash that Marquez makes of any other text."""
    try:
        return UUID(run_id)
    except ValueError:
        digest = hashlib.md5(run_id.encode(), usedforsecurity=False).digest()
        return UUID(bytes=digest, version=3)

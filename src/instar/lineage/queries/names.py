"""Finding things by name: datasets under any of their names, jobs, runs, and the nodes of a graph.

A node id such as `dataset:s3://bucket:2024_sales` can be split in several ways. All of them are looked up,
and the one that exists is meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import select

from instar.errors import EntityNotFoundError, UsageError
from instar.lineage.ids import dataset_id, job_id, namespace_id, run_uuid
from instar.lineage.models import DatasetRow, JobRow, NamespaceRow, RunRow
from instar.lineage.queries.rows import chunks

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy import Connection

__all__ = ["GraphNode", "find_dataset", "load_dataset", "load_job", "load_namespace", "load_node", "load_run"]

_MOST_SPLITS: Final = 200
_KINDS: Final = {"dataset": 2, "job": 2, "datasetField": 3}


class GraphNode(NamedTuple):
    """What a node id means. `field` is set for a column, `version` if one was named after a `#`."""

    kind: str
    uuid: UUID
    field: str | None = None
    version: str | None = None


def load_namespace(connection: Connection, name: str) -> UUID:
    """Return the id of a namespace, or raise."""
    uuid = namespace_id(name)
    if connection.scalar(select(NamespaceRow.uuid).where(NamespaceRow.uuid == uuid)) is None:
        raise EntityNotFoundError("namespace", name)
    return uuid


def find_dataset(connection: Connection, namespace: str, name: str) -> UUID | None:
    """Return the id of a dataset's main name, whichever of its names is given."""
    uuid = dataset_id(namespace, name)
    shown = DatasetRow.is_hidden.is_(False)
    return connection.scalar(select(DatasetRow.root_uuid).where(DatasetRow.uuid == uuid, shown))


def load_dataset(connection: Connection, namespace: str, name: str) -> UUID:
    """Return the id of a dataset's main name, or raise."""
    found = find_dataset(connection, namespace, name)
    if found is None:
        raise EntityNotFoundError("dataset", f"{namespace}:{name}")
    return found


def load_job(connection: Connection, namespace: str, name: str) -> UUID:
    """Return the id of a job, also under the name `parent.child`, or raise."""
    uuid = job_id(namespace, name)
    found = connection.scalar(select(JobRow.uuid).where(JobRow.uuid == uuid, JobRow.is_hidden.is_(False)))
    if found is None:
        found = _find_child(connection, namespace, name)
    if found is None:
        raise EntityNotFoundError("job", f"{namespace}:{name}")
    return found


def _find_child(connection: Connection, namespace: str, name: str) -> UUID | None:
    """Find a job by the name of its parent, a dot and its own name, as Marquez calls it."""
    dots = _positions(name, ".")
    wanted = {job_id(namespace, name[dot + 1 :]): job_id(namespace, name[:dot]) for dot in dots}
    rows = connection.execute(select(JobRow.uuid, JobRow.parent_uuid).where(JobRow.uuid.in_(list(wanted))))
    return next((uuid for uuid, parent in rows if parent == wanted[uuid]), None)


def load_run(connection: Connection, run_id: str) -> UUID:
    """Return the id of a run, which may also be the text that was made into one, or raise."""
    uuid = run_uuid(run_id)
    if connection.scalar(select(RunRow.uuid).where(RunRow.uuid == uuid)) is None:
        raise EntityNotFoundError("run", run_id)
    return uuid


def load_node(connection: Connection, node_id: str) -> GraphNode:
    """Return what a node id means, or raise."""
    kind, _, rest = node_id.partition(":")
    if kind not in _KINDS or not rest:
        raise UsageError(
            f"{node_id!r} is not a node: write dataset:NAMESPACE:NAME, job:NAMESPACE:NAME or "
            "datasetField:NAMESPACE:NAME:FIELD"
        )
    text, _, version = rest.rpartition("#")
    readings = [(rest, None), (text, version)] if text else [(rest, None)]
    for words, named in readings:
        node = _find_node(connection, kind, words)
        if node is not None:
            return node._replace(version=named)
    raise EntityNotFoundError("node", node_id)


def _find_node(connection: Connection, kind: str, words: str) -> GraphNode | None:
    colons = _positions(words, ":")
    # Most readings begin with a namespace that does not exist, so there are few left to look up.
    spaces = {namespace_id(words[:colon]): colon for colon in colons}
    known = select(NamespaceRow.uuid).where(NamespaceRow.uuid.in_(list(spaces)))
    firsts = [spaces[uuid] for uuid in connection.scalars(known)]
    if kind == "job":
        jobs = [job_id(words[:first], words[first + 1 :]) for first in firsts]
        wanted = select(JobRow.uuid).where(JobRow.uuid.in_(jobs), JobRow.is_hidden.is_(False))
        uuid = connection.scalar(wanted.order_by(JobRow.uuid).limit(1))
        return GraphNode(kind, uuid) if uuid is not None else None
    readings: dict[UUID, str | None] = {}
    for first in firsts:
        if kind == "dataset":
            readings[dataset_id(words[:first], words[first + 1 :])] = None
            continue
        for second in colons:
            if first < second:
                readings[dataset_id(words[:first], words[first + 1 : second])] = words[second + 1 :]
    found: list[tuple[UUID, UUID]] = []
    for some in chunks(readings):
        shown = (DatasetRow.uuid.in_(some), DatasetRow.is_hidden.is_(False))
        rows = connection.execute(select(DatasetRow.uuid, DatasetRow.root_uuid).where(*shown))
        found += [(uuid, root) for uuid, root in rows]
    # If several exist, the longest name of a dataset is meant: the rest is the shortest field.
    best = min(found, key=lambda row: (len(readings[row[0]] or ""), row[0]), default=None)
    return GraphNode(kind, best[1], readings[best[0]]) if best is not None else None


def _positions(text: str, mark: str) -> list[int]:
    """Return where a text may be split: names have a few such places, and only an attack has thousands."""
    found = [position for position, letter in enumerate(text) if letter == mark]
    return found if len(found) <= _MOST_SPLITS else []

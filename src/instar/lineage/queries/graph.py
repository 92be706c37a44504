"""The lineage graph: datasets and jobs around a node, over the union of all runs, now or as of a time.

It is walked level by level, with a fixed number of queries for each, so its cost is that of the graph and not
of the number of runs or versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import aliased

from instar.errors import UsageError
from instar.lineage.models import DatasetRow, DatasetVersionRow, JobEdgeRow, JobRow
from instar.lineage.queries.datasets import show_datasets
from instar.lineage.queries.jobs import show_jobs
from instar.lineage.queries.names import load_node
from instar.lineage.queries.rows import Json, chunks
from instar.lineage.queries.runs import show_runs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import ColumnElement, Connection

    from instar.lineage.queries.names import GraphNode

__all__ = ["Window", "graph_of_node", "lineage_graph", "upstream_runs"]

MAX_NODES: Final = 20_000


class Window(NamedTuple):
    """Which edges count: those that were known at a time, and those that were seen since another."""

    as_of: int | None = None
    since: int | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the conditions on edges."""
        found: list[ColumnElement[bool]] = []
        if self.as_of is not None:
            found.append(JobEdgeRow.first_seen_at <= self.as_of)
        if self.since is not None:
            found.append(JobEdgeRow.last_seen_at >= self.since)
        return found


class _Walk:
    """A breadth-first walk over edges, each a job, a dataset and a direction."""

    def __init__(self, connection: Connection, window: Window) -> None:
        self.connection = connection
        self.window = window
        self.datasets: set[UUID] = set()
        self.jobs: set[UUID] = set()
        self.edges: set[tuple[UUID, UUID, str]] = set()

    def run(self, datasets: set[UUID], jobs: set[UUID], depth: int) -> None:
        self.datasets, self.jobs = set(datasets), set(jobs)
        for _ in range(depth):
            if not datasets and not jobs:
                return
            found = self._edges(datasets, jobs)
            self.edges |= found
            datasets = {dataset for _, dataset, _ in found} - self.datasets
            jobs = {job for job, _, _ in found} - self.jobs
            self.datasets |= datasets
            self.jobs |= jobs
            if len(self.datasets) + len(self.jobs) > MAX_NODES:
                raise UsageError(
                    f"the graph has more than {MAX_NODES} nodes within this depth: ask for a smaller depth"
                )

    def _edges(self, datasets: Iterable[UUID], jobs: Iterable[UUID]) -> set[tuple[UUID, UUID, str]]:
        alias = aliased(DatasetRow)
        statement = (
            select(JobEdgeRow.job_uuid, DatasetRow.root_uuid, JobEdgeRow.io)
            .join(DatasetRow, DatasetRow.uuid == JobEdgeRow.dataset_uuid)
            .join(JobRow, JobRow.uuid == JobEdgeRow.job_uuid)
            .where(JobRow.is_hidden.is_(False), *self.window.conditions())
        )
        found: set[tuple[UUID, UUID, str]] = set()
        for some in chunks(jobs):
            rows = self.connection.execute(statement.where(JobEdgeRow.job_uuid.in_(some)))
            found |= {(job, dataset, io) for job, dataset, io in rows}
        for some in chunks(datasets):
            members = select(alias.uuid).where(alias.root_uuid.in_(some))
            rows = self.connection.execute(statement.where(JobEdgeRow.dataset_uuid.in_(members)))
            found |= {(job, dataset, io) for job, dataset, io in rows}
        hidden = self._hidden({dataset for _, dataset, _ in found})
        return {edge for edge in found if edge[1] not in hidden}

    def _hidden(self, roots: set[UUID]) -> set[UUID]:
        found: set[UUID] = set()
        for some in chunks(roots):
            wanted = select(DatasetRow.uuid).where(DatasetRow.uuid.in_(some), DatasetRow.is_hidden)
            found |= set(self.connection.scalars(wanted))
        return found


def lineage_graph(connection: Connection, node_id: str, depth: int, window: Window) -> Json:
    """Return the graph around a dataset or a job."""
    return graph_of_node(connection, load_node(connection, node_id), depth, window)


def graph_of_node(connection: Connection, node: GraphNode, depth: int, window: Window) -> Json:
    """Return the graph around a node that was found already."""
    if node.kind == "datasetField":
        raise UsageError("a column has no place in this graph: ask /column-lineage")
    walk = _Walk(connection, window)
    start = {node.uuid}
    walk.run(start if node.kind == "dataset" else set(), start if node.kind == "job" else set(), depth)
    datasets = show_datasets(connection, sorted(walk.datasets))
    jobs = show_jobs(connection, sorted(walk.jobs), latest=1)
    names = {uuid: _node_id("dataset", shown) for uuid, shown in datasets.items()}
    names |= {uuid: _node_id("job", shown) for uuid, shown in jobs.items()}
    into: dict[UUID, list[Json]] = {uuid: [] for uuid in names}
    out: dict[UUID, list[Json]] = {uuid: [] for uuid in names}
    for job, dataset, io in sorted(walk.edges):
        origin, destination = (dataset, job) if io == "input" else (job, dataset)
        edge = {"origin": names[origin], "destination": names[destination]}
        out[origin].append(edge)
        into[destination].append(edge)
    nodes = [
        {"id": names[uuid], "type": kind, "data": shown, "inEdges": into[uuid], "outEdges": out[uuid]}
        for kind, found in (("DATASET", datasets), ("JOB", jobs))
        for uuid, shown in found.items()
    ]
    return {"graph": sorted(nodes, key=lambda one: str(one["id"]))}


def _node_id(kind: str, shown: Json) -> str:
    return f"{kind}:{shown['namespace']}:{shown['name']}"


def upstream_runs(connection: Connection, run_uuid: UUID, depth: int) -> Json:
    """Return the runs that made what a run read, and those that made what these read, and so on."""
    shown: list[Json] = []
    seen: set[UUID] = set()
    level = {run_uuid}
    for _ in range(depth + 1):
        level -= seen
        seen |= level
        versions: set[UUID] = set()
        for run in show_runs(connection, sorted(level)).values():
            inputs = [one["datasetVersionId"] for one in run["inputDatasetVersions"]]
            versions |= {UUID(one["version"]) for one in inputs if one["version"] is not None}
            facts = {key: run[key] for key in ("id", "state", "startedAt", "endedAt")}
            shown.append({"job": run["job"], "run": facts, "inputs": inputs})
        wanted = select(DatasetVersionRow.run_uuid).where(DatasetVersionRow.uuid.in_(list(versions)))
        level = {uuid for uuid in connection.scalars(wanted) if uuid is not None}
    return {"runs": shown}

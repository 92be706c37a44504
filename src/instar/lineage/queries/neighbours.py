"""What feeds a dataset and what it feeds, step by step, each with the jobs in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from instar.errors import EntityNotFoundError, UsageError
from instar.lineage.models import DatasetRow, NamespaceRow
from instar.lineage.queries.graph import Window, lineage_graph
from instar.lineage.queries.names import load_node

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from instar.lineage.queries.rows import Json

__all__ = ["find_node_id", "neighbours"]


def find_node_id(connection: Connection, name: str) -> str:
    """Return the node that a name means: `NAMESPACE:NAME`, or a name that only one namespace has."""
    rows = connection.execute(
        select(NamespaceRow.name, DatasetRow.name)
        .join(NamespaceRow, NamespaceRow.uuid == DatasetRow.namespace_uuid)
        .where(DatasetRow.name == name, DatasetRow.is_hidden.is_(False))
        .order_by(NamespaceRow.name)
    ).all()
    if len(rows) > 1:
        choices = ", ".join(f"{namespace}:{short}" for namespace, short in rows)
        raise UsageError(f"several datasets are called {name}: write one of {choices}")
    if rows:
        return f"dataset:{rows[0][0]}:{rows[0][1]}"
    try:
        load_node(connection, f"dataset:{name}")
    except EntityNotFoundError:
        raise EntityNotFoundError("dataset", name) from None
    return f"dataset:{name}"


def neighbours(connection: Connection, name: str, depth: int) -> Json:
    """Return what feeds a dataset and what it feeds: the datasets of each step, and the job that connects."""
    node = find_node_id(connection, name)
    graph = {one["id"]: one for one in lineage_graph(connection, node, 2 * depth, Window())["graph"]}
    start = node if node in graph else next(iter(graph))
    return {
        "dataset": start,
        "fedBy": _walk(graph, start, depth, upstream=True),
        "feeds": _walk(graph, start, depth, upstream=False),
    }


def _walk(graph: dict[str, Json], start: str, depth: int, *, upstream: bool) -> list[Json]:
    edges, end = ("inEdges", "origin") if upstream else ("outEdges", "destination")
    seen, level, found = {start}, [start], []
    for step in range(1, depth + 1):
        following: list[str] = []
        for dataset in level:
            for job in sorted({edge[end] for edge in graph[dataset][edges]}):
                others = sorted({edge[end] for edge in graph[job][edges]} - {dataset})
                found += [{"step": step, "from": dataset, "job": job, "dataset": other} for other in others]
                if not others:
                    found.append({"step": step, "from": dataset, "job": job, "dataset": None})
                following += [other for other in others if other not in seen]
                seen |= set(others)
        level = following
    return found

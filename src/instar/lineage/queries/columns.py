"""Column lineage: which columns a column is made from, and which are made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from sqlalchemy import select
from sqlalchemy.orm import aliased

from instar.errors import EntityNotFoundError, UsageError
from instar.lineage.models import ColumnLineageRow, DatasetRow, JobEdgeRow
from instar.lineage.queries.datasets import members_of, show_datasets, show_version
from instar.lineage.queries.names import GraphNode, load_dataset, load_node
from instar.lineage.queries.rows import Json, chunks

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from sqlalchemy import Connection

__all__ = ["column_graph", "columns_of_node"]


class _Column(NamedTuple):
    root: UUID
    field: str


class _Edge(NamedTuple):
    output: _Column
    source: _Column
    transformations: str
    type: str | None
    description: str | None


def column_graph(connection: Connection, node_id: str, depth: int, *, downstream: bool) -> Json:
    """Return the columns that the columns of a node are made from, and if asked those made from them."""
    return columns_of_node(connection, load_node(connection, node_id), depth, downstream=downstream)


def columns_of_node(connection: Connection, node: GraphNode, depth: int, *, downstream: bool) -> Json:
    """Return the same for a node that was found already."""
    if node.version is not None and downstream:
        raise UsageError("what is made from one version of a dataset is not known: leave out withDownstream")
    edges: set[_Edge] = set()
    if node.version is not None:
        edges, start = _edges_of_version(connection, node)
    else:
        start = _start(connection, node)
    directions = (True, False) if downstream else (True,)
    for upstream in directions:
        frontier, seen = set(start), set(start)
        if node.version is not None:
            frontier = {edge.source for edge in edges}
        for _ in range(depth - (node.version is not None)):
            found = _edges(connection, frontier, upstream=upstream)
            edges |= found
            frontier = {edge.source if upstream else edge.output for edge in found} - seen
            seen |= frontier
            if not frontier:
                break
    return _show(connection, start, edges)


def _start(connection: Connection, node: GraphNode) -> set[_Column]:
    """Return the columns of a node: one, all of a dataset, or all that a job writes."""
    if node.field is not None:
        return {_Column(node.uuid, node.field)}
    roots = {node.uuid}
    if node.kind == "job":
        wanted = (
            select(DatasetRow.root_uuid)
            .join(JobEdgeRow, JobEdgeRow.dataset_uuid == DatasetRow.uuid)
            .where(JobEdgeRow.job_uuid == node.uuid, JobEdgeRow.io == "output")
        )
        roots = set(connection.scalars(wanted))
    members = {member: root for root, some in members_of(connection, roots).items() for member in some}
    found: set[_Column] = set()
    row = ColumnLineageRow
    for dataset, field in (
        (row.output_dataset_uuid, row.output_field),
        (row.input_dataset_uuid, row.input_field),
    ):
        for some in chunks(members):
            rows = connection.execute(select(dataset, field).distinct().where(dataset.in_(some)))
            found |= {_Column(members[uuid], name) for uuid, name in rows}
    for root, shown in show_datasets(connection, sorted(roots)).items():
        found |= {_Column(root, field["name"]) for field in shown["fields"]}
    return found


def _edges(connection: Connection, columns: Iterable[_Column], *, upstream: bool) -> set[_Edge]:
    """Return the edges that end in these columns, or that begin in them."""
    wanted = set(columns)
    members = members_of(connection, {column.root for column in wanted})
    row = ColumnLineageRow
    output, source = aliased(DatasetRow), aliased(DatasetRow)
    mine = row.output_dataset_uuid if upstream else row.input_dataset_uuid
    found: set[_Edge] = set()
    for some in chunks([member for names in members.values() for member in names]):
        rows = connection.execute(
            select(
                output.root_uuid,
                row.output_field,
                source.root_uuid,
                row.input_field,
                row.transformations,
                row.transformation_type,
                row.transformation_description,
            )
            .join(output, output.uuid == row.output_dataset_uuid)
            .join(source, source.uuid == row.input_dataset_uuid)
            .where(mine.in_(some))
        )
        for out, out_field, into, into_field, *rest in rows:
            edge = _Edge(_Column(out, out_field), _Column(into, into_field), rest[0] or "", rest[1], rest[2])
            if (edge.output if upstream else edge.source) in wanted:
                found.add(edge)
    return found


def _edges_of_version(connection: Connection, node: GraphNode) -> tuple[set[_Edge], set[_Column]]:
    """Return what one version of a dataset says about its columns."""
    facet = show_version(connection, node.uuid, node.version or "")["facets"].get("columnLineage") or {}
    edges: set[_Edge] = set()
    for name, made in (facet.get("fields") or {}).items():
        if node.field not in (None, name):
            continue
        for one in made.get("inputFields") or []:
            try:
                root = load_dataset(connection, one["namespace"], one["name"])
            except EntityNotFoundError:
                continue  # retention has removed it
            how = msgspec.json.encode(one.get("transformations") or [], order="sorted").decode()
            kind, description = made.get("transformationType"), made.get("transformationDescription")
            edges.add(_Edge(_Column(node.uuid, name), _Column(root, one["field"]), how, kind, description))
    return edges, {edge.output for edge in edges} or _start(connection, node)


def _show(connection: Connection, start: set[_Column], edges: set[_Edge]) -> Json:
    columns = start | {edge.output for edge in edges} | {edge.source for edge in edges}
    datasets = show_datasets(connection, sorted({column.root for column in columns}))
    into: dict[_Column, dict[_Column, list[_Edge]]] = {column: {} for column in columns}
    out: dict[_Column, set[_Column]] = {column: set() for column in columns}
    for edge in sorted(edges, key=repr):
        into[edge.output].setdefault(edge.source, []).append(edge)
        out[edge.source].add(edge.output)
    ids = {column: _node_id(datasets[column.root], column.field) for column in columns}
    nodes = []
    for column in columns:
        made = into[column]
        nodes.append(
            {
                "id": ids[column],
                "type": "DATASET_FIELD",
                "data": _data(datasets, column, made),
                "inEdges": _show_edges(ids, column, made),
                "outEdges": _show_edges(ids, column, out[column]),
            }
        )
    return {"graph": sorted(nodes, key=lambda node: str(node["id"]))}


def _show_edges(ids: dict[_Column, str], column: _Column, others: Iterable[_Column]) -> list[Json]:
    """Return edges as Marquez writes them for columns: the origin is the column itself, both ways."""
    return [{"origin": ids[column], "destination": other} for other in sorted(ids[one] for one in others)]


def _data(datasets: dict[UUID, Json], column: _Column, made: dict[_Column, list[_Edge]]) -> Json:
    dataset = datasets[column.root]
    types = {field["name"]: field["type"] for field in dataset["fields"]}
    edges = [edge for some in made.values() for edge in some]
    return {
        "namespace": dataset["namespace"],
        "dataset": dataset["name"],
        "datasetVersion": dataset["currentVersion"],
        "field": column.field,
        "fieldType": types.get(column.field),
        "transformationDescription": next((edge.description for edge in edges if edge.description), None),
        "transformationType": next((edge.type for edge in edges if edge.type), None),
        "inputFields": [_input_field(datasets[edge.source.root], edge) for edge in edges],
    }


def _input_field(dataset: Json, edge: _Edge) -> Json:
    transformations: list[Any] = msgspec.json.decode(edge.transformations)
    return {
        "namespace": dataset["namespace"],
        "dataset": dataset["name"],
        "datasetVersion": dataset["currentVersion"],
        "field": edge.source.field,
        "transformations": transformations,
        "transformationDescription": edge.description,
        "transformationType": edge.type,
    }


def _node_id(dataset: Json, field: str) -> str:
    return f"datasetField:{dataset['namespace']}:{dataset['name']}:{field}"

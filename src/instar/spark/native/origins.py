"""Where the rows and columns of a DataFrame come from: the tables in its analysed plan, column by column.

The plan is read as JSON, in one call to the JVM. What a node of an unknown kind makes has no known origin.
Only what values are made from counts: filters, join conditions and grouping are left out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from instar.spark.native.file_index import find_index
from instar.spark.native.gateway import gateway_of
from instar.spark.planner.compiled import number_of
from instar.spark.planner.table import PlannedTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from instar.spark.native.file_index import TableOrigin
    from instar.spark.native.gateway import Gateway

__all__ = ["ColumnOrigin", "FrameOrigin", "find_origins", "trace_columns"]

IDENTITY: Final = "IDENTITY"
TRANSFORMATION: Final = "TRANSFORMATION"
AGGREGATION: Final = "AGGREGATION"
_RANKS: Final = {IDENTITY: 0, TRANSFORMATION: 1, AGGREGATION: 2}
_TRANSPARENT: Final = {
    "CTERelationDef", "Deduplicate", "Distinct", "Except", "Filter", "GlobalLimit", "Intersect", "LocalLimit",
    "Offset", "RebalancePartitions", "Repartition", "RepartitionByExpression", "ResolvedHint", "Sample",
    "Sort", "SubqueryAlias", "View",
}  # fmt: skip
_LISTS: Final = {"Project": "projectList", "Aggregate": "aggregateExpressions"}

_Node = dict[str, Any]
_Attribute = tuple[str, int]


class ColumnOrigin(NamedTuple):
    """A column that is made from a column of a table: as it is, transformed, or aggregated."""

    column: str
    source: str
    how: str


class FrameOrigin(NamedTuple):
    """A table that a frame reads, and which columns of the frame are made from it."""

    namespace: str
    name: str
    columns: tuple[ColumnOrigin, ...]


def find_origins(frame: DataFrame) -> list[FrameOrigin]:
    """Return the tables of instar that a frame reads, and what is made of their columns."""
    gateway = gateway_of(frame.sparkSession)
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 -- PySpark has no public way to it
    leaves = [_origin(gateway, leaf) for leaf in _each(plan.collectLeaves())]
    nested = [
        _origin(gateway, leaf)
        for inner in _each(plan.subqueriesAll())
        for leaf in _each(inner.collectLeaves())
    ]
    found: dict[tuple[str, str], set[ColumnOrigin]] = {}
    for origin in (*leaves, *nested):
        if origin is not None:
            found.setdefault((origin.namespace, origin.name), set())
    if found:
        columns = [None if leaf is None else _columns(leaf) for leaf in leaves]
        for column, sources in trace_columns(json.loads(plan.toJSON()), columns).items():
            for (namespace, name, source), how in sources:
                found[namespace, name].add(ColumnOrigin(column, source, how))
    return [FrameOrigin(*key, tuple(sorted(columns))) for key, columns in sorted(found.items())]


def trace_columns(
    plan: Sequence[_Node], leaves: Sequence[Mapping[str, Any] | None]
) -> dict[str, set[tuple[Any, str]]]:
    """Return what each column of a plan is made from, and how: `leaves` say what their attributes are."""
    tracer = _Tracer(iter(plan), iter(leaves))
    outputs = tracer.outputs()
    found: dict[str, set[tuple[Any, str]]] = {}
    for name, number in outputs or []:
        found.setdefault(name, set()).update(tracer.sources(number))
    return found


class _Tracer:
    """Walks a plan once, from its root to its leaves, and notes what each attribute is made from."""

    def __init__(self, nodes: Iterator[_Node], leaves: Iterator[Mapping[str, Any] | None]) -> None:
        self._nodes = nodes
        self._leaves = leaves
        self._made: dict[int, list[tuple[int, str]]] = {}
        self._known: dict[int, Any] = {}
        self._common: dict[int, list[_Attribute] | None] = {}

    def outputs(self) -> list[_Attribute] | None:
        """Read the next node with all below it; return its attributes, or None if they are not known."""
        node = next(self._nodes)
        kind = node["class"].rpartition(".")[2]
        if not node["num-children"]:
            return self._leaf(node, next(self._leaves, None))
        below = [self.outputs() for _ in range(node["num-children"])]
        if kind in _LISTS:
            return [self._named(expression) for expression in node[_LISTS[kind]]]
        if kind == "Window":
            made = [self._named(expression) for expression in node["windowExpressions"]]
            return None if below[0] is None else [*below[0], *made]
        if kind == "Generate":
            return self._generated(node, below[0])
        if kind == "Union":
            return self._united(below)
        if kind == "Join":
            return self._joined(node, below)
        if kind == "CTERelationDef":
            self._common[node["id"]] = below[0]
        if kind == "WithCTE":  # the definitions come first
            return below[-1]
        return below[0] if kind in _TRANSPARENT else None

    def sources(self, number: int) -> set[tuple[Any, str]]:
        """Return what an attribute is made from in the end."""
        found: set[tuple[Any, str]] = set()
        waiting, seen = [(number, IDENTITY)], {(number, IDENTITY)}
        while waiting:
            at, how = waiting.pop()
            if at in self._known:
                found.add((self._known[at], how))
            for source, step in self._made.get(at, ()):
                following = source, max(how, step, key=_RANKS.__getitem__)
                if following not in seen:
                    seen.add(following)
                    waiting.append(following)
        return found

    def _leaf(self, node: _Node, fields: Mapping[str, Any] | None) -> list[_Attribute] | None:
        if "output" not in node:
            return None
        found = []
        for attribute in (expression[0] for expression in node["output"] or []):
            found.append((attribute["name"], attribute["exprId"]["id"]))
            if fields is not None and attribute["name"] in fields:
                self._known[attribute["exprId"]["id"]] = fields[attribute["name"]]
        if "cteId" in node:
            self._united([found, self._common.get(node["cteId"])])
        return found

    def _named(self, expression: list[_Node]) -> _Attribute:
        """Note what a named expression is made from."""
        top = expression[0]
        number = top["exprId"]["id"]
        kinds = [part["class"].rpartition(".")[2] for part in expression]
        if kinds[0] == "Alias":
            how = IDENTITY if len(expression) == 2 else TRANSFORMATION  # noqa: PLR2004 -- another attribute, and no more
            how = AGGREGATION if "AggregateExpression" in kinds else how
            self._note(number, _attributes(expression), how)
        return top["name"], number

    def _generated(self, node: _Node, below: list[_Attribute] | None) -> list[_Attribute] | None:
        made = [
            (expression[0]["name"], expression[0]["exprId"]["id"]) for expression in node["generatorOutput"]
        ]
        for _, number in made:
            self._note(number, _attributes(node["generator"]), TRANSFORMATION)
        return None if below is None or node.get("unrequiredChildIndex") else [*below, *made]

    def _united(self, below: list[list[_Attribute] | None]) -> list[_Attribute] | None:
        """Let the attributes of the first stand for those of the others at the same place."""
        first = below[0]
        if first is None:
            return None
        for other in below[1:]:
            for (_, number), (_, source) in zip(first, other or [], strict=False):
                self._note(number, [source], IDENTITY)
        return first

    def _joined(self, node: _Node, below: list[list[_Attribute] | None]) -> list[_Attribute] | None:
        left, right = below
        kind = str((node.get("joinType") or {}).get("object", ""))
        if "LeftSemi" in kind or "LeftAnti" in kind:
            return left
        return None if left is None or right is None else [*left, *right]

    def _note(self, number: int, sources: list[int], how: str) -> None:
        self._made.setdefault(number, []).extend((source, how) for source in sources if source != number)


def _columns(origin: TableOrigin) -> dict[str, tuple[str, str, str]]:
    return {column: (origin.namespace, origin.name, name) for column, name in origin.columns.items()}


def _attributes(expression: list[_Node]) -> list[int]:
    return [part["exprId"]["id"] for part in expression if part["class"].endswith(".AttributeReference")]


def _origin(gateway: Gateway, leaf: Any) -> TableOrigin | None:  # noqa: ANN401 -- a node of a plan
    kind = leaf.getClass().getSimpleName()
    if kind == "DataSourceV2Relation":
        table = PlannedTable.find(number_of(gateway, leaf.table()))
        return None if table is None else table.origin()
    if kind != "LogicalRelation":
        return None
    relation = leaf.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    index = find_index(relation.location())
    return None if index is None else index.origin()


def _each(sequence: Any) -> Iterator[Any]:  # noqa: ANN401 -- a sequence of Scala's
    return (sequence.apply(at) for at in range(sequence.size()))

"""Graphs: of datasets and jobs, of columns, and of runs."""

from __future__ import annotations

from instar.lineage.queries.columns import column_graph
from instar.lineage.queries.graph import Window, lineage_graph, upstream_runs
from instar.lineage.queries.names import load_run
from instar.service.parameters import Parameter
from instar.service.routing import ApiCall, Endpoint, Reply

__all__ = ["GRAPH"]


def get_lineage(call: ApiCall) -> Reply:
    """Show the graph around a node."""
    query = call.query
    window = Window(query["asOf"], query["since"])
    with call.database.reading() as connection:
        return Reply(lineage_graph(connection, query["nodeId"], query["depth"], window))


def get_column_lineage(call: ApiCall) -> Reply:
    """Show what columns are made from."""
    query = call.query
    with call.database.reading() as connection:
        return Reply(
            column_graph(connection, query["nodeId"], query["depth"], downstream=query["withDownstream"])
        )


def get_upstream_runs(call: ApiCall) -> Reply:
    """Show the runs that a run depends on."""
    with call.database.reading() as connection:
        run = load_run(connection, call.query["runId"])
        return Reply(upstream_runs(connection, run, call.query["depth"]))


_NODE = Parameter("nodeId", description="As in dataset:NAMESPACE:NAME or job:NAMESPACE:NAME.", required=True)
_DEPTH = Parameter("depth", "integer", "How many steps to go.", 20, most=1000)

GRAPH = [
    Endpoint("GET", "/api/v1/lineage", get_lineage, "Show the graph around a dataset or job.",
             (_NODE, _DEPTH,
              Parameter("asOf", "time", "Only edges that were known at this time."),
              Parameter("since", "time", "Only edges that were seen since this time."))),
    Endpoint("GET", "/api/v1/column-lineage", get_column_lineage, "Show what columns are made from.",
             (_NODE, _DEPTH,
              Parameter("withDownstream", "boolean", "Also what is made from them.", default=False))),
    Endpoint("GET", "/api/v1/runlineage/upstream", get_upstream_runs, "Show the runs that a run depends on.",
             (Parameter("runId", required=True), _DEPTH)),
]  # fmt: skip

"""What pages show beside the answers of the API: what changed from schema to schema, columns, bars, words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from instar.lineage.ids import job_id
from instar.lineage.queries.columns import columns_of_node
from instar.lineage.queries.jobs import show_jobs
from instar.lineage.queries.names import GraphNode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from sqlalchemy import Connection

    from instar.lineage.queries.rows import Json

__all__ = ["columns_around", "latest_states", "run_bars", "schema_steps", "show_duration"]

_HIGHEST: Final = 48
_LOWEST: Final = 3
_UNITS: Final = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000))


def schema_steps(schemas: Sequence[Json]) -> list[dict[str, list[str]]]:
    """Return for each schema, the newest first, the names of what it added, removed and changed."""
    found = []
    for position, schema in enumerate(schemas):
        new = {field["name"]: field for field in schema["fields"]}
        earlier = schemas[position + 1]["fields"] if position + 1 < len(schemas) else schema["fields"]
        old = {field["name"]: field for field in earlier}
        found.append(
            {
                "added": [name for name in new if name not in old],
                "removed": [name for name in old if name not in new],
                "changed": [
                    name for name in new if name in old and _content(new[name]) != _content(old[name])
                ],
            }
        )
    return found


def _content(field: Json) -> Any:  # noqa: ANN401 -- a value to compare
    nested = sorted((one["name"], repr(_content(one))) for one in field.get("fields") or [])
    return field["type"], nested


def columns_around(connection: Connection, root: UUID, dataset: Json) -> list[dict[str, Any]]:
    """Return the columns of a dataset that have a source or a target, with all of these."""
    here = dataset["namespace"], dataset["name"]
    made_from: dict[str, list[Json]] = {}
    goes_to: dict[str, list[Json]] = {}
    graph = columns_of_node(connection, GraphNode("dataset", root), 1, downstream=True)
    for column in (node["data"] for node in graph["graph"]):
        is_mine = (column["namespace"], column["dataset"]) == here
        for source in column["inputFields"]:
            if is_mine:
                made_from.setdefault(column["field"], []).append(source)
            if (source["namespace"], source["dataset"]) == here:
                goes_to.setdefault(source["field"], []).append({**column, **_steps(source)})
    names = [field["name"] for field in dataset["fields"]]
    names += sorted((made_from.keys() | goes_to.keys()) - {*names})
    return [
        {"name": name, "made_from": made_from.get(name, []), "goes_to": goes_to.get(name, [])}
        for name in names
        if name in made_from or name in goes_to
    ]


def _steps(source: Json) -> Json:
    return {"transformations": source["transformations"]}


def latest_states(connection: Connection, results: Sequence[Json]) -> dict[int, str]:
    """Return the state of the latest run of each job among some results, by its position."""
    jobs = {
        job_id(one["namespace"], one["name"]): number
        for number, one in enumerate(results)
        if one["type"] == "JOB"
    }
    shown = show_jobs(connection, sorted(jobs), latest=1)
    runs = {number: shown[uuid]["latestRun"] for uuid, number in jobs.items() if uuid in shown}
    return {number: run["state"] for number, run in runs.items() if run is not None}


def run_bars(runs: Sequence[Json]) -> list[dict[str, Any]]:
    """Return a bar for each run, the latest last; the longest run has the highest."""
    longest = max((run["durationMs"] or 0 for run in runs), default=0) or 1
    found = []
    for run in reversed(runs):
        state, took = run["state"].lower(), run["durationMs"] or 0
        start = (run["startedAt"] or run["createdAt"])[:19].replace("T", " ")
        title = f"{state} {start} {show_duration(run['durationMs'])}".rstrip()
        height = max(_LOWEST, round(_HIGHEST * took / longest))
        found.append({"state": state, "height": height, "title": title})
    return found


def show_duration(milliseconds: int | None) -> str:
    """Write a duration in the two largest units that it has, such as `1 h 3 min`."""
    if milliseconds is None or milliseconds < 0:
        return ""
    if milliseconds < 60_000:  # noqa: PLR2004 -- a minute
        return f"{milliseconds / 1000:.1f} s"
    words, rest = [], milliseconds
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            words.append(f"{count} {unit}")
    return " ".join(words[:2])

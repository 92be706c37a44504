"""Arguments of the wrong type or out of range are errors of ours, in every public call."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

import instar
from instar.api.merge import Merge
from instar.errors import InstarError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WRONG: Final[dict[str, object]] = {
    "text": "1",
    "number": 1,
    "below zero": -1,
    "huge": 2**70,
    "fraction": 1.5,
    "not a number": float("nan"),
    "yes": True,
    "nothing": None,
    "numbers": [1],
    "texts": ["no such thing"],
    "bytes": b"x",
    "map": {1: 2},
    "object": object(),
}


def _row() -> pa.Table:
    return pa.table({"id": pa.array([1], pa.int32())})


def _executing(clause: Callable[..., Merge]) -> Callable[..., Any]:
    return lambda **given: clause(**given).execute()


def calls(place: Path) -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """Yield public calls that need no Spark, with arguments that are right."""
    store = instar.open(place)
    table = store.create_table("t", "id int, v string", key=["id"])
    table.append(_row())
    update = table.evolve()
    merging: dict[str, Any] = {"data": _row(), "on": ["id"]}
    yield "open", instar.open, {"location": place}
    yield "create_table", store.create_table, {"name": "other", "schema": "id int"}
    yield "table", store.table, {"name": "other"}
    yield "drop_table", store.drop_table, {"name": "other"}
    yield "tables", store.tables, {}
    yield "find_tables", store.find_tables, {}
    yield "store.vacuum", store.vacuum, {}
    yield "append", table.append, {"data": _row()}
    yield "apply", table.apply, {"changes": _row()}
    yield "upsert", table.upsert, {"data": _row()}
    yield "delete", table.delete, {"where": "id = 1"}
    yield "update", table.update, {"set": {"v": "'x'"}, "where": "id = 1"}
    yield "merge", lambda **given: table.merge(**given).when_matched_delete().execute(), merging
    for clause in ("when_matched_update", "when_not_matched_insert"):
        values = {"set" if clause == "when_matched_update" else "values": {"v": "'x'"}}
        yield clause, _executing(getattr(table.merge(**merging), clause)), {**values, "condition": "true"}
    for clause in ("when_matched_delete", "when_not_matched_by_source_delete"):
        yield clause, _executing(getattr(table.merge(**merging), clause)), {"condition": "target.id = 1"}
    yield "snapshot", table.snapshot, {}
    yield "explain", table.explain, {"where": "id = 1"}
    yield "listen", lambda **given: next(table.listen(**given), None), {"since": 0, "timeout": 0.0}
    yield (
        "compare_and_evolve",
        table.compare_and_evolve_schema,
        {"expected_id": 0, "schema": "id int, v string"},
    )
    yield "history", table.history, {}
    yield "head", table.head, {"where": "id = 1"}
    yield "vacuum", table.vacuum, {}
    snapshot = table.snapshot()
    yield "to_arrow", snapshot.to_arrow, {"where": "id = 1"}
    yield "to_batches", lambda **given: list(snapshot.to_batches(**given)), {"where": "id = 1"}
    yield "snapshot.explain", snapshot.explain, {"where": "id = 1"}
    steps: list[Callable[..., Any]] = [
        update.add_column,
        update.drop_column,
        update.rename_column,
        update.widen_column,
        update.make_nullable,
    ]
    for step in steps:
        names = list(inspect.signature(step).parameters)
        yield step.__name__, step, dict(zip(names, ("id", "int"), strict=False))


def parameters(name: str, call: Callable[..., Any]) -> Iterator[str]:
    """Yield the names of a call's parameters."""
    others: dict[str, Any] = {
        **vars(Merge),
        "listen": instar.Table.listen,
        "to_batches": instar.Snapshot.to_batches,
        "merge": instar.Table.merge,
    }
    for parameter in inspect.signature(others.get(name, call)).parameters.values():
        if parameter.name != "self" and parameter.kind is not parameter.VAR_KEYWORD:
            yield parameter.name


def test_no_call_answers_a_wrong_argument_with_a_raw_error(tmp_path: Path) -> None:
    """Whatever is given for an argument, the answer is a result or an error of instar's."""
    raw = []
    for name, call, given in calls(tmp_path / "lake"):
        for parameter in parameters(name, call):
            for what, value in WRONG.items():
                try:
                    call(**{**given, parameter: value})
                except InstarError:
                    pass
                except Exception as error:  # noqa: BLE001 -- that is what is looked for
                    raw.append(f"{name}({parameter}={what}): {type(error).__name__}: {error}")
    assert raw == []

"""How many requests does an operation take? Counted between each engine and the server."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from bench.cloud.engines import contender
from bench.report import Column, Section
from bench.workload import Question
from testbed.s3_proxy import S3Proxy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from bench.cloud.engines import Contender
    from testbed.s3_proxy import Request
    from testbed.servers import S3Server

__all__ = ["measure_requests"]

_NOTES: Final = (
    "Opening and planning begin with nothing; the other operations have a handle.",
    "instar takes a lease to read and to append, and gives it back: two of its requests. Peers have none.",
    "instar reads 16 commits after its last rollup to plan, a request each; delta-rs has a fresh checkpoint.",
    "pyiceberg's catalog is a file of SQLite here, and is not counted; others are asked by network.",
)


def measure_requests(
    server: S3Server, scratch: Path, engines: Sequence[str], commits: int, parts: int
) -> Section:
    """Do everything with each engine, and count."""
    found: dict[str, dict[str, list[Request]]] = {}
    for name in engines:
        with S3Proxy(server.endpoint) as proxy:
            options = {**server.options, "AWS_ENDPOINT_URL": proxy.endpoint}
            engine = contender(name, server, options, scratch)
            found[name] = _count(proxy, engine, commits, parts)
    rows = [_row(operation, found) for operation in found[engines[0]]]
    columns = {"operation": Column("operation")}
    columns |= {name: Column(name, ",d") for name in engines}
    columns["kinds"] = Column("of instar's")
    return Section("Requests to S3", columns, rows, _NOTES)


def _count(proxy: S3Proxy, engine: Contender, commits: int, parts: int) -> dict[str, list[Request]]:
    counted: dict[str, list[Request]] = {}

    def count(operation: str, do: Callable[[], object]) -> None:
        proxy.take()
        do()
        counted[operation] = proxy.take()

    engine.create()
    for _ in range(commits - 1):
        engine.append()
    count("append of one part", engine.append)
    count("snapshot, nothing new", engine.refresh)
    count(f"rows of {commits} small parts", engine.read)
    count(f"open after {commits} appends", engine.open)
    count("evolve: add a column", engine.evolve)
    engine.seed(parts)
    question = Question.about(parts)
    needed: list[int] = []
    count(f"open, plan over {parts:,} parts", lambda: needed.append(engine.plan(question)))
    assert needed[0] < parts, "nothing was left out"
    return counted


def _row(operation: str, found: dict[str, dict[str, list[Request]]]) -> dict[str, Any]:
    kinds = Counter(request.kind for request in found["instar"][operation])
    return {
        "operation": operation,
        **{name: len(counted[operation]) for name, counted in found.items()},
        "kinds": ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())),
    }

"""`instar maintain`: retention, compaction and vacuum for all tables, once or again and again."""

from __future__ import annotations

import random
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from instar.amounts import format_bytes, format_count
from instar.cli.daemon import MetricsPortOption, serve_metrics, stopping
from instar.cli.options import ConsensusOption, StoreOption, open_store
from instar.cli.output import JsonOption, console, print_json, stderr_console
from instar.cli.progress import progress_bars
from instar.durations import parse_duration
from instar.errors import InstarError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from instar.api.maintenance import MaintenanceReport

__all__ = ["maintain"]


def maintain(
    *,
    period: Annotated[
        str | None,
        typer.Option(help="Keep running, with this much time between passes: 10m, 1h. By default, run once."),
    ] = None,
    jitter: Annotated[
        float, typer.Option(min=0, max=1, help="Change each pause at random by up to this share of it.")
    ] = 0.1,
    grace: Annotated[str, typer.Option(help="Vacuum only what is older: 30m, 24h.")] = "24h",
    metrics_port: MetricsPortOption = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="With --period, stop after this many passes.")
    ] = None,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Apply retention to every table of the store, compact it and vacuum it.

    A table that fails does not stop the others, but the exit code is then 1. With --period it runs until it
    is interrupted or gets SIGTERM; then it finishes the current rewrite first. If a pass after the first
    fails, its error is printed, and the next one comes as usual. Several may run: one leads, and the others
    wait.

    Examples:

        instar maintain

        instar maintain --period 1h --metrics-port 9090

    """
    pause = None if period is None else parse_duration(period) / 1000
    grace_ms = parse_duration(grace)
    serve_metrics(metrics_port)
    with open_store(store, consensus) as opened, stopping() as stop, _telling() as tell:
        maintenance = opened.maintenance(grace_ms=grace_ms)
        with closing(maintenance):
            passes = 0
            while True:
                try:
                    report = maintenance.run_once(stop=stop, tell=tell)
                except InstarError as error:
                    if not passes:
                        raise
                    stderr_console().print(f"error: {error}", soft_wrap=True)
                else:
                    if pause is None or not report.leader:
                        _print_report(report, as_json=as_json)
                passes += 1
                if pause is None or stop.is_set() or passes == rounds:
                    break
                if stop.wait(pause * (1 + random.uniform(-jitter, jitter))):  # noqa: S311 -- no secret
                    break
    if pause is None and report.failures:
        raise typer.Exit(1)


@contextmanager
def _telling() -> Iterator[Callable[[str, int, int], None] | None]:
    with progress_bars() as bars:
        yield bars


def _print_report(report: MaintenanceReport, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                **report._asdict(),
                "compaction": report.compaction._asdict(),
                "vacuum": report.vacuum._asdict(),
                "failures": [failure._asdict() for failure in report.failures],
            }
        )
        return
    if report.leader is not None:
        console().print(f"Nothing done: {report.leader} maintains this store.")
        return
    compaction, vacuum = report.compaction, report.vacuum
    console().print(
        f"{format_count(report.tables, 'table')} maintained: "
        f"history let go of {format_count(report.moved)}, "
        f"{format_count(compaction.parts_before, 'part')} rewritten "
        f"as {format_count(compaction.parts_after)}, "
        f"{format_count(vacuum.objects, 'object')} ({format_bytes(vacuum.bytes)}) deleted"
        f"{', stopped early' if report.stopped else ''}."
    )
    for failure in report.failures:
        console().print(f"{failure.table}: {failure.error}")

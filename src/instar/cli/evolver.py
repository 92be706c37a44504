"""`instar evolver …`: bring the tables of streams to the latest version."""

from __future__ import annotations

import time
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from instar.amounts import format_count
from instar.cli.daemon import MetricsPortOption, serve_metrics, stopping
from instar.cli.options import ConsensusOption, StoreOption, open_store
from instar.cli.output import JsonOption, console, print_json, print_table, stderr_console
from instar.cli.progress import progress_bars
from instar.durations import parse_duration
from instar.errors import InstarError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from instar import PassReport
    from instar.stream.evolution import Action, DeadLetter, EvolverState, Retry
    from instar.stream.evolver import StreamEvolver

__all__ = ["app"]

app = typer.Typer(
    name="evolver", help="Bring the tables of streams to the latest version.", no_args_is_help=True
)

StreamsArgument = Annotated[
    list[str] | None, typer.Argument(help="Streams; by default all of the store.", show_default=False)
]

AlwaysOption = Annotated[
    bool,
    typer.Option("--always", help="Also bring tables to the version whose change no query would notice."),
]


ShareOption = Annotated[
    float,
    typer.Option(
        min=0.01,
        max=1,
        help="The share of the time to work; it pauses between batches, because writers need the disk.",
    ),
]


@app.command()
def once(
    streams: StreamsArgument = None,
    *,
    always: AlwaysOption = False,
    share: ShareOption = 0.2,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Do everything that is due now, and report it.

    A table that fails does not stop the others: it is tried again later. Exits with 1 if any failed.

    Example:

        instar evolver once

    """
    with open_store(store, consensus) as opened, _progress() as tell:
        report = opened.evolver(*(streams or ()), always=always, share=share).run_once(tell)
    _print_report(report, as_json=as_json)
    raise typer.Exit(1 if report.failed else 0)


@app.command()
def run(  # noqa: PLR0913 -- each is an option of the command
    streams: StreamsArgument = None,
    *,
    every: Annotated[str, typer.Option(help="How often to look for raised versions: 10s, 5m.")] = "10s",
    metrics_port: MetricsPortOption = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many looks; by default only when interrupted.")
    ] = None,
    always: AlwaysOption = False,
    share: ShareOption = 0.2,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run until it is interrupted or gets SIGTERM: then it finishes the current step, and others may lead.

    Several may run: one leads each stream, and the others wait. Looking at a stream whose tables are all up
    to date costs two reads, however many tables it has. If a look after the first fails, its error is
    printed, and the next one comes as usual.

    Example:

        instar evolver run --every 1m --metrics-port 9090

    """
    pause = parse_duration(every) / 1000
    serve_metrics(metrics_port)
    with open_store(store, consensus) as opened, stopping() as stop:
        evolver = opened.evolver(*(streams or ()), always=always, share=share)
        looks = 0
        while rounds is None or looks < rounds:
            if looks and stop.wait(pause):
                break
            looks += 1
            try:
                report = evolver.run_once(stop=stop)
            except InstarError as error:
                if looks == 1:
                    raise
                stderr_console().print(f"error: {error}", soft_wrap=True)
                continue
            if any(report):
                _print_report(report, as_json=as_json)


@app.command()
def status(
    streams: StreamsArgument = None,
    *,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the evolver's progress on each stream, who leads, and what has failed.

    Example:

        instar evolver status

    """
    with open_store(store, consensus) as opened:
        names = streams or opened.streams()
        found = [_facts(evolver) for evolver in opened.evolver(*names).streams()] if names else []
    if as_json:
        print_json(found)
        return
    for fact in found:
        console().print(_status_in_words(fact))
        for letter in fact["failures"]:  # type: ignore[attr-defined]
            console().print(f"  {letter['table']}: {letter['attempts']} attempts, {letter['error']}")


@app.command()
def explain(
    stream: Annotated[str, typer.Argument(help="The stream's name.", show_default=False)],
    *,
    store: StoreOption = ".",
    consensus: ConsensusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what the evolver does next for a stream, and which older schemas a query would notice, and why.

    Example:

        instar evolver explain billing/events

    """
    with open_store(store, consensus) as opened:
        evolver = opened.evolver(stream).streams()[0]
        evolution, catalog, action = evolver.plan()
        judged = evolver.judge_all(catalog)
    verdicts = [
        {
            "versions": [str(version) for version in versions],
            "noticed": not verdict.compatible,
            "reasons": list(verdict.reasons),
        }
        for versions, verdict in judged
    ]
    text = _in_words(action, evolution)
    if as_json:
        print_json({"stream": stream, "target": str(catalog.max_version), "next": text, "verdicts": verdicts})
        return
    console().print(f"{stream}, at {catalog.max_version}: {text}")
    print_table(
        ("tables at", "beside the latest schema"),
        [
            (
                ", ".join(verdict["versions"]),  # type: ignore[arg-type]
                "; ".join(verdict["reasons"]) if verdict["noticed"] else "no query notices: left alone",  # type: ignore[arg-type]
            )
            for verdict in verdicts
        ],
    )


def _status_in_words(fact: dict[str, object]) -> str:
    """Say how far the evolver is with a stream, on two lines that fit a terminal."""
    leader = "" if fact["leader"] == "-" else f", led by {fact['leader']}"
    return (
        f"{fact['stream']} is at {fact['max_version']}, next pass: {fact['next']}\n"
        f"  target {fact['target']}: {fact['waiting']} waiting, {fact['stamped']} stamped, "
        f"{fact['skipped']} left alone, {fact['dead_letters']} dead letters{leader}"
    )


def _in_words(action: Action, evolution: EvolverState) -> str:
    from instar.stream.evolution import Rest, Walk  # noqa: PLC0415 -- slow

    match action:
        case Rest(until=until):
            return f"nothing to do until {_moment(until)}"
        case Walk(retargeted=True):
            return "the version was raised in the middle of a pass, which starts again"
        case Walk():
            return "a pass is due"
    return f"a pass is going on, {format_count(evolution.waiting, 'table waits', 'tables wait')}"


def _facts(evolver: StreamEvolver) -> dict[str, object]:
    from instar.stream.evolution import Rest  # noqa: PLC0415 -- slow

    evolution, catalog, action = evolver.plan()
    leader = evolution.leadership
    return {
        "stream": evolver.stream,
        "max_version": str(catalog.max_version),
        "target": evolution.version or "-",
        "checked": evolution.checked,
        "running": evolution.running,
        "waiting": evolution.waiting,
        "total": evolution.total,
        "stamped": evolution.stamped,
        "skipped": evolution.skipped,
        "vanished": evolution.vanished,
        "passes": evolution.passes,
        "dead_letters": len(evolution.dead),
        "failures": [
            {"table": each.table.name, "attempts": each.attempts, "error": each.error}
            for each in _failures(evolution)
        ],
        "last_check": None if evolution.last_check is None else _moment(evolution.last_check),
        "next": _moment(action.until) if isinstance(action, Rest) else "now",
        "leader": "-" if leader is None or leader.expires_at <= time.time() * 1000 else leader.holder,
    }


def _failures(evolution: EvolverState) -> Iterator[Retry | DeadLetter]:
    yield from evolution.retries
    yield from evolution.dead


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="seconds")


def _print_report(report: PassReport, *, as_json: bool) -> None:
    if as_json:
        print_json(report._asdict())
        return
    console().print(
        f"{format_count(report.passes, 'pass', 'passes')} done: "
        f"{format_count(report.stamped, 'table')} stamped, "
        f"{format_count(report.skipped)} left alone because no query would notice, "
        f"{format_count(report.failed)} failed, {format_count(report.vanished)} gone, "
        f"{format_count(report.waiting)} waiting."
    )


@contextmanager
def _progress() -> Iterator[Callable[[str, EvolverState], None]]:
    """Show how many tables of each stream are done."""
    with progress_bars("tables") as bars:

        def tell(stream: str, evolution: EvolverState) -> None:
            if bars is not None:
                total = max(evolution.total, 1)
                bars(stream, total - evolution.waiting, total)

        yield tell

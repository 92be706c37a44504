"""`instar lineage backfill|cleanup|status`: from the old layout to schemas kept once."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from instar.cli.lineage import DatabaseOption, app, require_lineage
from instar.cli.output import JsonOption, console, print_json
from instar.cli.progress import progress_bars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from instar.lineage.old_layout.phases import Progress

__all__ = ["app", "backfill", "cleanup", "status"]


@app.command()
def backfill(
    *,
    db: DatabaseOption = "sqlite:///lineage.db",
    batch: Annotated[
        int, typer.Option(min=1, help="How many dataset versions one transaction converts, at most.")
    ] = 200,
    as_json: JsonOption = False,
) -> None:
    """Convert dataset versions of the old layout, and check that both layouts agree.

    Works on an early database of instar and on one of Marquez 0.48 or newer. The service may
    run meanwhile. An interrupted backfill continues where it was.

    Examples:

        instar lineage backfill --db postgresql://marquez@db/marquez

    """
    require_lineage()
    from instar.lineage.old_layout import phases  # noqa: PLC0415 -- an extra

    with phases.open_any_layout(db) as database, _bar() as report:
        found = phases.backfill(database, batch=batch, report=report)
    _show(found, as_json=as_json)


@app.command()
def cleanup(
    *,
    db: DatabaseOption = "sqlite:///lineage.db",
    marquez_stopped: Annotated[
        bool, typer.Option("--marquez-stopped", help="Marquez no longer runs on this database.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check once more that both layouts agree, and drop the old one.

    Examples:

        instar lineage cleanup --db sqlite:///lineage.db

    """
    require_lineage()
    from instar.lineage.old_layout import phases  # noqa: PLC0415 -- an extra

    with phases.open_any_layout(db) as database, _bar() as report:
        found = phases.cleanup(database, marquez_stopped=marquez_stopped, report=report)
    _show(found, as_json=as_json)


@app.command()
def status(*, db: DatabaseOption = "sqlite:///lineage.db", as_json: JsonOption = False) -> None:
    """Show the progress of the move from the old layout.

    Examples:

        instar lineage status --db sqlite:///lineage.db

    """
    require_lineage()
    from instar.lineage.old_layout import phases  # noqa: PLC0415 -- an extra

    with phases.open_any_layout(db) as database:
        found = phases.status(database)
    _show(found, as_json=as_json)


def _show(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    for name in ("database", "write both", "backfill", "cleanup"):
        console().print(f"{name + ':':<12} {found[name]}")
    if "progress" in found:
        progress = found["progress"]
        console().print(
            f"{progress['versions']:,} of {progress['total']:,} dataset versions looked at, "
            f"{progress['converted']:,} converted, {progress['mismatches']:,} mismatches"
        )


@contextmanager
def _bar() -> Iterator[Callable[[Progress], None]]:
    """Show how many dataset versions each step has come to."""
    with progress_bars("versions") as tell:

        def report(progress: Progress) -> None:
            if tell is not None:
                tell(progress.step, progress.done, progress.total)

        yield report

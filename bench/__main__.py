"""`python -m bench`: one command for each benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench import state

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Measure instar beside its peers.")

FullOption = Annotated[bool, typer.Option("--full", help="Measure the largest sizes too.")]
QuickOption = Annotated[bool, typer.Option("--quick", help="Only prove that it runs.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of tables.")]
DirectoryOption = Annotated[
    Path | None, typer.Option(help="Where to work; a disk is not the same as memory.", exists=True)
]


@app.callback()
def main() -> None:
    """Measure instar beside its peers: ratios from one run, and times only next to them."""


@app.command("state")
def bench_state(
    *,
    full: FullOption = False,
    quick: QuickOption = False,
    json: JsonOption = False,
    directory: DirectoryOption = None,
) -> None:
    """Measure commits as a table grows, opening it cold, and commits per second."""
    plan = state.FULL if full else state.QUICK if quick else state.DEFAULT
    command = "./dev bench state" + " --full" * full + " --quick" * quick
    report = state.run(plan, command, directory)
    if json:
        report.print_json()
    else:
        report.print()


if __name__ == "__main__":
    app()

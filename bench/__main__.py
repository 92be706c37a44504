"""`python -m bench`: one command for each benchmark."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

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


def _measure(name: str, full: bool, quick: bool, json: bool, directory: Path | None) -> None:  # noqa: FBT001 -- options
    """Run one benchmark at the size that was asked for, and print what it found."""
    module = import_module(f"bench.{name}")
    plan = module.FULL if full else module.QUICK if quick else module.DEFAULT
    report = module.run(plan, f"./dev bench {name}" + " --full" * full + " --quick" * quick, directory)
    if json:
        report.print_json()
    else:
        report.print()


@app.command("state")
def bench_state(
    *,
    full: FullOption = False,
    quick: QuickOption = False,
    json: JsonOption = False,
    directory: DirectoryOption = None,
) -> None:
    """Measure commits as a table grows, opening it cold, and commits per second."""
    _measure("state", full, quick, json, directory)


@app.command("startup")
def bench_startup(
    *,
    full: FullOption = False,
    quick: QuickOption = False,
    json: JsonOption = False,
    directory: DirectoryOption = None,
) -> None:
    """Measure `import instar` and commands that do no work, beside sqlite-utils."""
    _measure("startup", full, quick, json, directory)


@app.command("scan")
def bench_scan(
    *,
    full: FullOption = False,
    quick: QuickOption = False,
    json: JsonOption = False,
    directory: DirectoryOption = None,
) -> None:
    """Measure scans on Spark beside plain Parquet, many schemas beside one, and planning."""
    _measure("scan", full, quick, json, directory)


@app.command("joins")
def bench_joins(
    *,
    full: FullOption = False,
    quick: QuickOption = False,
    json: JsonOption = False,
    directory: DirectoryOption = None,
) -> None:
    """Measure joins that prune, counts from metadata, and planning, beside plain Parquet and files."""
    _measure("joins", full, quick, json, directory)


@app.command("stale")
def bench_stale(*, json: JsonOption = False, directory: DirectoryOption = None) -> None:
    """Try what becomes of readers and writers whose schema has changed, beside the peers."""
    _measure("stale", False, False, json, directory)  # noqa: FBT003 -- there is only one size


@app.command("append")
def bench_append(
    *,
    full: FullOption = False,
    quick: QuickOption = False,
    json: JsonOption = False,
    directory: DirectoryOption = None,
) -> None:
    """Measure appends from Spark beside plain Parquet, and memory as the input grows."""
    _measure("append", full, quick, json, directory)


@app.command("streams")
def bench_streams(
    *,
    full: FullOption = False,
    quick: QuickOption = False,
    json: JsonOption = False,
    directory: DirectoryOption = None,
) -> None:
    """Measure the evolver, writes beside it, a range of tables read as one frame, and protobuf."""
    _measure("streams", full, quick, json, directory)


@app.command("skipping")
def bench_skipping(
    *,
    full: FullOption = False,
    quick: QuickOption = False,
    json: JsonOption = False,
    directory: DirectoryOption = None,
) -> None:
    """Measure which parts a filter needs beside the peers, the decision, and what queries gain and lose."""
    _measure("skipping", full, quick, json, directory)


@app.command("protobuf")
def bench_protobuf(
    *,
    full: FullOption = False,
    quick: QuickOption = False,
    json: JsonOption = False,
    directory: DirectoryOption = None,
) -> None:
    """Measure records of protobuf written to a stream beside the same rows from Parquet."""
    _measure("protobuf", full, quick, json, directory)


@app.command("tpch")
def bench_tpch(
    *,
    full: FullOption = False,
    quick: QuickOption = False,
    json: JsonOption = False,
    directory: DirectoryOption = None,
) -> None:
    """Measure the queries of TPC-H over tables with a history of schemas, beside plain Parquet."""
    _measure("tpch", full, quick, json, directory)


@app.command("lineage")
def bench_lineage(
    *,
    full: FullOption = False,
    quick: QuickOption = False,
    json: JsonOption = False,
    directory: DirectoryOption = None,
) -> None:
    """Measure schemas in the old layout and in ours, events per second, and reads as versions grow."""
    _measure("lineage", full, quick, json, directory)


@app.command("retract")
def bench_retract(
    *,
    full: FullOption = False,
    quick: QuickOption = False,
    json: JsonOption = False,
    directory: DirectoryOption = None,
) -> None:
    """Measure deletes and upserts by position, and how much reads notice of them."""
    _measure("retract", full, quick, json, directory)


@app.command("compact")
def bench_compact(
    *,
    full: FullOption = False,
    quick: QuickOption = False,
    json: JsonOption = False,
    directory: DirectoryOption = None,
) -> None:
    """Measure compaction beside Spark and delta-rs, what queries gain, and lookups as parts grow."""
    _measure("compact", full, quick, json, directory)


@app.command("cloud")
def bench_cloud(
    *,
    full: FullOption = False,
    quick: QuickOption = False,
    json: JsonOption = False,
    directory: DirectoryOption = None,
) -> None:
    """Count requests to S3 beside the peers, and read a table on S3 with Spark beside plain Parquet."""
    _measure("cloud", full, quick, json, directory)


if __name__ == "__main__":
    app()

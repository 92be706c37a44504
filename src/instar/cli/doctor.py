"""`instar doctor`: is everything here that instar needs?"""

from __future__ import annotations

import platform
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated

import typer

import instar
from instar.cli.options import ConsensusOption, open_store
from instar.cli.output import JsonOption, console, print_json, print_table, working
from instar.errors import InstarError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.table.housekeeping.examination import Finding

__all__ = ["doctor"]

_PACKAGES = ("pyarrow", "obstore", "pyspark", "pandas", "psycopg", "polars", "duckdb")


def doctor(
    store: Annotated[
        str | None, typer.Option("--store", "-s", envvar="INSTAR_STORE", help="Examine this store too.")
    ] = None,
    consensus: ConsensusOption = None,
    *,
    spark: Annotated[
        bool, typer.Option("--spark/--no-spark", help="Start a Spark session, which takes some seconds.")
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Examine this machine, its Spark and a store, and say how to fix what is wrong.

    In a store, one object is written below `probes/` and deleted again. The exit code is 1 if something is
    wrong, and 0 if there are only warnings.

    Examples:

        instar doctor

        instar doctor --store s3://bucket/lake

    """
    with working("examining"):
        findings = list(_examine(store, consensus, spark=spark))
    if as_json:
        print_json([{**finding._asdict(), "health": str(finding.health)} for finding in findings])
    else:
        print_table(
            ["what", "health", "found"],
            [(finding.what, str(finding.health), finding.found) for finding in findings],
        )
        for finding in findings:
            if finding.remedy:
                console().print(f"{finding.what}: {finding.remedy}", soft_wrap=True, highlight=False)
    if any(finding.health == "wrong" for finding in findings):
        raise typer.Exit(1)


def _examine(store: str | None, consensus: str | None, *, spark: bool) -> Iterator[Finding]:
    from instar.storage import open_blob  # noqa: PLC0415 -- slow
    from instar.table.housekeeping.examination import Finding, Health  # noqa: PLC0415 -- slow

    yield Finding("Python", Health.FINE, f"{platform.python_version()}, {sys.executable}")
    there = {name: _version(name) for name in _PACKAGES}
    found = ", ".join(f"{name} {one}" for name, one in there.items() if one)
    yield Finding("packages", Health.FINE, f"instar {instar.__version__}, {found}")
    pandas = there["pandas"]
    if pandas and int(pandas.partition(".")[0]) > 2:  # noqa: PLR2004 -- what PySpark takes
        remedy = "Install pandas below 3."
        yield Finding("pandas", Health.WRONG, f"PySpark does not work with pandas {pandas}", remedy)
    java = shutil.which("java")
    if there["pyspark"] and java is None:
        remedy = "Install a Java runtime, 17 or newer, such as openjdk-17-jre-headless."
        yield Finding("Java", Health.WRONG, "there is no `java` on the path, and Spark needs it", remedy)
        spark = False
    blob = None
    if store is not None:
        try:
            with open_store(store, consensus) as opened:
                yield from opened.examine()
            blob = open_blob(store)
        except InstarError as error:
            yield Finding("store", Health.WRONG, str(error), "Check its address and its credentials.")
    if spark:
        try:
            from instar.spark.commands.examination import examine_spark  # noqa: PLC0415 -- only if asked
        except ImportError:
            remedy = "Install it with: pip install 'instar[spark]'."
            yield Finding("Spark", Health.WARNING, "PySpark is not installed: all else works", remedy)
        else:
            yield from examine_spark(blob)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None

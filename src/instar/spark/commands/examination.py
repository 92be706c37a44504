"""Examine Spark: does a session start, and can it open the files of a store itself?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark

from instar.errors import InstarError
from instar.spark.catalog.install import why_no_catalog
from instar.spark.native.callbacks import why_untended
from instar.spark.native.file_systems import connector, find_file_system
from instar.spark.native.gateway import gateway_of
from instar.spark.native.stand_ins import why_no_stand_ins
from instar.spark.planner.compiled import Feature, compiled_planner
from instar.spark.planner.guards import why_not
from instar.spark.session import local_session
from instar.table.housekeeping.examination import Finding, Health

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from instar.spark.native.gateway import Gateway
    from instar.storage import Blob

__all__ = ["examine_planner", "examine_spark"]


def examine_spark(blob: Blob | None) -> Iterator[Finding]:
    """Start a session, or take the one that runs, and ask for its file system."""
    try:
        session = local_session("instar doctor")
    except InstarError as error:
        yield Finding("Spark", Health.WRONG, str(error), "Install Java 17 or newer, and set JAVA_HOME.")
        return
    gateway = gateway_of(session)
    java = gateway.jvm.java.lang.System.getProperty("java.version")
    yield Finding("Spark", Health.FINE, f"PySpark {pyspark.__version__} on Java {java} starts")
    yield from _examine_callbacks(session)
    yield examine_planner(gateway)
    yield _examine_catalog(gateway)
    yield from _examine_views(gateway)
    if blob is None:
        return
    system = find_file_system(gateway, blob)
    if system.scheme is not None:
        yield Finding("file system", Health.FINE, f"Spark opens {system.root} itself")
        return
    found = f"Spark has no file system for {blob.url} ({system.why}): Python workers read it, which is slower"
    remedy = f"Start sessions with spark.jars.packages={connector(gateway, blob.url)}."
    yield Finding("file system", Health.WARNING, found, remedy)


def examine_planner(gateway: Gateway) -> Finding:
    """Look which interfaces of Spark's planner this session has, and whether they work."""
    missing = dict(compiled_planner(gateway).missing)
    unsafe = why_not(gateway)
    if unsafe is not None:
        missing[Feature.SCAN] = unsafe
    found = [f"no {feature.value}: {why}" for feature, why in missing.items()]
    if not found:
        told = ", ".join(feature.value for feature in Feature)
        return Finding("planner", Health.FINE, f"Spark's planner can know tables: {told}")
    remedy = "Tables are read over files instead, with the same rows; nothing has to be done."
    return Finding("planner", Health.WARNING, "; ".join(found), remedy)


def _examine_callbacks(session: SparkSession) -> Iterator[Finding]:
    """Say if connections that Spark opens stay open: nothing to tell if they do not."""
    found = why_untended(session.sparkContext._gateway)  # noqa: SLF001 -- there is no other way to it
    if found is not None:
        what, _, remedy = found.partition(": start ")
        yield Finding("callbacks", Health.WARNING, what, f"Start {remedy}.")


def _examine_views(gateway: Gateway) -> Iterator[Finding]:
    """Say if this Spark has no views that follow tables: nothing to tell if it has."""
    reason = why_no_stand_ins(gateway)
    if reason is not None:
        what, _, remedy = reason.partition(": ")
        found = f"{what}, so there are no views, and no reading of tables whose rows were deleted"
        yield Finding("views", Health.WARNING, found, f"{remedy[:1].upper()}{remedy[1:]}.")


def _examine_catalog(gateway: Gateway) -> Finding:
    """Say whether this Spark can have catalogs of ours."""
    reason = why_no_catalog(gateway)
    if reason is None:
        return Finding("catalog", Health.FINE, "a store can be a catalog of Spark SQL")
    found = f"a store cannot be a catalog of this Spark ({reason}): views and table.read(spark) work"
    return Finding("catalog", Health.WARNING, found, "Use a release of Spark that instar was tested with.")

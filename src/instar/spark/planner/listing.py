"""Files for Spark's own scan of Parquet: an index that is told them, and the scan over it.

Spark splits files into partitions, and reads them on executors, without another call to Python.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from instar.spark.native.relation import READ_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from instar.spark.planner.columns import Columns
    from instar.spark.planner.interfaces import Interfaces

__all__ = ["ListingLostError", "is_columnar", "parquet_scan"]

_ROOT: Final = "file:/instar"
_LOOKUP: Final = {"recursiveFileLookup": "true", "ignoredPathSegmentRegex": "^[._]"}
"""How an index takes files; with a pattern that is not its usual one, it would ignore what it is told."""


class ListingLostError(Exception):
    """Spark did not take the files that it was told."""


def parquet_scan(
    interfaces: Interfaces,
    files: Sequence[tuple[str, int]],
    whole: Columns,
    read: Columns,
    filters: Sequence[Any],
) -> Any:  # noqa: ANN401 -- a Java object
    """Return Spark's scan of files, given as (path, size), for some of their columns.

    `filters` are expressions on columns of the files, which leave out row groups.
    """
    gateway = interfaces.gateway
    options = gateway.jvm.java.util.HashMap()
    for name, value in READ_OPTIONS.items():
        options.put(name, value)
    translated = [interfaces.strategy.translateFilter(own, True) for own in filters]  # noqa: FBT003
    pushed = [own.get() for own in translated if own.isDefined()]
    settings = gateway.session.sessionState().newHadoopConfWithOptions(gateway.options(READ_OPTIONS))
    return interfaces.parquet_scan(
        gateway.session,
        settings,
        _index(interfaces, files),
        gateway.schema(whole.stored_json),
        gateway.schema(read.stored_json),
        interfaces.empty_schema,
        interfaces.array(interfaces.filter, pushed),
        interfaces.option_map(options),
        gateway.none(),
        gateway.seq([]),
        gateway.seq([]),
        interfaces.no_variants,
    )


def is_columnar(interfaces: Interfaces, schema: Any) -> bool:  # noqa: ANN401 -- Spark's schema
    """Whether Spark reads columns of a schema in batches, as it would say for each file itself."""
    conf = interfaces.conf.get()
    return bool(
        interfaces.parquet_utils.isBatchReadSupportedForSchema(conf, schema)
        and conf.wholeStageEnabled()
        and not interfaces.codegen.isTooManyFields(conf, schema)
    )


def _index(interfaces: Interfaces, files: Sequence[tuple[str, int]]) -> Any:  # noqa: ANN401 -- a Java object
    """Return an index that holds these files and no others, without having looked for any."""
    gateway = interfaces.gateway
    digest = blake2b("\0".join(path for path, _ in files).encode(), digest_size=16).hexdigest()
    root = gateway.path(f"{_ROOT}/{digest}")
    cache = interfaces.new_cache()
    cache.putLeafFiles(root, gateway.statuses([(path, size, 0) for path, size in files]))
    index = interfaces.file_index(
        gateway.session,
        gateway.seq([root]),
        gateway.options(_LOOKUP),
        gateway.none(),
        cache,
        interfaces.no_partitions,
        gateway.none(),
    )
    cache.invalidateAll()
    held = index.listFiles(gateway.seq([]), gateway.seq([])).head().files().size()
    if held != len(files):
        raise ListingLostError(f"Spark holds {held} of {len(files)} files")
    return index

"""Files for Spark's own scan of Parquet: an index that is told them, and the scan over it.

Spark splits files into partitions, and reads them on executors, without another call to Python.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from instar.spark.planner.interfaces import Interfaces

__all__ = ["ListingLostError", "is_columnar", "list_files", "parquet_scan"]

_ROOT: Final = "file:/instar"


class ListingLostError(Exception):
    """Spark did not take the files that it was told."""


def parquet_scan(
    interfaces: Interfaces,
    files: Sequence[tuple[str, int]],
    whole: Any,  # noqa: ANN401 -- Spark's schemas
    read: Any,  # noqa: ANN401
    filters: Sequence[Any],
) -> Any:  # noqa: ANN401 -- a Java object
    """Return Spark's scan of files, given as (path, size), for some of their columns.

    `filters` are expressions on columns of the files, which leave out row groups.
    """
    gateway = interfaces.gateway
    translated = [interfaces.strategy.translateFilter(own, True) for own in filters]  # noqa: FBT003
    pushed = [own.get() for own in translated if own.isDefined()]
    settings = gateway.session.sessionState().newHadoopConfWithOptions(interfaces.read_options[0])
    return interfaces.parquet_scan(
        gateway.session,
        settings,
        list_files(interfaces, files),
        whole,
        read,
        interfaces.empty_schema,
        interfaces.array(interfaces.filter, pushed),
        interfaces.read_options[1],
        gateway.none(),
        interfaces.no_items,
        interfaces.no_items,
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


def list_files(interfaces: Interfaces, files: Sequence[tuple[str, int]]) -> Any:  # noqa: ANN401 -- a Java object
    """Return an index that holds these files and no others, without having looked for any."""
    gateway = interfaces.gateway
    digest = blake2b("\0".join(path for path, _ in files).encode(), digest_size=16).hexdigest()
    root = gateway.path(f"{_ROOT}/{digest}")
    cache = interfaces.new_cache()
    cache.putLeafFiles(root, gateway.statuses([(path, size, 0) for path, size in files]))
    index = interfaces.file_index(
        gateway.session,
        gateway.seq([root]),
        interfaces.lookup,
        gateway.none(),
        cache,
        interfaces.no_partitions,
        gateway.none(),
    )
    cache.invalidateAll()
    held = index.listFiles(interfaces.no_items, interfaces.no_items).head().files().size()
    if held != len(files):
        raise ListingLostError(f"Spark holds {held} of {len(files)} files")
    return index

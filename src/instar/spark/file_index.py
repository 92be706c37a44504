"""`PartIndex`: a table's parts as Spark's `FileIndex`, asked anew by every query with its complete filter.

Spark calls the methods through Py4J, under the names that its own interface has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from instar.spark.relay import relayed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from instar.spark.gateway import Gateway

__all__ = ["FileGroup", "Listing", "PartIndex"]


class FileGroup(NamedTuple):
    """Files, as (path, size), that share the values of the partition columns."""

    values: tuple[str | None, ...]
    files: Sequence[tuple[str, int]]


class Listing(NamedTuple):
    """What a query shall read."""

    groups: Sequence[FileGroup]
    total_bytes: int


class PartIndex:
    """Answers Spark's questions about files from a listing that is made when it asks.

    `label` is what `explain()` shows for the location. `list_parts` gets the query's filters as Catalyst's
    JSON. The index keeps alive whatever `list_parts` does, such as a lease.
    """

    def __init__(
        self,
        gateway: Gateway,
        label: str,
        partition_schema: str,
        list_parts: Callable[[Sequence[str]], Listing],
    ) -> None:
        self._gateway = gateway
        self._label = label
        self._partition_schema = gateway.schema(partition_schema)
        self._list_parts = list_parts

    def rootPaths(self) -> Any:  # noqa: ANN401, N802 -- Spark's interface, here and below
        """Name the table and its state."""
        return self._gateway.seq([self._gateway.path(self._label)])

    @relayed
    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:  # noqa: ANN401, N802
        """Return the parts that a query with these filters reads."""
        filters = [*_json(partition_filters), *_json(data_filters)]
        groups = self._list_parts(filters).groups
        return self._gateway.seq([self._gateway.directory(group.values, group.files) for group in groups])

    @relayed
    def inputFiles(self) -> Any:  # noqa: ANN401, N802
        """Return all paths."""
        paths = [path for group in self._list_parts(()).groups for path, _ in group.files]
        return self._gateway.strings(paths)

    @relayed
    def sizeInBytes(self) -> int:  # noqa: N802
        """Return what a join needs to know before it broadcasts a table."""
        return self._list_parts(()).total_bytes

    def partitionSchema(self) -> Any:  # noqa: ANN401, N802
        """Return the columns whose values come with a file instead of from it."""
        return self._partition_schema

    def refresh(self) -> None:
        """Do nothing: every listing is fresh."""

    def metadataOpsTimeNs(self) -> Any:  # noqa: ANN401, N802
        """Measure nothing."""
        return self._gateway.none()

    def toString(self) -> str:  # noqa: N802
        """Name the table."""
        return self._label

    def hashCode(self) -> int:  # noqa: N802
        """Return a number that equal indexes share."""
        return hash(self._label) & 0x7FFF_FFFF

    def equals(self, other: object) -> bool:
        """Whether Spark may reuse the scan of one for the other: only if it is the same."""
        return self is other

    class Java:
        """What Py4J makes of it in the JVM."""

        implements = ("org.apache.spark.sql.execution.datasources.FileIndex",)


def _json(expressions: Any) -> list[str]:  # noqa: ANN401 -- a Scala sequence
    return [expressions.apply(at).toJSON() for at in range(expressions.size())]

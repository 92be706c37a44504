"""`PartIndex`: a table's parts as Spark's `FileIndex`, asked anew by every query with its complete filter.

Spark calls the methods through Py4J, under the names that its own interface has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from instar.spark.relay import relayed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from instar.spark.gateway import Gateway

__all__ = ["FileGroup", "Keeper", "Listing", "PartIndex"]


class FileGroup(NamedTuple):
    """Files, as (path, size), that share the values of the partition columns."""

    values: tuple[str | None, ...]
    files: Sequence[tuple[str, int]]


class Listing(NamedTuple):
    """What a query shall read; `keeper` lives as long as a plan of Spark's knows the listing."""

    groups: Sequence[FileGroup]
    keeper: Keeper | None = None


class Keeper:
    """Something that a listing needs, such as a lease: its end in the JVM is its end here."""

    def run(self) -> None:
        """Do nothing: the JVM only has to hold it."""

    def toString(self) -> str:  # noqa: N802 -- Java's name
        """Say what this is."""
        return "instar lease"

    class Java:
        """The smallest interface that there is."""

        implements = ("java.lang.Runnable",)


class PartIndex:
    """Answers Spark's questions about files from a listing that is made when it asks.

    `label` is what `explain()` shows for the location. `list_parts` gets the query's filters as Catalyst's
    JSON; `size` tells how many bytes there are. The index keeps both alive, and what they keep.
    """

    def __init__(
        self,
        gateway: Gateway,
        label: str,
        partition_schema: str,
        list_parts: Callable[[Sequence[str]], Listing],
        size: Callable[[], int],
    ) -> None:
        self._gateway = gateway
        self._label = label
        self._partition_schema = gateway.schema(partition_schema)
        self._list_parts = list_parts
        self._size = size

    def rootPaths(self) -> Any:  # noqa: ANN401, N802 -- Spark's interface, here and below
        """Name the table and its state."""
        return self._gateway.seq([self._gateway.path(self._label)])

    @relayed
    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:  # noqa: ANN401, N802
        """Return the parts that a query with these filters reads."""
        filters = [*_json(partition_filters), *_json(data_filters)]
        groups, keeper = self._list_parts(filters)
        return self._gateway.seq(
            [self._gateway.directory(group.values, group.files, keeper) for group in groups]
        )

    @relayed
    def inputFiles(self) -> Any:  # noqa: ANN401, N802
        """Return all paths."""
        paths = [path for group in self._list_parts(()).groups for path, _ in group.files]
        return self._gateway.strings(paths)

    @relayed
    def sizeInBytes(self) -> int:  # noqa: N802
        """Return what a join needs to know before it broadcasts a table."""
        return self._size()

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

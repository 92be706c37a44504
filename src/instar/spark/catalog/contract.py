"""What a catalog needs of a store and of its tables: a part of what `Store` and `Table` have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from instar.schema import Schema, SchemaLike, SchemaUpdate
    from instar.state import ConfigValue, TableState
    from instar.table.log.history import CommitInfo
    from instar.table.read.report import ScanReport

__all__ = ["CatalogStore", "StoredTable", "WritableTable"]


class Readable(Protocol):
    """The rows of a table at one time."""

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """Return them as a frame."""


class WritableTable(Protocol):
    """What takes rows: a table, or one that is about to be created."""

    @property
    def name(self) -> str:
        """Its name."""

    def append(self, data: DataFrame) -> Any:  # noqa: ANN401 -- what it came to, here and below
        """Add rows."""

    def overwrite(self, data: DataFrame, where: str | None = None) -> Any:  # noqa: ANN401
        """Put rows in the place of those for which a condition is true, or of all."""


class StoredTable(WritableTable, Protocol):
    """One table."""

    @property
    def state(self) -> TableState:
        """What is known of it."""

    @property
    def schema(self) -> Schema:
        """Its latest schema."""

    def snapshot(self, as_of: datetime | None = None, *, version: int | None = None) -> Readable:
        """Return the rows as of a time or a version."""

    def delete(self, where: str, spark: SparkSession | None = None) -> Any:  # noqa: ANN401
        """Retract the rows for which a condition is true."""

    def update(
        self, values: Mapping[str, str], where: str | None = None, spark: SparkSession | None = None
    ) -> Any:  # noqa: ANN401
        """Give the rows for which a condition is true other values."""

    def merge(self, data: DataFrame, on: Sequence[str]) -> Any:  # noqa: ANN401
        """Begin to merge data."""

    def explain(self, where: str) -> ScanReport:
        """Report which parts a condition needs."""

    def history(self, limit: int | None = None) -> Sequence[CommitInfo]:
        """Return who committed what."""

    def evolve(self) -> SchemaUpdate:
        """Begin a change of schema."""

    def configure(self, **options: ConfigValue | Sequence[str] | None) -> None:
        """Set options."""

    def comment(self, text: str | None, column: str | None = None) -> None:
        """Say what the table or a column is for."""


class CatalogStore(Protocol):
    """A store."""

    location: str

    def table(self, name: str) -> StoredTable:
        """Open a table."""

    def tables(self, prefix: str = "") -> list[str]:
        """Return the names of the tables."""

    def create_table(  # noqa: PLR0913 -- as `Store` has it
        self,
        name: str,
        schema: SchemaLike,
        *,
        order_by: Sequence[str] = (),
        key: Sequence[str] = (),
        cluster_by: Sequence[str] = (),
        options: Mapping[str, ConfigValue | Sequence[str]] | None = None,
        comments: Mapping[str | None, str] | None = None,
        data: DataFrame | None = None,
        replace: bool = False,
    ) -> StoredTable:
        """Create a table, perhaps with rows, and perhaps in the place of another."""

    def drop_table(self, name: str) -> None:
        """End a table."""

    def rename_table(self, name: str, new_name: str) -> StoredTable:
        """Give a table another name."""

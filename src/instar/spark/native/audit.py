"""Checking on Spark what was skipped: the same filters over the parts that were left out find no row.

The query that is being planned waits for it. The filters are the very expressions of that query, so that
nothing stands between the proof and Spark's own understanding of them.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from instar.spark.native.file_index import FileGroup, FileSource, Listing, PartIndex
from instar.spark.native.file_systems import locator
from instar.spark.native.names import COLUMN_NAME, by_column_name
from instar.spark.native.relation import struct_json
from instar.table.read.selection import found_violation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from instar.spark.native.filters import Filters
    from instar.spark.native.gateway import Gateway
    from instar.state import TableState
    from instar.table import Services
    from instar.table.log.part_set import PartSet
    from instar.table.read.pruning import Condition

__all__ = ["check_skipped"]

_NOT_OF_A_ROW: Final = ("FAILED_READ_FILE", "INTERNAL_ERROR")
"""Errors that say nothing about what a filter does on a row."""


def check_skipped(
    gateway: Gateway,
    services: Services,
    state: TableState,
    condition: Condition,
    filters: Filters,
    skipped: PartSet,
) -> None:
    """Raise if one of the parts that were skipped has a row that the filters are true for, or fail on."""
    conditions = [own for own in filters.expressions if _is_of_columns(own)]
    if not conditions:
        return
    locate = locator(gateway, services.blob)
    files = {locate(key): (key, size) for key, size in skipped.files}
    names = {name: field.name for name, field in by_column_name(state.history.latest.fields).items()}
    audit = _Audit(gateway, conditions, f"instar:/{state.name}@{state.seqno} (audit)", names)
    found = audit.find([(path, size) for path, (_, size) in files.items()])
    if found is not None:
        path, row = found
        raise found_violation(services, state, condition, files[path][0], row)


class _FileList(FileSource):
    """Files that are always read, whatever is asked."""

    def __init__(self, files: Sequence[tuple[str, int]]) -> None:
        self._files = files

    def files(self, filters: Filters) -> Listing:  # noqa: ARG002
        return Listing([FileGroup((), list(self._files))])

    def size(self) -> int:
        return sum(size for _, size in self._files)


class _Audit:
    """The filters of one query, to be asked of other files."""

    def __init__(
        self, gateway: Gateway, conditions: Sequence[Any], label: str, names: Mapping[str, str]
    ) -> None:
        self._gateway = gateway
        self._names = names
        self._label = label
        catalyst = gateway.jvm.org.apache.spark.sql.catalyst
        self._condition = reduce(catalyst.expressions.And, conditions)
        # The attributes of the query itself, so that its expressions find them.
        self._output = self._condition.references().toSeq()
        self._schema: str = catalyst.types.DataTypeUtils.fromAttributes(self._output).json()

    def find(self, files: Sequence[tuple[str, int]]) -> tuple[str, str] | None:
        """Find a row that the filters are true for, or fail on: its file, and what it is."""
        try:
            rows = self._matching(files).take(1)
        except PySparkException as error:
            if (error.getCondition() or "INTERNAL_ERROR").startswith(_NOT_OF_A_ROW):
                raise
            if len(files) == 1:
                return files[0][0], f"an error on a row: {str(error).splitlines()[0]}"
            middle = len(files) // 2
            return self.find(files[:middle]) or self.find(files[middle:])
        if not rows:
            return None
        name, *values = rows[0]
        columns = [self._names.get(column, column) for column in rows[0].__fields__[1:]]
        # Spark tells the file as a URL.
        path = next(path for path, _ in files if unquote(name).endswith(path.rpartition("/")[2]))
        return path, f"the row {dict(zip(columns, values, strict=True))}"

    def _matching(self, files: Sequence[tuple[str, int]]) -> DataFrame:
        gateway = self._gateway
        index = PartIndex(gateway, self._label, struct_json(()), _FileList(files))
        relation = index.relation(self._schema)
        sql = gateway.jvm.org.apache.spark.sql
        none = gateway.none()
        scanned = sql.execution.datasources.LogicalRelation(relation, self._output, none, False, none)  # noqa: FBT003
        matching = sql.catalyst.plans.logical.Filter(self._condition, scanned)
        frame = DataFrame(sql.classic.Dataset.ofRows(gateway.session, matching), gateway.spark)
        return frame.select(F.input_file_name(), "*")


def _is_of_columns(expression: Any) -> bool:  # noqa: ANN401 -- an expression
    """Whether a filter is about columns of the table, and not about times and diffs."""
    names = expression.references().toSeq()
    return names.nonEmpty() and all(
        COLUMN_NAME.fullmatch(names.apply(at).name()) for at in range(names.size())
    )

"""Listing the parts of a scan whenever Spark asks: those that its filters need, by proof."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from instar.errors import UsageError
from instar.schema import List, Map, Struct
from instar.spark.native.audit import check_skipped
from instar.spark.native.file_index import FileGroup
from instar.state.chunk import FILES, TIMES
from instar.table.read.audit import resolve_policy
from instar.table.read.pruning import Condition, total_bytes
from instar.table.read.report import report_scan
from instar.table.read.selection import select_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from instar.schema import Field
    from instar.spark.native.filters import Filters
    from instar.spark.native.gateway import Gateway
    from instar.state import ConfigValue
    from instar.state.manifest import Columns
    from instar.table import Services
    from instar.table.log.manifest import Mask
    from instar.table.read.audit import Policy
    from instar.table.read.report import ScanReport
    from instar.table.read.snapshot import SnapshotPlan

__all__ = ["MERGE", "SCAN", "Branch", "Lister"]

_SETTINGS: Final[Mapping[str, tuple[str, Callable[[str], ConfigValue]]]] = {
    "instar.skipping": ("skipping", str),
    "instar.skipping.sample": ("skipping_sample", float),
    "instar.skipping.budget": ("skipping_budget", int),
}
"""Settings of a session that are options of every table it reads."""
_ROW_BY_ROW: Final = {
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.parquet.enableNestedColumnVectorizedReader": "true",
}
"""Settings that, if they are not this, make Spark read row by row where there are nested fields."""
_BY_ID: Final = "spark.sql.parquet.fieldId.read.enabled"


class Branch(NamedTuple):
    """One of the two ways in which parts are read: as they are, or with their times and diffs."""

    parts: Callable[[SnapshotPlan], tuple[Columns, Mask]]
    constants: Callable[[Mapping[str, Any]], tuple[str, ...]]
    """The values of the partition columns, from a row of times."""


def _time_and_diff(times: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the time and diff that all rows of a part have, which are not in the file itself."""
    ts = times["upper"] - 1 if times["ts_min"] is None else times["ts_min"]
    return str(ts), str(times["diff_min"])


SCAN: Final = Branch(lambda plan: (plan.scan, plan.scan_mask), lambda _: ())
MERGE: Final = Branch(lambda plan: (plan.merge, plan.merge_mask), _time_and_diff)


class Lister:
    """Lists the parts of one branch of a snapshot, under the options of a query."""

    def __init__(
        self,
        gateway: Gateway,
        services: Services,
        branch: Branch,
        fields: Sequence[Field],
        query: Mapping[str, ConfigValue | None],
    ) -> None:
        self._gateway = gateway
        self._services = services
        self._branch = branch
        self._fields = fields
        self._query = query
        self._nested = any(isinstance(field.type, Struct | List | Map) for field in fields)
        self._whole: tuple[Columns, list[FileGroup]] | None = None

    def groups(self, plan: SnapshotPlan, filters: Filters) -> list[FileGroup]:
        """Return the files that a query with these filters reads; check some that it does not."""
        if self._nested:
            _check_session(self._gateway)
        parts = self._branch.parts(plan)
        if not filters:
            return self._group(parts[0])
        condition = Condition(filters.read(self._fields))
        selection = select_parts(self._services, plan.state, parts, condition, self._policy(plan))
        if selection.checked[FILES].num_rows:
            check_skipped(self._gateway, self._services, plan.state, condition, filters, selection.checked)
        return self._group(selection.read)

    def report(self, plan: SnapshotPlan, filters: Filters) -> ScanReport:
        """Report on a scan with these filters."""
        condition = Condition(filters.read(self._fields))
        mode = self._policy(plan).mode
        return report_scan(self._services.chunks, plan.state, self._branch.parts(plan), condition, mode)

    def size(self, plan: SnapshotPlan) -> int:
        """Return the size of all files, whatever a filter leaves of them."""
        return total_bytes(self._branch.parts(plan)[0])

    def _policy(self, plan: SnapshotPlan) -> Policy:
        return resolve_policy(
            self._query, _session_options(self._gateway), plan.state.options, self._services.defaults
        )

    def _group(self, columns: Columns) -> list[FileGroup]:
        """Group files by the values of their partition columns; those of the whole table are remembered."""
        if self._whole is not None and self._whole[0] is columns:
            return self._whole[1]
        groups = self._make_groups(columns)
        if self._whole is None or columns[FILES].num_rows > self._whole[0][FILES].num_rows:
            self._whole = columns, groups
        return groups

    def _make_groups(self, columns: Columns) -> list[FileGroup]:
        locate = self._services.blob.location
        keys, sizes = (columns[FILES].column(name).to_pylist() for name in ("key", "size"))
        files = [(locate(key), size) for key, size in zip(keys, sizes, strict=True)]
        if self._branch is SCAN:
            return [FileGroup((), files)] if files else []
        constants = [self._branch.constants(row) for row in columns[TIMES].to_pylist()]
        order = sorted(range(len(files)), key=constants.__getitem__)
        return [
            FileGroup(values, [files[at] for at in members])
            for values, members in groupby(order, constants.__getitem__)
        ]


def _check_session(gateway: Gateway) -> None:
    """Refuse a session in which Spark would find the members of structs by name instead of by id."""
    settings = gateway.settings((*_ROW_BY_ROW, _BY_ID))
    wrong = [name for name, value in _ROW_BY_ROW.items() if settings.get(name, value) != value]
    if wrong and settings.get(_BY_ID) != "true":
        raise UsageError(
            f"with {wrong[0]}={settings[wrong[0]]}, Spark would find members of structs by name, and give "
            f"nulls: set {_BY_ID} to true as well, or take the setting back"
        )


def _session_options(gateway: Gateway) -> dict[str, ConfigValue | None]:
    """Return what the session of the running query says."""
    options: dict[str, ConfigValue | None] = {}
    for setting, text in gateway.settings(_SETTINGS).items():
        option, read = _SETTINGS[setting]
        try:
            options[option] = read(text)
        except ValueError:
            raise UsageError(f"the Spark setting {setting} cannot be {text!r}: it is a number") from None
    return options

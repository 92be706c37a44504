"""`ScanSource`: the parts of one scan of a table, as the queries of Spark ask for them, and what keeps them.

Whenever Spark plans a query, it asks for the files that its filters need. A snapshot answers from one state,
forever; a view that follows its table (`views.py`) answers from the state of each query.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import copy
from enum import Enum
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from instar.errors import UsageError
from instar.schema import List, Map, Struct
from instar.spark.native.adopted import by_file_name, split_by_layout, told_values
from instar.spark.native.audit import check_skipped
from instar.spark.native.file_index import FileGroup, FileSource, Listing, TableOrigin
from instar.spark.native.file_systems import locator, translator
from instar.spark.native.names import by_column_name
from instar.spark.native.relation import field_json
from instar.spark.native.settings import SETTINGS, check_session, session_options
from instar.spark.native.taken import (
    BEGIN,
    NUMBER,
    POSITIONS,
    OneSet,
    lay_out,
    leaving_in_plan,
    leaving_with_files,
)
from instar.state.chunk import TIMES
from instar.stream.stamp import dataset_name
from instar.table.log.pin import Pin
from instar.table.outside import check_unchanged
from instar.table.read.audit import resolve_policy
from instar.table.read.pruning import Condition
from instar.table.read.report import report_scan
from instar.table.read.selection import select_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from pyroaring import BitMap

    from instar.schema import Field
    from instar.spark.native.adopted import FileLayout
    from instar.spark.native.filters import Filters
    from instar.spark.native.gateway import Gateway
    from instar.spark.native.taken import Leaving
    from instar.state import ConfigValue, TableState
    from instar.table import Services
    from instar.table.log.manifest import ChunkReader
    from instar.table.log.part_set import PartSet
    from instar.table.read.audit import Policy
    from instar.table.read.report import ScanReport
    from instar.table.read.snapshot import SnapshotPlan

__all__ = ["Branch", "Chosen", "ScanSource", "SnapshotSource", "table_origin"]

_MOST_IN_PLAN: Final = 128 * 1024 * 1024
"""How many bits a plan may have; it is sent to every task."""
_MOST_WITH_FILES: Final = 256 * 1024
_CASE: Final = "spark.sql.caseSensitive"
_LOOKERS: Final = 8
_MOST_COMPARED: Final = 10_000


class Branch(Enum):
    """One of the ways in which the parts of a plan are read."""

    SCAN = "scan"
    """As they are."""
    TAKEN = "taken"
    """As they are, less rows that were retracted by position."""
    MERGE = "merge"
    """With their times and diffs, to be added up."""
    LOCATED = "located"
    """With their numbers, so that rows can be found again: all that are not added up."""
    PLANNED = "planned"
    """As they are, less rows that were retracted, which readers leave out: all that are not added up."""

    def parts(self, plan: SnapshotPlan) -> PartSet:
        """Return the parts of a plan that are read this way."""
        if self is Branch.MERGE:
            return plan.merge
        if self in {Branch.LOCATED, Branch.PLANNED}:
            return plan.scan
        untouched, partly = plan.scan.apart
        return untouched if self is Branch.SCAN else partly


class Chosen(NamedTuple):
    """Parts to read, and what checks that others are rightly skipped, some of them: it raises if not."""

    parts: PartSet
    check: Callable[[], None]
    certain: bool = False
    """Whether filters are proved for every row of the parts."""


class ScanSource(FileSource):
    """The parts of one branch of a table. Its kinds differ in which state a query reads."""

    def __init__(
        self,
        gateway: Gateway,
        services: Services,
        branch: Branch,
        fields: Sequence[Field],
        options: Mapping[str, ConfigValue | None],
    ) -> None:
        self._gateway = gateway
        self._services = services
        self._locate = locator(gateway, services.blob)
        self._adopt = translator(gateway, services.blob)
        self._branch = branch
        self._fields = fields
        self._options = options
        self._nested = any(isinstance(field.type, Struct | List | Map) for field in fields)
        self.leave_out: Leaving = leaving_with_files(gateway)
        """Leaves out rows that are retracted by position."""
        self.partitions: Sequence[dict[str, Any]] = (
            field_json(NUMBER, "long"),
            field_json(POSITIONS, "binary"),
        )
        """The partition columns that this needs."""
        self._begins: Sequence[int] | None = None
        self._largest: tuple[PartSet, list[FileGroup]] | None = None
        self._layout: FileLayout | None = None
        self._split: tuple[PartSet, Mapping[FileLayout | None, PartSet]] | None = None

    def select(self, plan: SnapshotPlan, filters: Filters) -> list[FileGroup]:
        """Return the files of a plan that a query with these filters reads; check some that it does not."""
        self.check_session(filters.settings)
        chosen = self.choose(plan, filters)
        chosen.check()
        if self._layout is not None:
            self._check_files(chosen.parts)
        return self.groups(chosen.parts)

    def check_session(self, settings: Mapping[str, str] | None = None) -> None:
        """Raise if the settings of the session would have Spark read nulls for what is there."""
        if self._nested and self._layout is None:
            check_session(self._gateway.settings(SETTINGS) if settings is None else settings)

    def choose(
        self,
        plan: SnapshotPlan,
        filters: Filters,
        among: PartSet | None = None,
        policy: Policy | None = None,
    ) -> Chosen:
        """Return which parts of a plan, or of some of its parts, filters need, and how to check the rest."""
        parts = self._parts(plan) if among is None else among
        if not filters:
            return Chosen(parts, lambda: None)
        condition = self._condition(filters)
        self._services.asked.note(plan.state, str(condition.expression))
        policy = policy or self.policy(plan, filters.settings)
        read, checked, certain = select_parts(self._services, plan.state, parts, condition, policy)

        def check() -> None:
            if checked and self._layout is None:
                check_skipped(self._gateway, self._services, plan.state, condition, filters, checked)

        return Chosen(read, check, certain)

    def adopted_in(self, plan: SnapshotPlan) -> dict[FileLayout, FileSource]:
        """Return the adopted files of a plan by their layouts."""
        return {layout: self._of(layout) for layout in self._by_layout(plan) if layout is not None}

    def _of(self, layout: FileLayout) -> ScanSource:
        """Return the adopted files of one layout."""
        other = copy(self)
        other._layout = layout  # noqa: SLF001 -- its own, here and below
        other._largest = None  # noqa: SLF001
        return other

    def _by_layout(self, plan: SnapshotPlan) -> Mapping[FileLayout | None, PartSet]:
        """Return the parts of the branch, those of our own under None."""
        parts = self._branch.parts(plan)
        if self._split is None or self._split[0] is not parts:
            self._split = parts, split_by_layout(parts, plan.state.history, self._fields)
        return self._split[1]

    def _parts(self, plan: SnapshotPlan) -> PartSet:
        """Return the parts of a plan that are read by this very relation."""
        whole = self._branch.parts(plan)
        return self._by_layout(plan).get(self._layout) or whole.keep(np.zeros(len(whole), dtype=bool))

    def _condition(self, filters: Filters) -> Condition:
        if self._layout is None:
            return Condition(filters.read(self._fields))
        return Condition(filters.read_named(by_file_name(self._layout)))

    def _check_files(self, parts: PartSet) -> None:
        """Raise if an adopted file that is about to be read is not there, or not the same any more."""
        if self._gateway.settings([_CASE]).get(_CASE) == "true":
            raise UsageError(
                f"with {_CASE}=true, Spark would not find the columns of adopted files whose names differ in "
                "case: set it to false, or compact the table"
            )
        blob = self._services.blob
        files = [(*file, parts.adopted[at]) for at, file in enumerate(parts.files)]
        with ThreadPoolExecutor(_LOOKERS) as pool:
            list(pool.map(lambda file: check_unchanged(blob, *file), files))

    def explain(self, plan: SnapshotPlan, filters: Filters) -> ScanReport:
        """Report on a scan of a plan with these filters."""
        condition = self._condition(filters)
        mode = self.policy(plan).mode
        return report_scan(self._services.chunks, plan.state, self._parts(plan), condition, mode)

    def origin_in(self, state: TableState) -> TableOrigin:
        """Return the table of a state, with the columns that are read."""
        if self._layout is None:
            return table_origin(self._services, state, self._fields)
        shown = {field.id: field.name for field in self._fields}
        columns = {field.name: shown[field.id] for field in self._layout.fields}
        return TableOrigin(self._services.blob.url, dataset_name(state), columns)

    def policy(self, plan: SnapshotPlan, settings: Mapping[str, str] | None = None) -> Policy:
        """Return how parts are skipped now: by the query, the session, the table, or the store.

        `settings` are those of the session, if they are known already.
        """
        told = self._gateway.settings(SETTINGS) if settings is None else settings
        return resolve_policy(
            self._options, session_options(told), plan.state.options, self._services.defaults
        )

    def groups(self, parts: PartSet) -> list[FileGroup]:
        """Group files by the values of their partition columns; those of the whole table are remembered."""
        if self._largest is not None and self._largest[0] is parts:
            return self._largest[1]
        groups = self._make_groups(parts)
        if self._largest is None or len(parts) > len(self._largest[0]):
            self._largest = parts, groups
        return groups

    def _make_groups(self, parts: PartSet) -> list[FileGroup]:
        layout = self._layout
        files = [(self._adopt(key) if layout else self._locate(key), size) for key, size in parts.files]
        told = [told_values(layout, parts.adopted[at]) if layout else () for at in range(len(files))]
        if self._branch in {Branch.SCAN, Branch.PLANNED}:
            together: dict[tuple[object, ...], FileGroup] = {}
            for file, values in zip(files, told, strict=True):
                together.setdefault(values, FileGroup(values, [])).files.append(file)
            return list(together.values())
        numbers = self.numbers(parts)
        if self._begins is not None:
            return _lined_up(files, told, [(number, self._begins[number]) for number in numbers])
        batch: list[tuple[str, ...]] = [()] * len(files)
        if self._branch is Branch.MERGE:
            batch = [_time_and_diff(times) for times in parts.columns[TIMES].to_pylist()]
        rows, positions = parts.rows.to_pylist(), parts.positions
        groups = []
        for own in _bundles(list(zip(batch, told, strict=True)), rows, positions):
            held = {at: positions[number] for at, number in enumerate(own) if number in positions}
            bits = lay_out([numbers[at] for at in own], [rows[at] for at in own], held) if held else None
            shared: tuple[object, ...] = (bits, *batch[own[0]], *told[own[0]])
            groups.append(FileGroup(shared, [files[at] for at in own], [(numbers[at],) for at in own]))
        return groups

    def numbers(self, parts: PartSet) -> list[int]:
        """Return the number of each part among those of the whole branch."""
        return list(range(len(parts)))


def table_origin(services: Services, state: TableState, fields: Sequence[Field]) -> TableOrigin:
    """Return the table of a state, with the columns of some fields."""
    columns = {name: field.name for name, field in by_column_name(fields).items()}
    return TableOrigin(services.blob.url, dataset_name(state), columns)


class SnapshotSource(ScanSource):
    """The parts of a snapshot: every query reads the same."""

    def __init__(
        self,
        gateway: Gateway,
        services: Services,
        branch: Branch,
        fields: Sequence[Field],
        options: Mapping[str, ConfigValue | None],
        plan: SnapshotPlan,
        pin: Pin,
    ) -> None:
        super().__init__(gateway, services, branch, fields, options)
        self._plan = plan
        self._pin = pin  # held as long as Spark knows of this source
        parts = branch.parts(plan)
        self._live = np.flatnonzero(parts.mask)
        if branch in {Branch.TAKEN, Branch.LOCATED} and parts:
            bits = OneSet.of(parts.rows.to_pylist(), parts.positions)
            if bits.size <= _MOST_IN_PLAN:
                self.leave_out = leaving_in_plan(gateway, bits)
                self.partitions = (field_json(NUMBER, "long"), field_json(BEGIN, "long"))
                self._begins = bits.begins

    @property
    def chunks(self) -> ChunkReader:
        """Where metadata is read from."""
        return self._services.chunks

    @property
    def plan(self) -> SnapshotPlan:
        """What is read."""
        return self._plan

    @cached_property
    def identity(self) -> str:
        """What tells these parts from those of other sources; the same for equal ones, if they are few."""
        parts = self._parts(self._plan)
        if len(parts) > _MOST_COMPARED:
            return f"source {id(self)}"
        digest = blake2b("\0".join(parts.keys).encode(), digest_size=16).hexdigest()
        state = self._plan.state
        return f"{state.table_id} {state.seqno} {self._plan.as_of} {digest} {sorted(self._options.items())}"

    def numbers(self, parts: PartSet) -> list[int]:
        """Return the number of each part among those of the whole branch."""
        numbers: list[int] = np.searchsorted(self._live, np.flatnonzero(parts.mask)).tolist()
        return numbers

    def files(self, filters: Filters) -> Listing:
        """Return the files of the snapshot that a query with these filters reads."""
        self.check()
        return Listing(self.select(self._plan, filters))

    def check_fence(self) -> None:
        """Raise if the schema can no longer be honoured: that of a snapshot always can."""

    def check(self) -> None:
        """Raise if the files can no longer be read: the lease on them was lost, and some of them with it."""
        self.check_fence()
        if isinstance(self._pin, Pin) and self._layout is None:
            self._pin.check_files(self._services.blob, self._parts(self._plan).keys)

    def size(self) -> int:
        """Return the size of all files of the snapshot."""
        return self._parts(self._plan).bytes

    def adopted(self) -> dict[FileLayout, FileSource]:
        """Return the adopted files of the snapshot by their layouts."""
        return self.adopted_in(self._plan)

    def has_own(self) -> bool:
        """Whether the snapshot has files that are not adopted."""
        return None in self._by_layout(self._plan)

    def report(self, filters: Filters) -> ScanReport:
        """Report on a scan of the snapshot with these filters."""
        return self.explain(self._plan, filters)

    def origin(self) -> TableOrigin:
        """Return the table of the snapshot."""
        return self.origin_in(self._plan.state)


def _lined_up(
    files: Sequence[tuple[str, int]],
    told: Sequence[tuple[object, ...]],
    numbers: Sequence[tuple[int, int]],
) -> list[FileGroup]:
    """Put the files together that are told the same."""
    together: dict[tuple[object, ...], list[int]] = {}
    for at, values in enumerate(told):
        together.setdefault(values, []).append(at)
    return [
        FileGroup(values, [files[at] for at in own], [numbers[at] for at in own])
        for values, own in together.items()
    ]


def _bundles(
    values: Sequence[Hashable], rows: Sequence[int], positions: Mapping[int, BitMap]
) -> Iterator[list[int]]:
    """Yield which files go together: those with the same values, and not too many words.

    Each task of Spark is sent the words of all files that go with those that it reads.
    """
    together: dict[Hashable, list[int]] = {}
    for at, value in enumerate(values):
        together.setdefault(value, []).append(at)
    for members in together.values():
        bundle: list[int] = []
        size = 0
        for at in members:
            more = rows[at] // 8 if at in positions else 0
            if bundle and size + more > _MOST_WITH_FILES:
                yield bundle
                bundle, size = [], 0
            bundle.append(at)
            size += more
        yield bundle


def _time_and_diff(times: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the time and diff that all rows of a part have, which are not in the file itself."""
    ts = times["upper"] - 1 if times["ts_min"] is None else times["ts_min"]
    return str(ts), str(times["diff_min"])

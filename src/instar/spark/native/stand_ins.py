"""`StandIn`: a relation that stands for a table until a query is optimised.

While Spark optimises a query, a rule (`stand_ins.java`) asks what each of them is to be replaced by, with the
columns that are read: a plain scan over files, a table that Spark's planner knows, or any plan. Where an
aggregation stands right above it, the rule also tries a table that metadata answers for, and takes that if it
has the whole answer.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple
from weakref import WeakSet, WeakValueDictionary

from instar.errors import UsageError
from instar.spark.native.file_index import FileSource, Listing
from instar.spark.native.gateway import gateway_of
from instar.spark.native.java import compiled_object
from instar.spark.native.names import by_column_name, column_name
from instar.spark.native.relation import physical_json, shown_frame, struct_json
from instar.spark.native.relay import relayed
from instar.spark.native.scan_source import Branch
from instar.spark.planner.table import is_planned, planned_table
from instar.table.read.audit import Skipping

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from instar.schema import Field
    from instar.spark.native.filters import Filters
    from instar.spark.native.gateway import Gateway
    from instar.spark.native.scan_source import SnapshotSource
    from instar.table.read.snapshot import SnapshotPlan

__all__ = ["Replacement", "StandIn", "install_rule", "stand_in_frame", "why_no_stand_ins"]

_OPTION: Final = "instar.stands.for"
"""The option of a relation that says what it stands for."""
_numbers = itertools.count(1)
_known: WeakValueDictionary[str, StandIn] = WeakValueDictionary()
_ruled: WeakSet[Gateway] = WeakSet()
"""The sessions that have the rule."""


class Replacement(NamedTuple):
    """What a relation is replaced by; in an aggregation by what answers it, if that has the answer."""

    plan: Any
    """A relation over files, a table, or a logical plan with the same columns."""
    answering: Any = None
    """A table, or nothing."""


class StandIn(FileSource):
    """One table, as one frame sees it. `fields` are what it shows, `widened` as in `parts_frame`."""

    def __init__(
        self, gateway: Gateway, label: str, fields: Sequence[Field], widened: frozenset[int]
    ) -> None:
        self.gateway = gateway
        self.label = label
        self.fields = fields
        self.widened = widened
        self.named = by_column_name(fields)
        self.number = str(next(_numbers))
        self.options: Mapping[str, str] = {_OPTION: self.number}
        _known[self.number] = self

    @abstractmethod
    def replacement(self, query: str, columns: Sequence[str], *, aggregated: bool) -> Replacement:
        """Return what this is in a query that reads some columns."""

    def files(self, filters: Filters) -> Listing:  # noqa: ARG002 -- which these are does not matter
        """Refuse: only a rule of the session can tell what a query reads."""
        raise UsageError(
            f"this session does not know {self.label}, which another session made: make it here again, with "
            "instar.register, table.follow or table.read"
        )

    def schema(self) -> str:
        """Return the columns as files have them, as Spark's JSON."""
        return struct_json(
            [physical_json(field, column_name(field.id, self.widened)) for field in self.fields]
        )

    def planned(self, source: SnapshotSource, label: str) -> Any | None:  # noqa: ANN401 -- a Java object
        """Return a table over parts that Spark's planner knows, if they can be read so in this session."""
        if not is_planned(self.gateway.spark, source):
            return None
        return planned_table(self.gateway.spark, source, self.fields, self.widened, label)

    def answering(
        self,
        plan: SnapshotPlan,
        source: Callable[[Branch, Sequence[Field]], SnapshotSource],
    ) -> Any | None:  # noqa: ANN401 -- a Java object
        """Return what answers aggregations over all parts of a plan, if metadata may."""
        if plan.merge:
            return None
        parts = source(Branch.COUNTED, self.fields)
        return self.planned(parts, self.label) if parts.policy(plan).mode is Skipping.ON else None


def stand_in_frame(spark: SparkSession, stand_in: StandIn) -> DataFrame:
    """Return a frame over what stands for a table."""
    install_rule(gateway_of(spark))
    return shown_frame(spark, stand_in.label, stand_in.fields, stand_in, widened=stand_in.widened)


def why_no_stand_ins(gateway: Gateway) -> str | None:
    """Say why nothing can stand for a table in a session, or return None if it can."""
    try:
        install_rule(gateway)
    except UsageError as error:
        return str(error)
    return None


class _Replacements:
    """What the rule asks: the relations in a query, which columns of each are read, and by what."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @relayed
    def apply(self, query: str, wanted: str) -> Any:  # noqa: ANN401 -- a Scala sequence
        """Return what each relation is replaced by, and then what answers aggregations of each."""
        lines = wanted.splitlines()
        made: dict[str, Replacement] = {}
        for line in dict.fromkeys(lines):
            number, kind, *columns = line.split(" ")
            made[line] = _known[number].replacement(query, columns, aggregated=kind == "aggregated")
        found = [made[line] for line in lines]
        return self._gateway.seq([own.plan for own in found] + [own.answering for own in found])

    class Java:
        """What the JVM takes this for."""

        implements: ClassVar = ["java.util.function.BiFunction"]


def install_rule(gateway: Gateway) -> None:
    """Have the session of a gateway replace what stands for tables in its queries."""
    if gateway not in _ruled:
        made = (_OPTION, _Replacements(gateway))
        compiled_object(gateway.py4j, "stand_ins.java", "instar.standing.StandIns", *made).install(
            gateway.session
        )
        _ruled.add(gateway)

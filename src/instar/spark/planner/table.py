"""`PlannedTable`: a table in one state that Spark's planner knows, and the frame over it.

`planned_frame(spark, source, fields, widened, label)` is a frame over all parts of a `SnapshotSource`, less
rows that are retracted by position: readers leave these out.
`is_planned` says whether a session wants this, and whether the source can be read so. `planner.java` has what
Spark sees.
"""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pyspark.sql import DataFrame

from instar.errors import UsageError
from instar.schema import field_name
from instar.spark.native.filters import Filters
from instar.spark.native.gateway import gateway_of
from instar.spark.native.names import column_name
from instar.spark.native.relation import (
    any_looks_physical,
    column_texts,
    field_json,
    physical_json,
    show,
    struct_json,
)
from instar.spark.native.relay import install, relayed
from instar.spark.planner.choice import PartChoice
from instar.spark.planner.compiled import compiled_planner
from instar.spark.planner.guards import fall_back, why_not
from instar.spark.planner.numbered import Numbered
from instar.table.read.answers import tells_apart
from instar.table.read.audit import Skipping

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from instar.schema import Field
    from instar.spark.native.file_index import TableOrigin
    from instar.spark.native.gateway import Gateway
    from instar.spark.native.scan_source import SnapshotSource
    from instar.table.read.audit import Policy

__all__ = ["PlannedTable", "is_planned", "planned_frame", "planned_table"]

_SETTING: Final = "instar.planner"
_AUTO: Final = "auto"
_FILES: Final = "files"
_MERGED: Final = "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly"
"""Whether Spark lets joins prune only where one side is broadcast."""
_WORTH: Final = "spark.sql.optimizer.dynamicPartitionPruning.fallbackFilterRatio"
"""How much of a table Spark expects a join to prune, where it does not know."""
_LITTLE: Final = "0.02"
"""Where nothing is broadcast, what prunes is run once more: it must be so small beside the other side."""
_ATTRIBUTE: Final = re.compile(r"\b(\w+)#\d+L?\b")


class PlannedTable(Numbered):
    """Parts that are read as they are, less rows that are retracted by position; none of them is adopted."""

    def __init__(
        self,
        gateway: Gateway,
        source: SnapshotSource,
        fields: Mapping[str, Field],
        label: str,
        over_files: Callable[[], Any],
        places: tuple[str, str] | None,
    ) -> None:
        super().__init__()
        self.gateway = gateway
        self.source = source
        self.fields = fields
        """The fields by the names that Spark knows them under."""
        self.label = label
        self._over_files = over_files
        self.places = () if places is None else tuple(zip(places, ("integer", "long"), strict=True))
        """Names and types of the columns that tell where rows are."""
        self.less = bool(places) or bool(source.plan.scan.partly.any())
        """Whether readers have to know positions."""
        self.planner: Any = compiled_planner(gateway).planner

    def policy(self, settings: Mapping[str, str]) -> Policy:
        """Return how parts are skipped, in a session with these settings."""
        return self.source.policy(self.source.plan, settings)

    def told(self, text: str) -> str:
        """Return an expression as Spark prints it with the names that people know."""
        columns = self._columns
        return _ATTRIBUTE.sub(lambda found: columns.get(found[1], found[1]), text)

    def origin(self) -> TableOrigin:
        """Return the table by the names that others know."""
        return self.source.origin()

    @property
    def schema(self) -> str:
        """The columns as files have them, as Spark's JSON."""
        stored = [physical_json(field, name) for name, field in self.fields.items()]
        return struct_json([*stored, *(field_json(*place) for place in self.places)])

    @cached_property
    def _columns(self) -> Mapping[str, str]:
        return self.origin().columns

    @relayed
    def apply(self, question: str, live: Any) -> Any:  # noqa: ANN401 -- answers a question of Java's
        """Choose the parts that filters need, and say whether these are proved for every row of them.

        Or say which columns tell parts apart, so that joins may prune by them; or return the same over files.
        """
        asked = json.loads(question)
        if asked["kind"] == "files":
            return self._over_files()
        if asked["kind"] == "apart":
            return " ".join(self._apart(asked["columns"], asked["settings"]))
        filters = Filters.told(self.gateway, live, asked["filters"], asked["zone"], asked["modes"])
        policy = self.policy(asked["settings"])
        chosen = self.source.choose(self.source.plan, filters, policy=policy)
        proved = (
            bool(filters)
            and bool(chosen.parts)  # where none is left, Spark still sees that there was a filter
            and policy.mode is Skipping.ON
            and chosen.certain
        )
        return PartChoice(self, chosen, filters, decided=proved).to_java(proved=proved)

    def _apart(self, columns: Sequence[str], settings: Mapping[str, str]) -> list[str]:
        """Return the columns by which it pays to prune; none, where everything is read anyway."""
        if self.policy(settings).mode is not Skipping.ON:
            return []
        chunks, plan = self.source.chunks, self.source.plan
        fields = [(name, self.fields[name]) for name in columns if name in self.fields]
        return [name for name, field in fields if tells_apart(chunks, plan.state, plan.scan, field)]

    class Java:
        """What Java takes this for."""

        implements: ClassVar = ["java.util.function.BiFunction"]


def is_planned(spark: SparkSession, source: SnapshotSource) -> bool:
    """Whether scans of a source are planned in this session: if they can be, and if it may."""
    gateway = gateway_of(spark)
    asked = gateway.settings([_SETTING]).get(_SETTING, _AUTO)
    if asked not in (_AUTO, _FILES):
        raise UsageError(f"the Spark setting {_SETTING} cannot be {asked!r}: it is {_AUTO!r} or {_FILES!r}")
    if asked == _FILES or source.adopted():
        return False
    why = why_not(gateway)
    if why is not None:
        fall_back(gateway, why)
    return why is None


def planned_frame(
    spark: SparkSession,
    source: SnapshotSource,
    fields: Sequence[Field],
    widened: frozenset[int],
    label: str,
    over_files: Callable[[], Any],
    places: tuple[str, str] | None = None,
) -> DataFrame:
    """Return a frame of fields under the reader's names.

    No filters on `widened` fields are pushed into files. `over_files` returns a plan with the same columns
    and `_metadata`, for queries that read that. Under two names, `places`, the number of a row's part and its
    position there are columns too.
    """
    gateway = gateway_of(spark)
    planner: Any = compiled_planner(gateway).planner
    table = planned_table(spark, source, fields, widened, label, over_files, places)
    if not any_looks_physical(fields):
        return DataFrame(planner.frame(table, column_texts(gateway, fields, places or (), widened)), spark)
    renamed = {column_name(field_id, widened): field_name(field_id) for field_id in sorted(widened)}
    frame = DataFrame(planner.frame(table, gateway.strings([])), spark)
    return show(frame.withColumnsRenamed(renamed), fields, *(places or ()))


def planned_table(
    spark: SparkSession,
    source: SnapshotSource,
    fields: Sequence[Field],
    widened: frozenset[int],
    label: str,
    over_files: Callable[[], Any],
    places: tuple[str, str] | None = None,
) -> Any:  # noqa: ANN401 -- a Java object
    """Return a table of Spark's with the columns that `planned_frame` has."""
    install()
    gateway = gateway_of(spark)
    if not gateway.settings([_MERGED]):
        spark.conf.set(_MERGED, "false")
        if not gateway.settings([_WORTH]):
            spark.conf.set(_WORTH, _LITTLE)
    named = {column_name(field.id, widened): field for field in fields}
    table = PlannedTable(gateway, source, named, label, over_files, places)
    return table.planner.table(label, source.identity, table.schema, table, table.number, table.less)

"""`StandIn`: a relation that stands for a table until a query is optimised.

While Spark optimises a query, a rule (`stand_ins.java`) asks what each of them is to be replaced by, with the
columns that are read: a plain scan over files, a table that Spark's planner knows, or any plan.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final
from weakref import WeakSet, WeakValueDictionary

from instar.errors import UsageError
from instar.spark.native.file_index import FileSource, Listing
from instar.spark.native.gateway import gateway_of
from instar.spark.native.java import compiled_object
from instar.spark.native.names import by_column_name, column_name
from instar.spark.native.relation import physical_json, shown_frame, struct_json
from instar.spark.native.relay import relayed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from instar.schema import Field
    from instar.spark.native.filters import Filters
    from instar.spark.native.gateway import Gateway

__all__ = ["StandIn", "install_rule", "stand_in_frame", "why_no_stand_ins"]

_OPTION: Final = "instar.stands.for"
"""The option of a relation that says what it stands for."""
_numbers = itertools.count(1)
_known: WeakValueDictionary[str, StandIn] = WeakValueDictionary()
_ruled: WeakSet[Gateway] = WeakSet()
"""The sessions that have the rule."""


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
    def replacement(self, query: str, columns: Sequence[str]) -> Any:  # noqa: ANN401 -- a Java object
        """Return what this is in a query that reads some columns.

        That is a relation over files, a table, or a logical plan with the same columns.
        """

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
    """What the rule asks: the relations in a query, and which columns of each are read."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @relayed
    def apply(self, query: str, wanted: str) -> Any:  # noqa: ANN401 -- a Scala sequence
        """Return what each relation is replaced by."""
        lines = wanted.splitlines()
        made: dict[str, Any] = {}
        for line in dict.fromkeys(lines):
            number, *columns = line.split(" ")
            made[line] = _known[number].replacement(query, columns)
        return self._gateway.seq([made[line] for line in lines])

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

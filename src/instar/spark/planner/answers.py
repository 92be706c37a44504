"""`AnswerScan`: the answer to an aggregation, worked out from metadata, as a scan of one row.

What the answers are is in `instar.table.read.answers`; here they become a row of Spark's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from instar.schema.spark import type_json
from instar.spark.native.relation import field_json, struct_json
from instar.spark.native.relay import relayed
from instar.spark.planner.interfaces import Feature
from instar.spark.planner.objects import PlannerObject
from instar.table.read.answers import Extreme, Unknown, answer_count, answer_extreme

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from instar.schema import Field
    from instar.spark.planner.interfaces import Interfaces
    from instar.table.log.manifest import ChunkReader
    from instar.table.log.part_set import PartSet
    from instar.table.read.snapshot import SnapshotPlan

__all__ = ["AnswerScan", "FoundValue", "find_answers"]

_DATES: Final = {"date": "DateFromUnixDate", "timestamp": "MicrosToTimestamp"}
"""Expressions that make dates and times of integers."""


class FoundValue(NamedTuple):
    """One number of an aggregation: its type in Spark's JSON, and what it is."""

    name: str
    type: str
    value: Any


def find_answers(
    chunks: ChunkReader,
    plan: SnapshotPlan,
    parts: PartSet,
    fields: Mapping[str, Field],
    aggregation: Any,  # noqa: ANN401 -- Spark's `Aggregation`
) -> list[FoundValue] | None:
    """Return the answers to all functions of an aggregation; None if metadata does not have one of them."""
    if len(aggregation.groupByExpressions()):
        return None
    found = []
    for function in aggregation.aggregateExpressions():
        answer = _answer(chunks, plan, parts, fields, function)
        if answer is None:
            return None
        found.append(answer)
    return found


def _answer(
    chunks: ChunkReader,
    plan: SnapshotPlan,
    parts: PartSet,
    fields: Mapping[str, Field],
    function: Any,  # noqa: ANN401 -- Spark's `AggregateFunc`
) -> FoundValue | None:
    kind = function.getClass().getSimpleName()
    if kind == "CountStar":
        return FoundValue("count", "long", parts.row_count)
    if kind not in ("Count", "Min", "Max") or (kind == "Count" and function.isDistinct()):
        return None
    column = function.column()
    if column.getClass().getSimpleName() != "FieldReference" or len(column.fieldNames()) != 1:
        return None
    field = fields.get(column.fieldNames()[0])
    if field is None:
        return None
    if kind == "Count":
        value: Any = answer_count(chunks, plan.state, parts, field)
        type_: Any = "long"
    else:
        value = answer_extreme(chunks, plan.state, parts, field, Extreme(kind.lower()))
        type_ = type_json(field.type)
    return None if isinstance(value, Unknown) else FoundValue(kind.lower(), type_, value)


class AnswerScan(PlannerObject):
    """A scan that opens nothing."""

    def __init__(self, interfaces: Interfaces, label: str, answers: Sequence[FoundValue]) -> None:
        super().__init__(Feature.ANSWERS.interfaces[1:])
        self._interfaces = interfaces
        self._label = label
        self._answers = answers
        names = [f"{answer.name}_{at}" for at, answer in enumerate(answers)]
        columns = [field_json(name, answer.type) for name, answer in zip(names, answers, strict=True)]
        self._schema = interfaces.gateway.schema(struct_json(columns))
        self._rows = interfaces.array(interfaces.row, [_row(interfaces, answers)])

    @property
    def identity(self) -> str:
        """The answers."""
        return f"{self._label} {self._answers}"

    # Spark's interface.

    def rows(self) -> Any:  # noqa: ANN401
        """Return the one row."""
        return self._rows

    def readSchema(self) -> Any:  # noqa: ANN401, N802 -- here and below
        """Return the columns of the row."""
        return self._schema

    def description(self) -> str:
        """Say in plans what this is."""
        return f"from the metadata of {self._label}"

    @relayed
    def toBatch(self) -> None:  # noqa: N802
        """Refuse: the row is here already."""
        raise NotImplementedError

    toMicroBatchStream = toBatch  # noqa: N815
    toContinuousStream = toBatch  # noqa: N815

    def supportedCustomMetrics(self) -> Any:  # noqa: ANN401, N802
        """Measure nothing."""
        return self._interfaces.nothing["metrics"]

    def reportDriverMetrics(self) -> Any:  # noqa: ANN401, N802
        """Measure nothing."""
        return self._interfaces.nothing["task metrics"]

    def columnarSupportMode(self) -> Any:  # noqa: ANN401, N802
        """Say that these are rows."""
        return self._interfaces.columnar[0]


def _row(interfaces: Interfaces, answers: Sequence[FoundValue]) -> Any:  # noqa: ANN401 -- an `InternalRow`
    """Make a row inside the JVM: a small integer that is sent there would not be a long any more."""
    expressions = interfaces.expressions
    members: list[Any] = []
    for at, answer in enumerate(answers):
        members += [interfaces.gateway.text(f"c{at}"), _literal(interfaces, answer)]
    return expressions.CreateNamedStruct(interfaces.gateway.seq(members)).eval(None)


def _literal(interfaces: Interfaces, answer: FoundValue) -> Any:  # noqa: ANN401 -- an expression
    expressions, none = interfaces.expressions, interfaces.gateway.none()
    target = interfaces.gateway.schema(f'"{answer.type}"')
    if answer.value is None:
        return expressions.Literal(None, target)
    number = answer.type in _DATES or answer.type == "timestamp_ntz"
    through = (
        interfaces.gateway.schema('"integer"' if answer.type == "date" else '"long"') if number else target
    )
    value = expressions.Cast(interfaces.gateway.text(_text(answer.value)), through, none, interfaces.ansi)
    if answer.type in _DATES:
        return getattr(expressions, _DATES[answer.type])(value)
    return expressions.PreciseTimestampConversion(value, through, target) if number else value


def _text(value: Any) -> str:  # noqa: ANN401 -- any value
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)

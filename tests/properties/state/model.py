"""What tables must say, in plain Python: lists and dicts, no log, no chunks, no rollups.

It shares with instar the words for schemas and statistics, and none of the code that keeps them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as PyDecimal
from typing import TYPE_CHECKING, Any

from instar.schema import Decimal, List, Map, Primitive, Schema

if TYPE_CHECKING:
    from instar.schema import Field, Type
    from instar.state import Part, Place
    from instar.stats import FieldStats

__all__ = ["ModelPart", "ModelTable", "known_value"]

_DAY_ZERO = date(1970, 1, 1)


@dataclass(frozen=True)
class ModelPart:
    """A live part and what came with it."""

    place: Place
    lower: int
    upper: int
    schema_id: int
    part: Part


@dataclass
class ModelTable:
    """A table as somebody with perfect memory knows it."""

    table_id: str
    schemas: list[Schema]
    since: int = 0
    upper: int = 0
    config: dict[str, Any] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    parts: dict[Place, ModelPart] = field(default_factory=dict)
    retracted: dict[Place, dict[int, int]] = field(default_factory=dict)
    """By part, when each position was retracted."""
    touched: dict[Place, int] = field(default_factory=dict)
    """By part, the seqno that last retracted rows of it."""

    @property
    def totals(self) -> tuple[int, int, int]:
        """How many parts, rows and bytes there are."""
        parts = [live.part for live in self.parts.values()]
        return len(parts), sum(part.rows for part in parts), sum(part.size for part in parts)

    def rows(self) -> dict[Place, dict[str, Any]]:
        """Everything that must be known about every part, under the latest schema."""
        return {place: self._row(live) for place, live in self.parts.items()}

    def _row(self, live: ModelPart) -> dict[str, Any]:
        part = live.part
        row: dict[str, Any] = {
            "batch": live.place.batch,
            "ordinal": live.place.ordinal,
            "run": part.run,
            "ordered": part.ordered,
            "lower": live.lower,
            "upper": live.upper,
            "schema_id": live.schema_id,
            "ts_min": part.ts_min,
            "ts_max": part.ts_max,
            "diff_min": part.diff_min,
            "diff_max": part.diff_max,
            "key": part.key,
            "rows": part.rows,
            "size": part.size,
            "adopted": None,
            "first_row": part.first_row,
            "last_row": part.last_row,
        }
        had = set(self.schemas[live.schema_id].field_ids())
        for leaf in single_values(self.schemas[-1]):
            row[f"f{leaf.id}"] = (
                _bounds(part.stats.get(leaf.id), leaf.type) if leaf.id in had else (part.rows, 0, None, None)
            )
        return row


def single_values(schema: Schema) -> list[Field]:
    """Return the fields that can have bounds."""
    return [leaf for _, leaf in schema.leaves() if not isinstance(leaf.type, List | Map)]


def _bounds(stats: FieldStats | None, type_: Type) -> tuple[Any, ...]:
    if stats is None:
        return (None, None, None, None)
    return (stats.nulls, stats.nans, known_value(stats.min, type_), known_value(stats.max, type_))


def known_value(value: Any, type_: Type) -> Any:  # noqa: ANN401 - whatever the type holds
    """Return a stored bound as a Python value of the column's type."""
    if value is None:
        return None
    if isinstance(type_, Decimal):
        return PyDecimal(value)
    assert isinstance(type_, Primitive)
    if type_.name == "date":
        return _DAY_ZERO + timedelta(days=value)
    if type_.name == "timestamp":
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=value)
    if type_.name == "timestamp_ntz":
        return datetime.fromtimestamp(0, UTC).replace(tzinfo=None) + timedelta(microseconds=value)
    if type_.name.startswith("interval day"):
        return timedelta(microseconds=value)
    return value

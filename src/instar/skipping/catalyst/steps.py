"""`dateadd` of Catalyst: a number of some unit added to a timestamp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from instar.skipping.coercion import DAY_TIME, YEAR_MONTH
from instar.skipping.expression import Call, Expression, Literal
from instar.skipping.functions import Function, Mode
from instar.skipping.kinds import limits, name_of
from instar.skipping.zones import DAY, HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.skipping.catalyst.nodes import Node

__all__ = ["timestamp_add"]

_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_DAYS: Final = {"DAY": DAY, "WEEK": 7 * DAY}
_TIMES: Final = {"HOUR": HOUR, "MINUTE": MINUTE, "SECOND": SECOND}


def timestamp_add(node: Node, read: Callable[[Node], Expression]) -> Expression | None:
    """Add a known number: months and days by local clocks, and less than a day as time that passes."""
    unit = str(node.fields.get("unit")).upper()
    quantity, stamp = (
        None if child is None else read(child) for child in map(node.child, ("quantity", "timestamp"))
    )
    if not isinstance(quantity, Literal) or not isinstance(quantity.value, int) or stamp is None:
        return None
    if stamp.type is None or name_of(stamp.type) not in ("timestamp", "timestamp_ntz"):
        return None
    size = _MONTHS.get(unit) or _DAYS.get(unit) or _TIMES.get(unit)
    type_ = YEAR_MONTH if unit in _MONTHS else DAY_TIME
    low, high = limits(type_)
    if size is None or not low <= quantity.value * size <= high:
        return None
    function = Function.ADD_MONTHS_TO_TIMESTAMP if unit in _MONTHS else Function.ADD_DAY_TIME
    zone = "UTC" if unit in _TIMES else node.zone
    return Call(function, (stamp, Literal(quantity.value * size, type_)), stamp.type, Mode.UNKNOWN, zone)

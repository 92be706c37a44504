"""Values as literals of Spark SQL, as reports and errors show them.

For people, not for parsers: timestamps are in UTC. How a call is shown is in the row of its function.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as PyDecimal
from typing import TYPE_CHECKING, Any, Final

from instar.skipping.representation import is_day_time, is_year_month, name_of

if TYPE_CHECKING:
    from instar.schema import Type

__all__ = ["render_value"]

_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 -- UTC or a local time, as the type says


def render_value(value: Any, type_: Type) -> str:  # noqa: ANN401 -- a value of any type
    """Write a value of a type as a literal."""
    name = name_of(type_)
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case bytes():
            return f"x'{value.hex()}'"
        case PyDecimal():
            return f"{value:f}"
        case int() if name in ("date", "timestamp", "timestamp_ntz"):
            return _moment(value, name)
        case int() if is_day_time(type_):
            return f"interval '{PyDecimal(value) / 1_000_000:f}' second"
        case int() if is_year_month(type_):
            return f"interval '{value}' month"
    return repr(value)


def _moment(value: int, name: str) -> str:
    step = dt.timedelta(days=value) if name == "date" else dt.timedelta(microseconds=value)
    try:
        moment = _EPOCH + step
    except OverflowError:
        return str(value)  # outside of Python's calendar
    return f"{name}'{moment.date() if name == 'date' else moment}'"

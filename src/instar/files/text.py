"""Values that are written as text: which type all values of a column have, and what they are in a type.

CSV says nothing about types, so they are guessed, the same way wherever it is read: a type is taken only if
every value of the column is written as that type is, and text stays text if a value could mean something
else, such as the number 007. A time without a zone is in UTC. Texts that stand for no value decide nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from instar.errors import DataMismatchError
from instar.files.marks import find_marks, null_out
from instar.schema import Decimal, Primitive, Type, arrow_type, format_type

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Guess", "parse_text"]

_WHOLE: Final = r"^[+-]?(0|[1-9][0-9]{0,18})$"
_EXPONENT: Final = r"([eE][+-]?[0-9]+)?"
_NUMBER: Final = (
    r"^[+-]?((0|[1-9][0-9]{0,14})"  # a double holds no more digits than these of every whole number
    rf"|(0|[1-9][0-9]*)(\.[0-9]*{_EXPONENT}|[eE][+-]?[0-9]+)|\.[0-9]+{_EXPONENT}|NaN|Infinity)$"
)
_DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME: Final = r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
_ZONE: Final = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
_MOMENT: Final = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}({_TIME}{_ZONE}?)?$"
_ZONED: Final = rf"{_TIME}{_ZONE}$"
_SHORT: Final = r"([+-][0-9]{2})$"
_TRUE: Final = pa.array(["true", "t", "yes", "y", "1"])
_FALSE: Final = pa.array(["false", "f", "no", "n", "0"])


def _fits(pattern: str, type_: str) -> Callable[[pa.Array], bool]:
    def test(values: pa.Array) -> bool:
        if not pc.all(pc.match_substring_regex(values, pattern)).as_py():
            return False
        try:
            _parse(values, Primitive(type_))
        except pa.ArrowInvalid:
            return False
        return True

    return test


def _is_boolean(values: pa.Array) -> bool:
    return bool(pc.all(pc.is_in(pc.utf8_lower(values), pa.array(["true", "false"]))).as_py())


_CANDIDATES: Final[dict[str, Callable[[pa.Array], bool]]] = {
    "boolean": _is_boolean,
    "bigint": _fits(_WHOLE, "bigint"),
    "double": _fits(_NUMBER, "double"),
    "date": _fits(_DATE, "date"),
    "timestamp": _fits(_MOMENT, "timestamp"),
}
"""Types that text may have, the narrowest first, and whether all of some values are written so."""


class Guess:
    """What a column of text may be, as far as its values have been seen."""

    def __init__(self) -> None:
        self._left = list(_CANDIDATES)
        self._seen = False
        self.marks: list[str] = []
        """Texts that stand for no value, which decide nothing."""

    def look(self, values: pa.Array) -> None:
        """Rule out what some values are not."""
        self.marks += [mark for mark in find_marks(values) if mark not in self.marks]
        present = null_out(values).drop_null()
        if len(present) and self._left:
            self._seen = True
            self._left = [name for name in self._left if _CANDIDATES[name](present)]

    @property
    def type(self) -> Primitive:
        """The narrowest type that all values have; of a column without values, text."""
        return Primitive(self._left[0] if self._seen and self._left else "string")


def parse_text(values: pa.Array, type_: Type, column: str, where: str, first_row: int = 0) -> pa.Array:
    """Return what text says in a type; a value that says nothing in it is refused, with its row."""
    if not isinstance(type_, Primitive | Decimal):
        raise DataMismatchError(column, f"text cannot be {format_type(type_)}, in {where}")
    try:
        return _parse(values, type_)
    except pa.ArrowInvalid:
        at = _first_misfit(values, type_)
        reason = f"{values[at].as_py()!r} is not of its type {format_type(type_)}, in {where}"
        raise DataMismatchError(column, reason, row=first_row + at, sample=repr(values[at].as_py())) from None
    except pa.ArrowNotImplementedError:
        raise DataMismatchError(column, f"text cannot be {format_type(type_)}, in {where}") from None


def _parse(values: pa.Array, type_: Primitive | Decimal) -> pa.Array:
    match type_:
        case Primitive(name="string"):
            return values
        case Primitive(name="boolean"):
            return _booleans(pc.utf8_lower(pc.utf8_trim_whitespace(values)))
        case Primitive(name="timestamp" | "timestamp_ntz"):
            return _moments(pc.utf8_trim_whitespace(values), arrow_type(type_))
        case Primitive(name="float" | "double"):
            named = pc.replace_substring(pc.utf8_trim_whitespace(values), "Infinity", "inf")
            return named.cast(arrow_type(type_))
        case Decimal():
            # Arrow pads digits, and refuses to lose any.
            return pc.utf8_trim_whitespace(values).cast(arrow_type(type_))
        case Primitive(name="binary"):
            return values.cast(pa.binary())
    return pc.replace_substring_regex(pc.utf8_trim_whitespace(values), r"^\+", "").cast(arrow_type(type_))


def _booleans(values: pa.Array) -> pa.Array:
    true = pc.is_in(values, _TRUE)
    known = pc.or_(pc.or_(true, pc.is_in(values, _FALSE)), values.is_null())
    if not pc.all(known).as_py():
        raise pa.ArrowInvalid("not a boolean")
    return pc.if_else(values.is_null(), pa.scalar(None, pa.bool_()), true)


def _moments(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return moments; without a zone it is UTC, and where zones do not count there must be none."""
    plain = pa.timestamp(type_.unit)
    zoned = pc.fill_null(pc.match_substring_regex(values, _ZONED), False)  # noqa: FBT003
    if type_.tz is None or not pc.any(zoned).as_py():
        return _cut(values).cast(plain).cast(type_) if type_.tz is None else _in_utc(_cut(values).cast(plain))
    without = pc.if_else(zoned, pa.scalar(None, values.type), values)
    whole = pc.replace_substring_regex(values, _SHORT, r"\1:00")  # +02 is +02:00
    with_zone = pc.if_else(zoned, _cut(whole), pa.scalar(None, values.type))
    instants = with_zone.cast(pa.timestamp(type_.unit, "UTC"))
    return pc.coalesce(instants, _in_utc(_cut(without).cast(plain)))


def _cut(values: pa.Array) -> pa.Array:
    """Leave out zeros beyond microseconds, which others write; another digit there is refused."""
    return pc.replace_substring_regex(values, r"(\.[0-9]{6})0+", r"\1")


def _in_utc(moments: pa.Array) -> pa.Array:
    return moments.cast(pa.int64()).cast(pa.timestamp(moments.type.unit, "UTC"))


def _first_misfit(values: pa.Array, type_: Primitive | Decimal) -> int:
    """Find the first value that does not fit, by halves."""
    fits, fails = 0, len(values)
    while fails - fits > 1:
        middle = (fits + fails) // 2
        try:
            _parse(values.slice(fits, middle - fits), type_)
            fits = middle
        except pa.ArrowInvalid:
            fails = middle
    return fits

"""Literals of Catalyst, whose values Spark prints as text."""

from __future__ import annotations

from decimal import Decimal as PyDecimal
from decimal import InvalidOperation
from typing import TYPE_CHECKING, Final

import numpy as np

from instar.schema import Decimal
from instar.skipping.catalyst.nodes import find_type
from instar.skipping.expression import Anything, Expression, Literal
from instar.skipping.literals import fold_string
from instar.skipping.representation import INTEGERS, is_day_time, is_year_month, limits, name_of

if TYPE_CHECKING:
    from instar.schema import Type

__all__ = ["held_literal", "literal_of", "read_literal"]

_REPLACED: Final = "\ufffd"
"""What is printed for bytes that are no text, and there is no telling which they were."""


def read_literal(value: object, given: object, zone: str | None) -> Expression:
    """Read a literal of a type. Timestamps are printed in the session's time zone."""
    type_ = find_type(given)
    return Anything(f"literal {value}") if type_ is None else literal_of(value, type_, zone)


def literal_of(value: object, type_: Type, zone: str | None) -> Expression:
    """Read a value of a type as literals print it."""
    if value is None:
        return Literal(None, type_)
    found = _find_literal(value, type_, zone)
    return Anything(f"literal {value}", type_) if found is None else found


def held_literal(text: str, type_: Type, zone: str | None) -> Expression:
    """Read a value as Spark holds it in a set: dates in days, timestamps in microseconds."""
    if name_of(type_) in ("date", "timestamp", "timestamp_ntz"):
        known = text.lstrip("-").isdigit()
        return Literal(int(text), type_) if known else Anything(f"member {text}", type_)
    return literal_of(text, type_, zone)


def _find_literal(value: object, type_: Type, zone: str | None) -> Literal | None:
    name = name_of(type_)
    if name == "binary":
        return Literal(value, type_) if isinstance(value, bytes) else None
    text = str(value)
    if name == "string":
        return Literal(text, type_) if _is_unicode(text) and _REPLACED not in text else None
    if name in INTEGERS or is_day_time(type_) or is_year_month(type_):
        number = int(text) if text.lstrip("-").isdigit() else None
        low, high = limits(type_)
        return Literal(number, type_) if number is not None and low <= number <= high else None
    if name == "boolean":
        return Literal(text == "true", type_) if text in ("true", "false") else None
    if name in ("float", "double"):
        return _real(text, type_)
    if isinstance(type_, Decimal):
        try:
            return Literal(PyDecimal(text), type_)
        except InvalidOperation:
            return None
    if name == "timestamp_ntz" and text.lstrip("-").isdigit():
        return Literal(int(text), type_)  # as it is held, not as it is written
    if name == "timestamp_ntz":
        text = text.replace("T", " ")
        text = text if text.count(":") != 1 else f"{text}:00"
    return fold_string(text, type_, zone)


def _real(text: str, type_: Type) -> Literal | None:
    try:
        value = float(text.replace("Infinity", "inf"))
    except ValueError:
        return None
    if name_of(type_) == "float":
        value = float(np.float32(text.replace("Infinity", "inf")))
    return Literal(value, type_)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

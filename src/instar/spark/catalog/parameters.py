"""Values for the parameters of a statement that is ours to run: each becomes a literal of SQL, by its type.

Spark binds the parameters of all other statements itself, and takes the same values. A parameter is `:name`
or `?`, where a token may be one: never inside of a text, a comment or a quoted name.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Union

import numpy as np
from sqlglot import TokenType

from instar.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlglot import Token

__all__ = ["Arguments", "bind", "check_arguments", "literal"]

Arguments = Union[dict[str, Any], list[Any]]  # noqa: UP007 -- used at run time

_OPERANDS: Final = frozenset(
    [TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.STRING]
)
"""What a colon right behind it takes a member of."""
_LONG: Final = 63
_DAY: Final = 86_400


def check_arguments(args: object) -> None:
    """Raise unless these are values by name or in order, as Spark takes them."""
    if args is None or isinstance(args, dict | list):
        return
    raise UsageError(
        f"args={args!r:.80} is {type(args).__name__}: give a dict for parameters like :name, or a list for ?"
    )


def bind(text: str, tokens: Sequence[Token], args: Arguments, *, escapes: bool = True) -> str:
    """Return a statement with its parameters replaced by their values; `tokens` are those of the text.

    Without `escapes`, the session reads backslashes in texts as they stand.
    """
    pieces, done, count = [], 0, 0
    for start, end, name in _parameters(text, tokens):
        if isinstance(args, dict) == (name is None):
            raise UsageError(
                "parameters like :name take their values from a dict, and those like ? from a list: "
                f"args is a {type(args).__name__}, and the statement has `{text[start:end]}`"
            )
        try:
            value = args[count] if name is None else args[name]  # type: ignore[index, call-overload]
        except (KeyError, IndexError):
            which = f"the parameter `:{name}`" if name else f"parameter {count + 1}, a `?`,"
            raise UsageError(f"there is no value for {which} of the statement: give it in args") from None
        pieces += [text[done:start], literal(value, escapes=escapes)]
        done, count = end, count + 1
    return "".join([*pieces, text[done:]])


def _parameters(text: str, tokens: Sequence[Token]) -> Iterator[tuple[int, int, str | None]]:
    """Yield where parameters begin and end, and their names; those in order have none."""
    for at, token in enumerate(tokens):
        if token.token_type is TokenType.PLACEHOLDER and token.text == "?":
            yield token.start, token.end + 1, None
        if token.token_type is not TokenType.COLON or at + 1 == len(tokens):
            continue
        before, after = tokens[at - 1] if at else None, tokens[at + 1]
        is_member = before is not None and before.end + 1 == token.start and before.token_type in _OPERANDS
        if not is_member and text[after.start].isidentifier() and after.token_type is not TokenType.STRING:
            yield token.start, after.end + 1, text[after.start : after.end + 1]


def literal(value: Any, *, escapes: bool = True) -> str:  # noqa: ANN401 -- of any type that Spark takes
    """Return a value of Python's as a literal of Spark's SQL, of the type that Spark gives it."""
    match value:
        case Enum():
            return literal(value.value, escapes=escapes)
        case np.generic():
            return literal(value.item(), escapes=escapes)
        case str():
            return _text(value, escapes=escapes)
        case bytes() | bytearray():
            return f"X'{value.hex()}'"
        case list():
            return f"array({', '.join(literal(item, escapes=escapes) for item in value)})"
    found = _number(value) or _moment(value)
    if found is None:
        raise UsageError(
            f"{value!r:.80} cannot be the value of a parameter: it is {type(value).__name__}. Numbers, "
            "texts, booleans, bytes, dates, times, intervals, None and lists of them can"
        )
    return found


def _number(value: object) -> str | None:
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int() if -(2**_LONG) <= value < 2**_LONG:
            return _signed(str(value))
        case float():
            return _signed(f"{value!r}D") if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
        case Decimal() if value.is_finite():
            return _signed(f"{value:f}BD")
    return None


def _moment(value: object) -> str | None:
    match value:
        case datetime():
            return f"TIMESTAMP'{value.astimezone(UTC).isoformat(' ')}'"
        case date():
            return f"DATE'{value.isoformat()}'"
        case time() if value.tzinfo is None:
            return f"TIME'{value.isoformat()}'"
        case timedelta():
            return _interval(value)
    return None


def _signed(number: str) -> str:
    """Return a number that no minus before it can turn into a comment."""
    return f"({number})" if number.startswith("-") else number


def _text(value: str, *, escapes: bool) -> str:
    if escapes:
        # Spark replaces ${name} in statements by a setting, also inside of texts.
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
        return f"'{escaped}'"
    if any(sign in value for sign in ("\\", "'", "${")):
        raise UsageError(
            "a text with a quote, a backslash or ${ cannot be a parameter in a session that has "
            "spark.sql.parser.escapedStringLiterals: set it to false"
        )
    return f"'{value}'"


def _interval(value: timedelta) -> str:
    micros = value // timedelta(microseconds=1)
    seconds, micros = divmod(abs(micros), 1_000_000)
    days, seconds = divmod(seconds, _DAY)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}"
    sign = "-" if value < timedelta(0) else ""
    return f"INTERVAL '{sign}{days} {clock}' DAY TO SECOND"

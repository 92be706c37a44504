"""Functions of strings and binaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from instar.skipping.coercion import BINARY, INT, STRING
from instar.skipping.expression import BOOLEAN, Literal
from instar.skipping.functions import Function
from instar.skipping.kernels import text
from instar.skipping.kernels.letters import cased, trimmed
from instar.skipping.registry.row import BYTES_ARG, INT_ARG, STRING_ARG, Param, Row, first_type
from instar.skipping.representation import INTEGERS, Representation
from instar.skipping.strings import BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.schema import Type
    from instar.skipping.expression import Expression
    from instar.skipping.kernels.outcome import Kernel
    from instar.skipping.strings import Strings

__all__ = ["TEXT"]

_T, _W = Representation.TEXT, Representation.WHOLE
_REST: Final = (1 << 31) - 1
"""The length that stands for all that is left."""


def _alike(args: tuple[Expression, ...]) -> Type | None:
    types = {arg.type for arg in args}
    return BOOLEAN if types in ({STRING}, {BINARY}) else None


def _strings(args: tuple[Expression, ...]) -> Type | None:
    return STRING if {arg.type for arg in args} == {STRING} else None


def _like(args: list[str]) -> str:
    escape = f" escape {args[2]}" if args[2:] not in ([], ["'\\\\'"]) else ""
    return f"({args[0]} like {args[1]}{escape})"


def _substring(args: list[str]) -> str:
    return f"substring({', '.join(args if args[2] != str(_REST) else args[:2])})"


def _search(name: str, class_: str, kernel: Kernel) -> Row:
    return Row(
        name,
        _alike,
        (BYTES_ARG, BYTES_ARG),
        {(_T, _T): kernel},
        sql=(name,),
        catalyst=(class_,),
        samples=(f"boolean: {name}({{string}}, '#piece')",),
    )


def _changed(name: str, names: tuple[str, ...], class_: str, kernel: Kernel) -> Row:
    samples = tuple(f"string: {own}({{string}})" for own in names)
    return Row(name, STRING, (STRING_ARG,), {(_T,): kernel}, sql=names, catalyst=(class_,), samples=samples)


def _of_text(function: Callable[..., Strings], **options: str) -> Callable[[Strings], Strings]:
    """Make a function of bytes from one of Arrow's of text."""
    return lambda column: function(column.cast(pa.large_string()), **options).cast(BYTES)


TEXT: Final = (
    _search("startswith", "StartsWith", text.starts_with),
    _search("endswith", "EndsWith", text.ends_with),
    _search("contains", "Contains", text.contains),
    Row(
        Function.LIKE,
        BOOLEAN,
        kernels={(_T, _T, _T): text.like, (_T, _T): text.like},
        shown=_like,
        samples=(
            *("boolean: ({string} like '#like')", "boolean: ({string} not like '#like')"),
            *("boolean: ({string} ilike '#like')", "boolean: ({string} not ilike '#like')"),
            *(
                "boolean: ({string} like any ('#like', '#like'))",
                "boolean: ({string} not like all ('#like', '#like'))",
            ),
        ),
    ),
    Row(
        Function.PREFIX,
        first_type,
        (BYTES_ARG, Param(tuple(INTEGERS))),
        {(_T, _W): text.prefix},
        sql=("left",),
        catalyst=("Left(str, len)",),
        samples=("string: left({string}, #n)",),
    ),
    Row(
        "substring",
        first_type,
        (BYTES_ARG, INT_ARG, INT_ARG),
        {(_T, _W, _W): text.substring},
        sql=("substring", "substr"),
        catalyst=("Substring(str, pos, len)",),
        defaults=(Literal(_REST, INT),),
        shown=_substring,
        samples=(
            *("string: substring({string}, 1, #n)", "string: substr({string}, 0, #n)"),
            *("string: substr({string}, 2, #n)", "string: substring({string}, #n)"),
        ),
    ),
    Row(
        Function.CONCAT,
        _strings,
        kernels=text.concat,
        sql=("concat",),
        catalyst=("Concat",),
        samples=(
            *("string: concat({string}, {string})", "string: ({string} || '#piece')"),
            *("string: concat('#piece', {string}, '#piece')", "string: concat(left({string}, 2), {string})"),
        ),
    ),
    Row(
        "length",
        INT,
        (BYTES_ARG,),
        {(_T,): text.length},
        sql=("length", "char_length", "character_length", "len"),
        catalyst=("Length",),
        samples=(
            *("int: length({string})", "int: char_length({string})"),
            *("int: character_length({string})", "int: len({string})"),
        ),
    ),
    Row(
        "rlike",
        BOOLEAN,
        (STRING_ARG, STRING_ARG),
        {(_T, _T): text.matches},
        sql=("rlike", "regexp", "regexp_like"),
        catalyst=("RLike(left, right)",),
        samples=(
            *("boolean: ({string} rlike '#regex')", "boolean: rlike({string}, '#regex')"),
            *("boolean: regexp({string}, '#regex')", "boolean: regexp_like({string}, '#regex')"),
        ),
    ),
    _changed("upper", ("upper", "ucase"), "Upper", cased(bytes.upper, _of_text(pc.ascii_upper))),
    _changed("lower", ("lower", "lcase"), "Lower", cased(bytes.lower, _of_text(pc.ascii_lower))),
    _changed(
        "trim",
        ("trim", "btrim"),
        "StringTrim",
        trimmed(_of_text(pc.utf8_trim, characters=" "), left=True, right=True),
    ),
    _changed(
        "ltrim",
        ("ltrim",),
        "StringTrimLeft",
        trimmed(_of_text(pc.utf8_ltrim, characters=" "), left=True, right=False),
    ),
    _changed(
        "rtrim",
        ("rtrim",),
        "StringTrimRight",
        trimmed(_of_text(pc.utf8_rtrim, characters=" "), left=False, right=True),
    ),
)

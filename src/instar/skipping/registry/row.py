"""`Row`: all that there is to know of one function, in one place.

How it is called in SQL and in Catalyst, which arguments it takes and how its type follows, what it does to
possible values, how it is shown, and samples that tests try on Spark. Both front ends bind arguments here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from instar.schema import Decimal, List, Map, Type
from instar.skipping.coercion import DATE, DOUBLE, LONG, TIMESTAMP, cast, unified
from instar.skipping.expression import Call, Expression, Literal
from instar.skipping.functions import Mode
from instar.skipping.narrow import Evaluate, Scope
from instar.skipping.representation import (
    INTEGERS,
    Representation,
    is_day_time,
    is_year_month,
    name_of,
    representation_of,
)
from instar.skipping.results import Results

if TYPE_CHECKING:
    from instar.skipping.functions import Session
    from instar.skipping.kernels.outcome import Kernel

__all__ = [
    "BIGINT_ARG",
    "BYTES_ARG",
    "DATE_ARG",
    "DOUBLE_ARG",
    "INT_ARG",
    "LOCAL_ARG",
    "STAMP_ARG",
    "STRING_ARG",
    "Lazy",
    "Param",
    "Row",
    "Typing",
    "family_of",
    "first_type",
    "sampled",
]

Args = tuple[Expression, ...]
Typing = Callable[[Args], Type | None]
Lazy = Callable[[Call, Scope, Evaluate], Results]
"""What evaluates a function that decides itself what of its arguments to look at, and where."""

_CLASS: Final = re.compile(r"(\w+)(?:\((.*)\))?")


def family_of(type_: Type | None) -> str:
    """Return the name of a type without its parameters, such as `decimal`, `day-time` or `array`."""
    match type_:
        case Decimal():
            return "decimal"
        case List():
            return "array"
        case Map():
            return "map"
    if is_day_time(type_):
        return "day-time"
    return "year-month" if is_year_month(type_) else name_of(type_)


@dataclass(frozen=True)
class Param:
    """An argument: the families of types that a function takes, and what SQL casts others to."""

    families: tuple[str, ...] = ()
    """None at all takes everything."""
    casts: Mapping[str, Type] = field(default_factory=dict)

    def fit(self, arg: Expression, session: Session | None) -> Expression | None:
        """Return an argument as the function takes it. Only in SQL, which has a session, is anything cast."""
        family = family_of(arg.type)
        if family in self.families or not self.families:
            return arg
        if session is None or family not in self.casts:
            return None
        return cast(arg, self.casts[family], session.mode, session.zone)


_NUMBERS: Final = (*INTEGERS, "float", "double", "decimal")
DATE_ARG: Final = Param(("date",), dict.fromkeys(("timestamp", "timestamp_ntz", "string"), DATE))
STAMP_ARG: Final = Param(("timestamp",), dict.fromkeys(("date", "timestamp_ntz", "string"), TIMESTAMP))
LOCAL_ARG: Final = Param(("timestamp", "timestamp_ntz"), dict.fromkeys(("date", "string"), TIMESTAMP))
"""A timestamp of either kind."""
INT_ARG: Final = Param(("tinyint", "smallint", "int"))
BIGINT_ARG: Final = Param(("int", "bigint"), dict.fromkeys(("tinyint", "smallint"), LONG))
DOUBLE_ARG: Final = Param(("double",), dict.fromkeys(_NUMBERS, DOUBLE))
STRING_ARG: Final = Param(("string",))
BYTES_ARG: Final = Param(("string", "binary"))


@dataclass(frozen=True)
class Row:
    """One function."""

    name: str
    result: Type | Typing
    """Its type, or how that follows from its arguments; None if it takes no such arguments."""
    params: tuple[Param, ...] = ()
    """Its arguments. None at all leaves it to `result` which it takes."""
    kernels: Kernel | Mapping[tuple[Representation, ...], Kernel] | None = None
    """What it does to values: always, or by how its arguments are held. It is null if an argument is."""
    lazy: Lazy | None = None
    """What evaluates it instead, if it is not simply null whenever an argument is."""
    sql: tuple[str, ...] = ()
    """Its names in SQL; functions that only operators call have none."""
    catalyst: tuple[str, ...] = ()
    """Its classes in Catalyst, with the fields that name its arguments if these are not all children."""
    unifies: bool = False
    """Whether SQL casts all arguments to the type that they have in common."""
    defaults: tuple[Literal, ...] = ()
    """The last arguments, for calls in SQL that leave them out."""
    infix: str = ""
    """The operator that it is shown as."""
    shown: str | Callable[[list[str]], str] = ""
    """A template in which it is shown, if it is neither an operator nor a call by its first name."""
    tried: str = ""
    """What it is called where its errors become null."""
    samples: tuple[str, ...] = ()
    """Calls to try on Spark, each after the type that it has: a hole `{int}` takes anything of a type."""

    @property
    def classes(self) -> dict[str, tuple[str, ...]]:
        """The fields that name its arguments, by class of Catalyst."""
        found = (_CLASS.fullmatch(each) for each in self.catalyst)
        return {
            match[1]: tuple(re.split(r", ?", match[2])) if match[2] else ()
            for match in found
            if match is not None
        }

    def find_kernel(self, call: Call) -> Kernel | None:
        """Find the kernel for a call."""
        if isinstance(self.kernels, Mapping):
            return self.kernels.get(tuple(representation_of(arg.type) for arg in call.args))
        return self.kernels

    def bind(self, args: Args, mode: Mode, zone: str | None, session: Session | None = None) -> Call | None:
        """Make a call, or None if these are no arguments for it."""
        if session is not None and self.unifies:
            args = tuple(unified(list(args), session) or ())
            if not args:
                return None
        if session is not None and len(args) < len(self.params):
            args = (*args, *self.defaults[len(args) - len(self.params) :])
        if self.params:
            if len(args) != len(self.params):
                return None
            fitted = [param.fit(arg, session) for param, arg in zip(self.params, args, strict=True)]
            args = tuple(arg for arg in fitted if arg is not None)
            if len(args) < len(fitted):
                return None
        type_ = self.result(args) if callable(self.result) else self.result
        if type_ is None:
            return None
        if is_day_time(type_) or is_year_month(type_):
            mode = Mode.UNKNOWN
        return Call(self.name, args, type_, mode, zone)

    def show(self, args: list[str], mode: Mode) -> str:
        """Write a call in the words of SQL, given its arguments."""
        if mode is Mode.TRY and self.tried:
            return f"{self.tried}({', '.join(args)})"
        if self.infix:
            return "(" + f" {self.infix} ".join(args) + ")"
        if callable(self.shown):
            return self.shown(args)
        if self.shown:
            return self.shown.format(*args, rest=", ".join(args[1:]))
        return f"{self.sql[0] if self.sql else self.name}({', '.join(args)})"


def first_type(args: Args) -> Type | None:
    """Say that a function has the type of its first argument."""
    return args[0].type if args else None


def sampled(template: str, types: str) -> tuple[str, ...]:
    """Return a sample for each of several types, which take the place of `{T}`."""
    return tuple(f"{type_}: {template.replace('{T}', '{' + type_ + '}')}" for type_ in types.split())

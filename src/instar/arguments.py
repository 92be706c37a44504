"""Arguments of public calls are what their annotations say, or the call is refused before it does anything.

What an annotation names beyond the kinds below, such as data or a schema in any form, is checked where it is
understood.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Final, NamedTuple, TypeVar

from instar.errors import UsageError

__all__ = ["checked", "checked_methods"]

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

_BITS: Final = 63
_OR: Final = re.compile(r" \| (?![^\[]*\])(?![^\[]*\[[^\]]*\]\])")
"""What separates the kinds of an annotation, and is not inside brackets."""
_MANY: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
"""Parameters that take any number of arguments: these are checked where they are understood."""


class _Kind(NamedTuple):
    """What values an annotation allows, and in words."""

    allows: Callable[[object], bool]
    words: str


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**_BITS) <= value < 2**_BITS


def _is_texts(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes) and _all_texts(value)


def _is_settings(value: object) -> bool:
    return isinstance(value, Mapping) and _all_texts(value) and _all_texts(value.values())


def _is_named(value: object) -> bool:
    return isinstance(value, Mapping) and _all_texts(value)


def _is_commented(value: object) -> bool:
    return (
        isinstance(value, Mapping)
        and all(key is None or isinstance(key, str) for key in value)
        and _all_texts(value.values())
    )


def _is_session(value: object) -> bool:
    return any(class_.__name__ == "SparkSession" for class_ in type(value).__mro__)  # PySpark stays unloaded


def _all_texts(values: Any) -> bool:  # noqa: ANN401 -- anything that can be gone through
    return all(isinstance(each, str) for each in values)


_KINDS: Final[Mapping[str, _Kind]] = {
    "None": _Kind(lambda value: value is None, "None"),
    "int": _Kind(_is_whole, "a whole number of 64 bits"),
    "float": _Kind(_is_number, "a number"),
    "bool": _Kind(lambda value: isinstance(value, bool), "True or False"),
    "str": _Kind(lambda value: isinstance(value, str), "a text"),
    "os.PathLike[str]": _Kind(lambda value: hasattr(value, "__fspath__"), "a path"),
    "Schema": _Kind(lambda value: type(value).__name__ == "Schema", "a Schema"),
    "SparkSession": _Kind(_is_session, "a Spark session"),
    "Sequence[str]": _Kind(_is_texts, "a list of texts"),
    "Mapping[str, str]": _Kind(_is_settings, "a dict of texts"),
    "Mapping[str | None, str]": _Kind(_is_commented, "a dict of texts, by name or None"),
    "Mapping[str, ConfigValue]": _Kind(_is_named, "a dict with texts as keys"),
    "Mapping[str, ConfigValue | Sequence[str]]": _Kind(_is_named, "a dict with texts as keys"),
}


def checked(function: F) -> F:
    """Check the arguments of a function against its annotations, as far as these are of known kinds."""
    signature = inspect.signature(function)
    known = {
        name: kinds
        for name, parameter in signature.parameters.items()
        if parameter.kind not in _MANY and (kinds := _kinds(parameter.annotation)) is not None
    }
    if not known:
        return function

    @wraps(function)
    def wrapper(*args: Any, **given: Any) -> Any:  # noqa: ANN401 -- whatever the function takes
        for name, value in signature.bind(*args, **given).arguments.items():
            kinds = known.get(name)
            if kinds is not None and not any(kind.allows(value) for kind in kinds):
                words = " or ".join(kind.words for kind in kinds)
                raise UsageError(
                    f"{function.__name__}({name}={value!r}): {name} is {words}, not {type(value).__name__}"
                )
        return function(*args, **given)

    return wrapper  # type: ignore[return-value]


def checked_methods(class_: C) -> C:
    """Check the arguments of all public methods of a class."""
    for name, member in list(vars(class_).items()):
        if inspect.isfunction(member) and (not name.startswith("_") or name == "__init__"):
            setattr(class_, name, checked(member))
    return class_


def _kinds(annotation: object) -> list[_Kind] | None:
    """Return the kinds that an annotation names; None if it names others too."""
    names = _OR.split(annotation) if isinstance(annotation, str) else []
    if names == ["SparkSession"]:
        return None  # what needs one says itself what can be done without
    return [_KINDS[name] for name in names] if names and all(name in _KINDS for name in names) else None

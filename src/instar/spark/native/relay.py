"""Errors across the JVM: an instar error raised inside a callback reaches the caller as itself.

Spark calls back into Python while it plans a query. What is raised there travels through the JVM as
text; here it is kept by a number in that text, and raised again where PySpark would raise Py4J's error.
A negative count is found by Spark's own tasks, which can say it only in words: those are read.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections import OrderedDict
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import py4j.java_gateway
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from instar.errors import CountOverflowError, InstarError, NegativeCountError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["install", "relayed"]

F = TypeVar("F", bound="Callable[..., Any]")
T = TypeVar("T")

_MARK: Final = re.compile(r"instar-error-(\d+)\b")
_RAISED: Final = re.compile(
    r"(?:\[USER_RAISED_EXCEPTION\]|java\.lang\.RuntimeException:) "
    r"instar: `(?P<table>.*?)` holds a row (?P<what>that was retracted more often than it was added|"
    r"whose diffs add up to more than 64 bits can hold)"
    r"(?:: its count is (?P<count>-?\d+)\. The row: (?P<row>[^\n]*))?"
)
"""What a task says that has raised it.

The sentence alone is in the plan of every frame that adds rows up, and Spark's complaints print the plan.
"""
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+$")
_KEPT: Final = 1000
_HELD_SECONDS: Final = 2.0
_numbers = itertools.count(1)
_errors: OrderedDict[int, InstarError] = OrderedDict()
_lock = threading.Lock()


class RelayedError(Exception):
    """Carries the number of an error through the JVM."""


def relayed(callback: F) -> F:
    """Let the instar errors of a callback reach whoever made Spark call it, and its answer reach Spark."""

    @wraps(callback)
    def wrapper(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 -- whatever the callback takes
        try:
            return _held(callback(*args, **kwargs))
        except InstarError as error:
            with _lock:
                number = next(_numbers)
                _errors[number] = error
                while len(_errors) > _KEPT:
                    _errors.popitem(last=False)
            raise RelayedError(f"instar-error-{number}: {error}") from error

    return wrapper  # type: ignore[return-value]


def _held(answer: T) -> T:
    """Keep an answer for a moment: Py4J sends its number, and the JVM must find the object by it.

    As soon as Python lets go of the answer, another thread may tell the JVM to forget that object.
    """
    timer = threading.Timer(_HELD_SECONDS, _forget, [answer])
    timer.daemon = True
    timer.start()
    return answer


def _forget(_: object) -> None:
    """Let go of an answer."""


def install() -> None:
    """Make PySpark raise relayed errors as themselves, once for the process."""
    inner = py4j.java_gateway.get_return_value
    if getattr(inner, "relays_instar_errors", False):
        return

    @wraps(inner)
    def get_return_value(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 -- Py4J's own signature
        try:
            return inner(*args, **kwargs)
        except (Py4JError, PySparkException) as error:
            original = _find(str(error))
            if original is None:
                raise
            raise original from None

    get_return_value.relays_instar_errors = True  # type: ignore[attr-defined]
    py4j.java_gateway.get_return_value = get_return_value


def _find(text: str) -> InstarError | None:
    """Return the error that a text of the JVM's is about, if it is one of ours."""
    raised = _RAISED.search(text)
    if raised is not None:
        table, what, count, row = raised.group("table", "what", "count", "row")
        described = f"one of `{table}`" if row is None else _STATE.sub("", row)
        if what.startswith("whose"):
            return CountOverflowError(described, None if count is None else int(count))
        return NegativeCountError(described, None if count is None else int(count))
    match = _MARK.search(text)
    if match is None:
        return None
    with _lock:
        return _errors.get(int(match[1]))

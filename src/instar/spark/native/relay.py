"""Errors across the JVM: an instar error raised inside a callback reaches the caller as itself.

Spark calls back into Python while it plans a query. What is raised there travels through the JVM as
text; here it is kept under a key in that text, and raised again where PySpark would raise Py4J's error.
Only the error itself is kept, without the frames that it was raised in: these hold leases and much else.
A negative count is found by Spark's own tasks, which can say it only in words: those are read.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections import OrderedDict
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import py4j.java_gateway
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from instar.errors import CountOverflowError, InstarError, NegativeCountError
from instar.spark.native.callbacks import hold_answer

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["install", "relayed"]

F = TypeVar("F", bound="Callable[..., Any]")

_MARK: Final = re.compile(r"instar-error-([0-9a-f]{32})\b")
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
_errors: OrderedDict[str, InstarError] = OrderedDict()
_lock = threading.Lock()


class RelayedError(Exception):
    """Carries the key of an error through the JVM."""


def relayed(callback: F) -> F:
    """Let the instar errors of a callback reach whoever made Spark call it, and its answer reach Spark."""

    @wraps(callback)
    def wrapper(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 -- whatever the callback takes
        try:
            answer = callback(*args, **kwargs)
        except InstarError as error:
            # Only who was told a key has it: a query may raise any text that its author can think of.
            key = secrets.token_hex(16)
            with _lock:
                _errors[key] = _bare(error)
                while len(_errors) > _KEPT:
                    _errors.popitem(last=False)
            raise RelayedError(f"instar-error-{key}: {error}") from None
        hold_answer(answer)
        return answer

    return wrapper  # type: ignore[return-value]


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
        raise original

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
        found = _errors.get(match[1])
    # Raising gives an error the frames of its caller: another one each time, so that the kept one has none.
    return None if found is None else _bare(found)


def _bare(error: InstarError) -> InstarError:
    """Return an error that says the same and knows nothing of where it was raised, or because of what."""
    made = type(error).__new__(type(error), *error.args)
    made.__dict__.update(error.__dict__)
    return made

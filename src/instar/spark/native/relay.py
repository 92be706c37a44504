"""Errors across the JVM: an instar error raised inside a callback reaches the caller as itself.

Spark calls back into Python while it plans a query. What is raised there travels through the JVM as
text; here it is kept under a key in that text, and raised again where PySpark would raise Py4J's error.
Only the error itself is kept, without the frames that it was raised in: these hold leases and much else.
A wrong count is found by Spark's own tasks, which can only raise text: the code of the error, and JSON.
Neither can be taken for what a query of somebody else's says, for both have a secret of this process.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
import traceback
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

__all__ = ["count_mark", "install", "relayed"]

F = TypeVar("F", bound="Callable[..., Any]")

_MARK: Final = re.compile(r"instar-error-([0-9a-f]{32})\b")
_COUNTS: Final = {kind.code: kind for kind in (NegativeCountError, CountOverflowError)}
_SECRET: Final = secrets.token_hex(16)
_COUNT: Final = re.compile(rf"instar-({'|'.join(_COUNTS)})-{_SECRET} (?=\{{\")")
"""What a task raises: JSON follows. The plan of every frame that adds rows up has the mark without it."""
_KEPT: Final = 1000
_errors: OrderedDict[str, InstarError] = OrderedDict()
_lock = threading.Lock()


class RelayedError(Exception):
    """Carries the key of an error through the JVM."""


def relayed(callback: F) -> F:
    """Let the instar errors of a callback reach its caller through Spark, and its answer reach Spark."""

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
            _empty_frames(error)
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


def count_mark(kind: type[InstarError]) -> str:
    """Return what a task says before the JSON of the table, the count and the row that are wrong."""
    return f"instar-{kind.code}-{_SECRET} "


def _find(text: str) -> InstarError | None:
    """Return the error that a text of the JVM's is about, if it is one of ours."""
    raised = _COUNT.search(text)
    if raised is not None:
        kind = _COUNTS[raised[1]]
        try:
            facts, _ = json.JSONDecoder().raw_decode(text, raised.end())
            return kind(facts["row"], int(facts["count"]))
        except (KeyError, TypeError, ValueError):  # cut off, or not of a task of ours
            return kind("not told by Spark", None)
    match = _MARK.search(text)
    if match is None:
        return None
    with _lock:
        found = _errors.get(match[1])
    # Raising gives an error the frames of its caller: another one each time, so that the kept one has none.
    return None if found is None else _bare(found)


def _empty_frames(error: BaseException | None) -> None:
    """Let go of what the frames of an error hold: Py4J logs the error, and a log may keep it."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _bare(error: InstarError) -> InstarError:
    """Return an error that says the same and knows nothing of where it was raised, or because of what."""
    made = type(error).__new__(type(error), *error.args)
    made.__dict__.update(error.__dict__)
    return made

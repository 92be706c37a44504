"""Spark's errors in words of ours: what the caller can do something about, without its stack."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    IllegalArgumentException,
    NumberFormatException,
    PySparkException,
    SparkRuntimeException,
)

from instar.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["expression_errors", "spark_errors"]

_STATE: Final = re.compile(r"\s*SQLSTATE: \w+\.?")
_UNSEEN: Final = re.compile("(?:, )?`\N{UNIT SEPARATOR}[^`]*`")
"""Columns of ours, which Spark would suggest to the caller; no column of a table has such a name."""
_CAUSE: Final = re.compile(r"^(?:Caused by: )?[\w.$]+(?:Exception|Error): (.+)$", re.MULTILINE)
_OF_EXPRESSIONS: Final = (
    AnalysisException,
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    IllegalArgumentException,
    NumberFormatException,
    SparkRuntimeException,
)


@contextmanager
def spark_errors() -> Iterator[None]:
    """Say of any error of Spark's what matters."""
    try:
        yield
    except PySparkException as error:
        raise UsageError(_essence(str(error))) from error
    except Py4JJavaError as error:
        causes = _CAUSE.findall(str(error))
        raise UsageError(_essence(causes[-1] if causes else str(error))) from error


@contextmanager
def expression_errors() -> Iterator[None]:
    """Say what is wrong with conditions and values in SQL: all else is not the caller's doing."""
    try:
        yield
    except _OF_EXPRESSIONS as error:
        raise UsageError(_essence(str(error))) from error


def _essence(text: str) -> str:
    """Return one line, without the state that standards ask for, the plan, and the JVM's own stack.

    Of a statement that cannot be parsed it tells where; the picture of the place is left out.
    """
    for end in ("\n\nJVM stacktrace", ";\n'", ";\n+-", "\n== SQL"):
        text = text.partition(end)[0]
    return " ".join(_UNSEEN.sub("", _STATE.sub("", text)).split())

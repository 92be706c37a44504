"""What a call depends on besides its arguments: Spark's mode and session; and names of operators.

All that there is to know of a function is its row in `registry`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum, auto

__all__ = ["Function", "Mode", "Session"]


class Mode(Enum):
    """What a call does where it has no result: an overflow, a division by zero, a cast that does not fit."""

    ANSI = "ansi"
    """It fails."""
    LEGACY = "legacy"
    """It wraps around or is null, as each function has it."""
    TRY = "try"
    """It is null."""
    UNKNOWN = "unknown"
    """Any of these: the source of the expression does not say which."""

    @property
    def may_fail(self) -> bool:
        """Whether a call without a result may raise an error."""
        return self in (Mode.ANSI, Mode.UNKNOWN)

    @property
    def may_be_null(self) -> bool:
        """Whether a call without a result may be null, for functions that are null in legacy mode."""
        return self is not Mode.ANSI

    @property
    def may_wrap(self) -> bool:
        """Whether integers may wrap around."""
        return self in (Mode.LEGACY, Mode.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Session:
    """The settings of a Spark session that change what an expression means."""

    zone: str = "UTC"
    """`spark.sql.session.timeZone`."""
    ansi: bool = True
    """`spark.sql.ansi.enabled`."""

    @property
    def mode(self) -> Mode:
        """The mode of calls that do not name another."""
        return Mode.ANSI if self.ansi else Mode.LEGACY


class Function(StrEnum):
    """Names of functions that code speaks of, operators above all. Each is a row of the registry too."""

    # logic and comparisons
    AND = auto()
    OR = auto()
    NOT = auto()
    IS_NULL = auto()
    IS_NOT_NULL = auto()
    EQUAL = auto()
    EQUAL_NULL_SAFE = auto()
    LESS = auto()
    LESS_EQUAL = auto()
    GREATER = auto()
    GREATER_EQUAL = auto()
    IN = auto()
    # choices and casts
    COALESCE = auto()
    IF = auto()
    CASE = auto()
    GREATEST = auto()
    LEAST = auto()
    CAST = auto()
    # numbers
    ADD = auto()
    SUBTRACT = auto()
    MULTIPLY = auto()
    DIVIDE = auto()
    INTEGRAL_DIVIDE = auto()
    REMAINDER = auto()
    POSITIVE_REMAINDER = auto()
    NEGATE = auto()
    ABS = auto()
    # text
    LIKE = auto()
    PREFIX = auto()
    CONCAT = auto()
    # dates and times
    ADD_DAYS = auto()
    SUBTRACT_DAYS = auto()
    ADD_MONTHS = auto()
    ADD_MONTHS_TO_TIMESTAMP = auto()
    ADD_DAY_TIME = auto()
    SUBTRACT_DATES = auto()
    SUBTRACT_TIMESTAMPS = auto()
    INTERVAL_DAYS = auto()
    UNIX_MICROS = auto()
    MICROS_TO_TIMESTAMP = "timestamp_micros"

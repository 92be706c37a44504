"""The functions that skipping understands, and in which of Spark's modes a call of one is evaluated.

Names only: what a function does to sets of possible results is in `kernels`.
"""

from __future__ import annotations

from enum import Enum, StrEnum, auto

__all__ = ["Function", "Mode"]


class Mode(Enum):
    """What a call does where it has no result: an overflow, a division by zero, a cast that does not fit."""

    ANSI = "ansi"
    """It fails."""
    LEGACY = "legacy"
    """It wraps around or is null, as each function has it."""
    TRY = "try"
    """It is null."""
    UNKNOWN = "unknown"
    """Any of these: whoever made the expression could not tell."""

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


class Function(StrEnum):
    """What a `Call` calls, under one name whatever the front end's name for it."""

    # logic and nulls
    AND = auto()
    OR = auto()
    NOT = auto()
    IS_NULL = auto()
    IS_NOT_NULL = auto()
    IS_NAN = auto()
    COALESCE = auto()
    IF = auto()
    CASE = auto()
    TRY = auto()
    NANVL = auto()
    GREATEST = auto()
    LEAST = auto()
    # comparisons
    EQUAL = auto()
    EQUAL_NULL_SAFE = auto()
    LESS = auto()
    LESS_EQUAL = auto()
    GREATER = auto()
    GREATER_EQUAL = auto()
    IN = auto()
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
    SIGN = auto()
    CEIL = auto()
    FLOOR = auto()
    ROUND = auto()
    CAST = auto()
    # text
    STARTS_WITH = auto()
    ENDS_WITH = auto()
    CONTAINS = auto()
    LIKE = auto()
    PREFIX = auto()
    CONCAT = auto()
    LENGTH = auto()
    # dates and times
    YEAR = auto()
    QUARTER = auto()
    MONTH = auto()
    DAY = auto()
    DAY_OF_YEAR = auto()
    DAY_OF_WEEK = auto()
    WEEKDAY = auto()
    WEEK_OF_YEAR = auto()
    HOUR = auto()
    MINUTE = auto()
    SECOND = auto()
    TRUNC_DATE = auto()
    TRUNC_TIMESTAMP = auto()
    LAST_DAY = auto()
    ADD_DAYS = auto()
    SUBTRACT_DAYS = auto()
    DATE_DIFFERENCE = auto()
    ADD_MONTHS = auto()
    ADD_MONTHS_TO_TIMESTAMP = auto()
    ADD_DAY_TIME = auto()
    SUBTRACT_DATES = auto()
    SUBTRACT_TIMESTAMPS = auto()
    MONTHS_BETWEEN = auto()
    INTERVAL_DAYS = auto()
    UNIX_TIMESTAMP = auto()
    UNIX_SECONDS = auto()
    UNIX_MILLIS = auto()
    UNIX_MICROS = auto()
    SECONDS_TO_TIMESTAMP = auto()
    MILLIS_TO_TIMESTAMP = auto()
    MICROS_TO_TIMESTAMP = auto()
    DAYS_AS_NUMBER = auto()
    NUMBER_AS_DAYS = auto()
    FORMAT_UNIX_SECONDS = auto()
    FORMAT_TIMESTAMP = auto()
    FROM_UTC = auto()
    TO_UTC = auto()

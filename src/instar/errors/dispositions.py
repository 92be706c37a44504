"""The exit code and the HTTP status of every error, in one table."""

from __future__ import annotations

from dataclasses import dataclass

from instar.errors.base import InstarError
from instar.errors.conflict import ConflictError
from instar.errors.evolution import FencedError, IncompatibleSchemaError
from instar.errors.integrity import (
    CorruptTableError,
    CountOverflowError,
    NegativeCountError,
    SkippingViolationError,
)
from instar.errors.not_found import NotFoundError
from instar.errors.storage import (
    CommitOutcomeUnknownError,
    StorageDeniedError,
    StorageError,
    StorageTimeoutError,
)
from instar.errors.usage import InvalidEventError, UsageError

__all__ = ["DISPOSITIONS", "Disposition", "disposition"]


@dataclass(frozen=True)
class Disposition:
    """The exit code of a process and the status of an HTTP answer."""

    exit_code: int
    http_status: int


DISPOSITIONS: dict[type[InstarError], Disposition] = {
    InstarError: Disposition(70, 500),
    UsageError: Disposition(2, 400),
    InvalidEventError: Disposition(2, 422),
    NotFoundError: Disposition(3, 404),
    ConflictError: Disposition(4, 409),
    IncompatibleSchemaError: Disposition(5, 422),
    FencedError: Disposition(6, 412),
    CommitOutcomeUnknownError: Disposition(7, 504),
    CorruptTableError: Disposition(8, 500),
    NegativeCountError: Disposition(10, 500),
    CountOverflowError: Disposition(10, 500),
    SkippingViolationError: Disposition(11, 500),
    StorageError: Disposition(9, 503),
    StorageDeniedError: Disposition(9, 403),
    StorageTimeoutError: Disposition(9, 504),
}


def disposition(error: InstarError | type[InstarError]) -> Disposition:
    """Return the exit code and HTTP status of an error: its own, or its nearest ancestor's."""
    kind = error if isinstance(error, type) else type(error)
    return next(DISPOSITIONS[base] for base in kind.__mro__ if base in DISPOSITIONS)

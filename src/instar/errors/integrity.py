"""Errors that say stop: stored bytes, counts or proofs are not what they must be."""

from __future__ import annotations

from instar.errors.base import InstarError

__all__ = [
    "AdoptedFileError",
    "CorruptTableError",
    "CountOverflowError",
    "NegativeCountError",
    "SkippingViolationError",
]


class CorruptTableError(InstarError):
    """A stored object is not what was written, or `missing`; nothing is guessed from it."""

    code = "corrupt-table"

    def __init__(self, what: str, why: str, *, missing: bool = False) -> None:
        self.what = what
        self.why = why
        self.missing = missing
        super().__init__(
            f"{what} is corrupt: {why}. Restore this object from a backup; instar will not guess."
        )


class AdoptedFileError(CorruptTableError):
    """A file that a table has adopted is missing, or is not the file that was adopted."""

    code = "adopted-file"

    def __init__(self, location: str, why: str, *, missing: bool = False) -> None:
        self.what = location
        self.why = why
        self.missing = missing
        super(CorruptTableError, self).__init__(
            f"cannot read the adopted file {location}: {why}. Put the file back as it was: the table has no "
            "other copy of its rows."
        )


class NegativeCountError(InstarError):
    """A row was retracted more often than it was added, so there is no right snapshot."""

    code = "negative-count"

    def __init__(self, row: str, count: int | None) -> None:
        self.row = row
        self.count = count
        known = "less than 0" if count is None else count
        super().__init__(
            f"a row was retracted more often than it was added: its count is {known}. Find out who retracted "
            f"it, and add it back. The row: {row}"
        )


class CountOverflowError(InstarError):
    """The diffs of a row add up to more than 2^40, more copies than a snapshot can show."""

    code = "count-overflow"

    def __init__(self, row: str, count: int | None) -> None:
        self.row = row
        self.count = count
        known = "a number" if count is None else count
        super().__init__(
            f"the diffs of a row add up to {known}, and a snapshot shows a row at most 2^40 times. Find out "
            f"who wrote such large diffs, and retract the surplus. The row: {row}"
        )


class SkippingViolationError(InstarError):
    """A part was skipped although one of its rows matches: the statistics or the proof are wrong."""

    code = "skipping-violation"

    def __init__(self, table: str, part: str, condition: str, bounds: str, row: str) -> None:
        self.table = table
        self.part = part
        self.condition = condition
        self.bounds = bounds
        self.row = row
        super().__init__(
            f"`{table}` must not skip part {part} for {condition}: {bounds}, but the part has {row}. Set its "
            "option skipping to 'off', which reads everything, and report this: no query may miss a row."
        )

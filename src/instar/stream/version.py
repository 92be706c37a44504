"""`Version`: a schema version such as `v0.0.6001`, which is text that compares as numbers do."""

from __future__ import annotations

import re
from functools import total_ordering
from typing import Final

from instar.errors import UsageError

__all__ = ["Version", "as_version"]

_FORM: Final = re.compile(r"v?(\d{1,18}(?:\.\d{1,18}){0,7})", re.ASCII)
_FEWEST: Final = 3


@total_ordering
class Version(str):
    """A version in its one form: `v` and at least three numbers. `v0.0.9` is less than `v0.0.10`."""

    __slots__ = ("numbers",)
    numbers: tuple[int, ...]

    def __new__(cls, numbers: tuple[int, ...]) -> Version:  # noqa: PYI034 -- a `str` is made here, not filled in
        """Make the text of some numbers; zeros at the end say nothing."""
        while len(numbers) > _FEWEST and not numbers[-1]:
            numbers = numbers[:-1]
        padded = (*numbers, *(0,) * (_FEWEST - len(numbers)))
        made = super().__new__(cls, "v" + ".".join(str(number) for number in padded))
        made.numbers = padded
        return made

    def __lt__(self, other: str) -> bool:
        return self.numbers < as_version(other).numbers

    def __le__(self, other: str) -> bool:
        return self.numbers <= as_version(other).numbers

    def __gt__(self, other: str) -> bool:
        return self.numbers > as_version(other).numbers

    def __ge__(self, other: str) -> bool:
        return self.numbers >= as_version(other).numbers

    __hash__ = str.__hash__


def as_version(given: str) -> Version:
    """Read a version: one to eight numbers with dots between them, with or without `v`."""
    if isinstance(given, Version):
        return given
    match = _FORM.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        raise UsageError(f"{given!r} is not a schema version: write numbers with dots, such as v0.0.6001")
    return Version(tuple(int(number) for number in match[1].split(".")))

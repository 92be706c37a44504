"""The options of a table: what each may be. A store and a query may choose the same ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from instar.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from instar.state.commits import ConfigValue

__all__ = ["OPTIONS", "check_options", "parse_duration"]

_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(\d{1,9})(ms|s|m|h|d)", re.ASCII)


class Choice(NamedTuple):
    """One of a few words."""

    words: tuple[str, ...]

    def accepts(self, value: ConfigValue) -> bool:
        return value in self.words

    def __str__(self) -> str:
        return f"one of {', '.join(self.words)}"


class Number(NamedTuple):
    """A number up to a limit, whole or not."""

    most: int
    whole: bool = False

    def accepts(self, value: ConfigValue) -> bool:
        kinds = int if self.whole else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool) and 0 <= value <= self.most

    def __str__(self) -> str:
        return f"a {'whole ' if self.whole else ''}number from 0 to {self.most}"


class Duration(NamedTuple):
    """A number with a unit of time, or off."""

    def accepts(self, value: ConfigValue) -> bool:
        return value == "off" or (isinstance(value, str) and _DURATION.fullmatch(value) is not None)

    def __str__(self) -> str:
        return "a duration such as 36h or 7d, or off"


OPTIONS: Final[Mapping[str, Choice | Number | Duration]] = {
    "skipping": Choice(("off", "audit", "on")),
    "skipping_sample": Number(100),
    "skipping_budget": Number(2**62, whole=True),
    "retention": Duration(),
}
"""By name: whether parts are skipped; percent of skipped parts that are checked; bytes for such checks; how
long history is kept."""


def check_options(options: Mapping[str, ConfigValue | None]) -> Mapping[str, ConfigValue | None]:
    """Return options as they are; one that does not exist or cannot have its value is refused."""
    for option, value in options.items():
        allowed = OPTIONS.get(option)
        if allowed is None:
            raise UsageError(f"there is no table option {option!r}: the options are {', '.join(OPTIONS)}")
        if value is not None and not allowed.accepts(value):
            raise UsageError(f"option {option!r} cannot be {value!r}: it is {allowed}")
    return options


def parse_duration(text: str) -> int:
    """Read a duration such as `90s`, `24h` or `7d`, and return milliseconds."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"{text!r} is not a duration: write a number and a unit, such as 90s, 30m, 24h or 7d"
        )
    return int(match[1]) * _UNITS[match[2]]

"""The options of a table: what each may be. A store and a query may choose the same ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from instar.durations import is_duration
from instar.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from instar.state.commits import ConfigValue

__all__ = [
    "CLUSTER_BY",
    "MOST_CLUSTERED",
    "OPTIONS",
    "STATS",
    "Fields",
    "check_options",
    "format_fields",
    "parse_fields",
]

_FIELDS: Final = re.compile(r"\d{1,9}(,\d{1,9})*", re.ASCII)


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
        return value == "off" or (isinstance(value, str) and is_duration(value))

    def __str__(self) -> str:
        return "a duration such as 36h or 7d, or off"


class Fields(NamedTuple):
    """A few columns. They are kept by the ids of their fields, which stay when a column is renamed."""

    most: int

    def accepts(self, value: ConfigValue) -> bool:
        """Whether a value names fields as they are kept, and no more than these."""
        fields = isinstance(value, str) and _FIELDS.fullmatch(value) is not None
        return fields and len(parse_fields(value)) <= self.most

    def __str__(self) -> str:
        return f"a list of at most {self.most} columns"


CLUSTER_BY: Final = "cluster_by"
MOST_CLUSTERED: Final = 8
"""A curve over more fields than this would cluster none of them well."""

STATS: Final = "stats"
MOST_STATS: Final = 100
"""Statistics of more fields than this would make the metadata of a part larger than it may be."""

OPTIONS: Final[Mapping[str, Choice | Number | Duration | Fields]] = {
    "skipping": Choice(("off", "audit", "on")),
    "skipping_sample": Number(100),
    "skipping_budget": Number(2**62, whole=True),
    "retention": Duration(),
    CLUSTER_BY: Fields(MOST_CLUSTERED),
    STATS: Fields(MOST_STATS),
    "compact": Choice(("off", "auto")),
    "cluster_at": Choice(("compaction", "append")),
    "queries": Choice(("on", "off")),
}
"""By name: whether parts are skipped; percent of skipped parts that are checked; bytes for such checks; how
long history is kept; the fields that rows are laid out by along a curve, and those that always have
statistics; when rows are laid out first; whether writers merge small parts in the
background; whether the last conditions are recorded."""


def format_fields(field_ids: Iterable[int]) -> str:
    """Return fields as an option has them."""
    return ",".join(map(str, field_ids))


def parse_fields(option: ConfigValue) -> tuple[int, ...]:
    """Return the ids of the fields that an option names."""
    return tuple(map(int, str(option).split(","))) if option else ()


def check_options(options: Mapping[str, ConfigValue | None]) -> Mapping[str, ConfigValue | None]:
    """Return options as they are; one that does not exist or cannot have its value is refused."""
    for option, value in options.items():
        allowed = OPTIONS.get(option)
        if allowed is None:
            raise UsageError(f"there is no table option {option!r}: the options are {', '.join(OPTIONS)}")
        if value is not None and not allowed.accepts(value):
            raise UsageError(f"option {option!r} cannot be {value!r}: it is {allowed}")
    return options

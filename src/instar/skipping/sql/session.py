"""What the meaning of a SQL text depends on, besides the text and the schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from instar.skipping.expression import Expression
from instar.skipping.functions import Mode

__all__ = ["Maker", "Session"]


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


Maker = Callable[[list[Expression], Session], Expression | None]
"""What turns the arguments of a call by name into an expression, or gives up."""

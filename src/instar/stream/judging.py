"""Whether a query over a range of tables notices that some have an older schema of the stream.

The evolver asks a `Judge`; which rules it follows is the caller's choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from instar.schema import History, Kind

if TYPE_CHECKING:
    from instar.schema import Schema

__all__ = ["Judge", "Judgement", "SchemaJudge"]


class Judgement(NamedTuple):
    """Whether queries see no difference, and if they do, what it is."""

    compatible: bool
    reasons: tuple[str, ...] = ()


class Judge(Protocol):
    """Judges pairs of schemas. When `rules` changes, older judgements are not believed any more."""

    @property
    def rules(self) -> str:
        """The name and version of the rules."""

    def judge(self, old: Schema, new: Schema) -> Judgement:
        """Judge a table of an old schema beside one of a new schema."""


_UNNOTICED: Final = frozenset({Kind.MADE_NULLABLE})


class SchemaJudge:
    """Judges by names and types: a query notices every difference but that a column may be null."""

    rules = "schema-1"

    def judge(self, old: Schema, new: Schema) -> Judgement:
        """Judge by what the rules of evolution call the changes."""
        noticed = [change for change in History.start(old).compare(new) if change.kind not in _UNNOTICED]
        return Judgement(not noticed, tuple(f"`{change.path}` {change.summary}" for change in noticed))

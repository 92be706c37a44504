"""Whether a query over a range of tables notices that some have an older schema of the stream.

The evolver asks a `Judge`; which rules it follows is the caller's choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from instar.compat import RULES_VERSION, ColumnsVersion, Level, judge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from instar.compat import Judgement
    from instar.schema import Schema

__all__ = ["EveryChange", "Judge", "QueryJudge", "TableJudgement"]


class TableJudgement(NamedTuple):
    """Whether queries see no difference, and if they do, what it is."""

    compatible: bool
    reasons: tuple[str, ...] = ()


class Judge(Protocol):
    """Judges pairs of schemas. When `rules` changes, older judgements are not used any more."""

    @property
    def rules(self) -> str:
        """The name and version of the rules."""

    def judge(self, old: Schema, new: Schema) -> TableJudgement:
        """Judge a table of an old schema beside one of a new schema."""


class QueryJudge:
    """Judges as the compatibility check does: would a query over tables of both schemas notice?"""

    rules = f"query-{RULES_VERSION}"

    def judge(self, old: Schema, new: Schema) -> TableJudgement:
        """Judge two schemas whose fields have the same ids."""
        found = judge(ColumnsVersion(old, by_id=True), ColumnsVersion(new, by_id=True))
        return TableJudgement(found.query_compatible, tuple(_reasons(found)))


class EveryChange:
    """Skips no table, even if only its version is behind."""

    rules = "every-change"

    def judge(self, old: Schema, new: Schema) -> TableJudgement:
        """Say that it is noticed."""
        what = "its version is older" if old == new else "it is another schema"
        return TableJudgement(compatible=False, reasons=(what,))


def _reasons(found: Judgement) -> Iterator[str]:
    for difference in found.differences:
        if difference.query is not None and difference.query.level is not Level.SAFE:
            yield f"`{difference.path}` {difference.what}: {difference.query.reason}"

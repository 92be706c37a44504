"""The walk of a pass: which tables are stale, and whether anybody would notice. It reads no table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.stream.evolution import Queued, is_stale
from instar.stream.kinds import EVOLVED_IN_ORDER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from instar.stream.catalog import Catalog
    from instar.stream.evolution import EvolverState
    from instar.stream.judging import Judge

__all__ = ["Verdicts", "stale_tables"]


def stale_tables(catalog: Catalog, evolution: EvolverState, rules: str) -> tuple[Queued, ...]:
    """Return the tables that may be behind the stream: kind by kind in order, the newest first.

    If the target is that of the last pass, those are the tables that came since, and those that it failed on
    or did not find; unless it left some as they are by other rules.
    """
    again = {letter.table.name for letter in evolution.dead}.union(evolution.absent)
    is_known = evolution.aims_at(catalog) and evolution.failed <= len(evolution.dead)
    is_known &= evolution.is_judged(rules)
    settled = evolution.settled if is_known else 0
    return tuple(
        Queued(record.kind, record.name)
        for record in catalog.tables_of(EVOLVED_IN_ORDER, newest_first=True)
        if record.name in again
        or (record.number >= settled and is_stale(record.version, record.schema_id, catalog))
    )


class Verdicts:
    """What was judged about the stream's older schemas beside its latest one; each pair is judged once."""

    def __init__(self, catalog: Catalog, judge: Judge, known: Mapping[str, bool]) -> None:
        self._catalog = catalog
        self._judge = judge
        self._suffix = f">{catalog.schema_id} {judge.rules}"
        self.known = {pair: verdict for pair, verdict in known.items() if pair.endswith(self._suffix)}

    def compatible(self, schema_id: int) -> bool:
        """Whether a query notices nothing of a table that has an older schema."""
        pair = f"{schema_id}{self._suffix}"
        if pair not in self.known:
            schemas = self._catalog.history.schemas
            self.known[pair] = self._judge.judge(schemas[schema_id], self._catalog.schema).compatible
        return self.known[pair]

    def all_compatible(self) -> bool:
        """Whether a query would notice nothing of any schema that a table may have."""
        return all(self.compatible(schema_id) for schema_id in range(self._catalog.schema_id + 1))

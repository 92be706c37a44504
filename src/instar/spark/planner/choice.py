"""`PartChoice`: the parts that one place of a plan reads, as metadata chose them, and what is asked of them.

Java asks by one method, in JSON: for files, for what a join leaves of the parts, for the answer to an
aggregation, or for the parts that a few rows are in.
"""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar, Final

from instar.errors import UsageError
from instar.skipping import Conjunct
from instar.spark.native.filters import Filters
from instar.spark.native.relay import relayed
from instar.spark.native.scan_source import Chosen
from instar.spark.planner.answers import find_answers
from instar.spark.planner.guards import fall_back
from instar.spark.planner.numbered import Numbered
from instar.state.retractions import encode_bitmap
from instar.table.read.answers import Order, first_parts, top_parts
from instar.table.read.audit import Skipping

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from instar.spark.planner.table import PlannedTable
    from instar.table.read.report import ScanReport

__all__ = ["PartChoice"]

_LONGEST: Final = 200


class PartChoice(Numbered):
    """Parts of a table. `joins` are the conditions that left no more of them, when they ran."""

    def __init__(
        self,
        table: PlannedTable,
        chosen: Chosen,
        filters: Filters,
        *,
        joins: tuple[Conjunct, ...] | None = None,
        decided: bool = False,
    ) -> None:
        super().__init__()
        self._table = table
        self._chosen = chosen
        self._filters = filters
        self._joins = joins
        self._decided = decided
        """Whether more than filters chose the parts."""

    def to_java(self, *, proved: bool = False) -> Any:  # noqa: ANN401 -- a Java object
        """Return what Spark's planner has to know of the parts; `proved` if no row has to be looked at."""
        parts = self._chosen.parts
        digest = blake2b(parts.mask.tobytes(), digest_size=16).hexdigest() if proved or self._decided else ""
        sizes = str(parts.bytes), str(parts.row_count), len(parts)
        return self._table.planner.choice(self, self.number, *sizes, proved, digest)

    def report(self) -> ScanReport:
        """Report on the parts that the filters need, and on what joins left of them when they last ran."""
        report = self._table.source.report(self._filters)
        if self._joins is None and not self._decided:
            return report
        parts = self._chosen.parts
        return replace(report, read=len(parts), bytes_read=parts.bytes, joins=self._joins or ())

    @relayed
    def apply(self, question: str, live: Any) -> Any:  # noqa: ANN401 -- answers a question of Java's
        """Answer a question; `live` are the expressions that it is about."""
        asked = json.loads(question)
        kind, _, texts = asked["kind"].partition(" ")
        settings = asked.get("settings", {})
        if kind in ("files", "check"):
            return self._files(settings, listed=kind == "files")
        if kind == "prune":
            return self._prune(asked, live, texts.split("\0"))
        if kind == "lost":
            return self._lose(str(live))
        if self._table.policy(settings).mode is not Skipping.ON:
            return None  # metadata is not believed for more than skipping
        source = self._table.source
        if kind == "answer":
            source.check_fence()
            fields = self._table.fields
            found = find_answers(
                source.chunks,
                source.plan.state,
                self._chosen.parts,
                fields,
                asked["groups"],
                asked["functions"],
            )
            if found is not None:  # check whether parts were rightly skipped, some of them
                self._chosen.check()
            return found
        return self._first(asked) if kind == "limit" else self._top(asked)

    def _files(self, settings: Mapping[str, str], *, listed: bool) -> bytes:
        """Check what is about to be read, and return it: the length of a list in JSON, the list, and bitmaps.

        In the list are by turns a path, a size, and if they are needed the number of the part and the length
        of the bitmap of its retracted rows.
        """
        source = self._table.source
        source.check_session(settings)
        source.check()
        self._chosen.check()
        if not listed:
            return b""
        parts = self._chosen.parts
        files = [file for group in source.groups(parts) for file in group.files]
        taken: dict[int, bytes] = {}
        numbers: Sequence[int | None] = [None] * len(files)
        if self._table.less:
            taken = {at: encode_bitmap(own) for at, own in sorted(parts.positions.items())}
            numbers = source.numbers(parts)
        told = [
            item
            for at, (file, number) in enumerate(zip(files, numbers, strict=True))
            for item in (*file, number, len(taken.get(at, b"")))
        ]
        head = json.dumps(told).encode()
        return b"".join((struct.pack(">i", len(head)), head, *taken.values()))

    def _prune(self, asked: Mapping[str, Any], live: Any, texts: Sequence[str]) -> Any:  # noqa: ANN401
        """Return what is left of the parts by what joins and subqueries have found out."""
        source, chosen = self._table.source, self._chosen
        policy = self._table.policy(asked["settings"])
        checks, told = [self._chosen.check], []
        for at, text in enumerate(texts):
            one = self._table.gateway.seq([live.apply(at)])
            told_of = ([asked["filters"][at]], asked["zone"], [asked["modes"][at]])
            filters = Filters.told(self._table.gateway, one, *told_of)
            before = len(chosen.parts)
            chosen = source.choose(source.plan, filters, chosen.parts, policy)
            checks.append(chosen.check)
            short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
            told.append(Conjunct(self._table.told(short), before - len(chosen.parts)))
        left = Chosen(chosen.parts, partial(_check_all, checks))
        joins = (*(self._joins or ()), *told)
        return PartChoice(self._table, left, self._filters, joins=joins).to_java()

    def _first(self, asked: Mapping[str, str]) -> Any:  # noqa: ANN401 -- a Java object
        parts = first_parts(self._chosen.parts, int(asked["rows"]))
        return self._decide(self._chosen._replace(parts=parts))

    def _top(self, asked: Mapping[str, str]) -> Any:  # noqa: ANN401 -- a Java object
        field = self._table.fields.get(asked["column"])
        if field is None:
            return None
        source, order = (
            self._table.source,
            Order(asked["ascending"] == "true", asked["nulls_first"] == "true"),
        )
        parts = top_parts(
            source.chunks, source.plan.state, self._chosen.parts, field, order, int(asked["rows"])
        )
        return self._decide(self._chosen._replace(parts=parts))

    def _decide(self, chosen: Chosen) -> Any:  # noqa: ANN401 -- a Java object
        return PartChoice(self._table, chosen, self._filters, decided=True).to_java()

    def _lose(self, why: str) -> None:
        fall_back(self._table.gateway, why)
        raise UsageError(
            f"cannot read `{self._table.label}` with Spark's planner: {why}. Make the frame again: it is "
            "read over files then, as with instar.planner set to files"
        )

    class Java:
        """What Java takes this for."""

        implements: ClassVar = ["java.util.function.BiFunction"]


def _check_all(checks: Sequence[Callable[[], None]]) -> None:
    for check in checks:
        check()

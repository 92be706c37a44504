"""Judging: one version against another, one against all that are alive, and judgements kept for next time.

Compatibility does not carry over: old to middle and middle to new may both be fine, and old to new not. So a
new version is judged against every version that some table still holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

import msgspec

from instar.compat.avro import AvroVersion, compare_avro
from instar.compat.columns import ColumnsVersion, compare_columns
from instar.compat.json_schema import JsonSchemaVersion, compare_json_schema
from instar.compat.judgement import RULES_VERSION, Difference, Judgement, Level
from instar.compat.protobuf import ProtobufVersion, compare_protobuf, tables
from instar.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from instar.schema import Field

__all__ = ["Judgements", "Version", "judge"]

Version = Union[ProtobufVersion, AvroVersion, JsonSchemaVersion, ColumnsVersion]  # noqa: UP007 -- as elsewhere


def judge(old: Version, new: Version) -> Judgement:
    """Judge the step from one version to another, whatever formats they are in.

    Between different formats there is no wire to judge, and columns are compared by name.
    """
    match old, new:
        case ProtobufVersion(), ProtobufVersion():
            found, has_wire = compare_protobuf(old, new), True
        case AvroVersion(), AvroVersion():
            found, has_wire = compare_avro(old, new), True
        case JsonSchemaVersion(), JsonSchemaVersion():
            found, has_wire = compare_json_schema(old, new), True
        case _:
            found, has_wire = tuple(_compare_tables(old, new)), False
    return Judgement(old.fingerprint, new.fingerprint, RULES_VERSION, has_wire, found)


def _compare_tables(old: Version, new: Version) -> Iterator[Difference]:
    by_id = isinstance(old, ColumnsVersion) and isinstance(new, ColumnsVersion) and old.by_id and new.by_id
    before, after = _tables(old), _tables(new)
    if len(before) == len(after) == 1:
        [(old_fields, new_fields)] = zip(before.values(), after.values(), strict=True)
        yield from compare_columns(old_fields, new_fields, by_id=by_id)
        return
    several = ", ".join(name for name in (*before, *after) if name)
    raise UsageError(f"one of the versions has several messages: choose one as message: {several}")


def _tables(version: Version) -> dict[str, tuple[Field, ...]]:
    return tables(version) if isinstance(version, ProtobufVersion) else version.tables()


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """A judgement without its reasons: small enough to be kept for every pair of versions."""

    old: str
    new: str
    rules: int
    wire: Level | None
    query: Level
    semantic: Level

    @classmethod
    def of(cls, judgement: Judgement) -> Answer:
        """Keep the answers of a judgement."""
        wire, query, semantic = judgement.wire, judgement.query, judgement.semantic
        return cls(judgement.old, judgement.new, judgement.rules, wire, query, semantic)

    @property
    def query_compatible(self) -> bool:
        """Whether no query over tables of both versions can notice."""
        return self.query is Level.SAFE


class Judgements(msgspec.Struct, frozen=True):
    """Answers kept by (old, new, version of the rules): a value to store, and to ask again.

    The newest come last. Answers by other rules are never used; `limit` bounds how many are kept.
    """

    answers: tuple[Answer, ...] = ()
    limit: int = 10_000

    def find(self, old: str, new: str) -> Answer | None:
        """Return the kept answer for two fingerprints, if the rules are still the same."""
        return next(
            (it for it in self.answers if (it.old, it.new, it.rules) == (old, new, RULES_VERSION)), None
        )

    def judge(self, old: Version, new: Version) -> tuple[Answer, Judgements]:
        """Answer from what is kept, or judge and keep."""
        kept = self.find(old.fingerprint, new.fingerprint)
        if kept is not None:
            return kept, self
        answer = Answer.of(judge(old, new))
        current = (it for it in self.answers if it.rules == RULES_VERSION)
        return answer, msgspec.structs.replace(self, answers=(*current, answer)[-self.limit :])

    def judge_all(self, alive: Iterable[Version], new: Version) -> tuple[tuple[Answer, ...], Judgements]:
        """Judge a new version against every version that a table holds."""
        kept, answers = self, []
        for old in alive:
            answer, kept = kept.judge(old, new)
            answers.append(answer)
        return tuple(answers), kept

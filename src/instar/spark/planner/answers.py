"""Answers to aggregations from metadata, as rows that Spark is told.

What the answers are is in `instar.table.read.answers`; here are their types, and how they are written.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from instar.schema.spark import type_json
from instar.spark.native.relation import field_json, struct_json
from instar.table.read.answers import Extreme, Question, Unknown, answer_count, answer_extreme, answer_groups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from instar.schema import Field
    from instar.state import TableState
    from instar.table.log.manifest import ChunkReader
    from instar.table.log.part_set import PartSet

__all__ = ["find_answers"]


def find_answers(
    chunks: ChunkReader,
    state: TableState,
    parts: PartSet,
    fields: Mapping[str, Field],
    groups: Sequence[str],
    functions: Sequence[str],
) -> str | None:
    """Return the answers as JSON, groups first; None if metadata does not have one of them.

    A function is `count`, or `count`, `min` or `max` with the name of a column after it.
    """
    if not {*groups, *(own.partition(" ")[2] for own in functions)} <= {"", *fields}:
        return None
    keys = [fields[name] for name in groups]
    questions = [_question(fields, function) for function in functions]
    rows = (
        answer_groups(chunks, state, parts, keys, questions)
        if keys
        else [tuple(_answer(chunks, state, parts, own) for own in questions)]
    )
    if isinstance(rows, Unknown) or any(isinstance(value, Unknown) for row in rows for value in row):
        return None
    columns = [field_json(f"group_{at}", type_json(key.type)) for at, key in enumerate(keys)]
    columns += [field_json(f"answer_{at}", _type(own)) for at, own in enumerate(questions)]
    told = [[_text(value) for value in row] for row in rows]
    return json.dumps({"schema": struct_json(columns), "rows": told})


def _question(fields: Mapping[str, Field], function: str) -> Question:
    kind, _, name = function.partition(" ")
    return Question(fields.get(name), None if kind == "count" else Extreme(kind))


def _answer(chunks: ChunkReader, state: TableState, parts: PartSet, question: Question) -> Any:  # noqa: ANN401 -- a value of any type, or `Unknown`
    if question.field is None:
        return parts.row_count
    if question.extreme is None:
        return answer_count(chunks, state, parts, question.field)
    return answer_extreme(chunks, state, parts, question.field, question.extreme)


def _type(question: Question) -> Any:  # noqa: ANN401 -- a type as JSON
    if question.field is None or question.extreme is None:
        return "long"
    return type_json(question.field.type)


def _text(value: Any) -> str | None:  # noqa: ANN401 -- any value
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value).replace("nan", "NaN").replace("inf", "Infinity")
    return str(value)

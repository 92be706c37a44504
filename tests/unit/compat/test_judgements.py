"""Judgements are values that can be kept, and what is kept is never believed under other rules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest

from instar.compat import (
    ColumnsVersion,
    Judgements,
    Level,
    judge,
    load_version,
    parse_avro,
    parse_json_schema,
)
from instar.schema import Field, Primitive, Schema, as_schema

if TYPE_CHECKING:
    from pathlib import Path


def columns(ddl: str) -> ColumnsVersion:
    """Return a version given as columns."""
    return ColumnsVersion(as_schema(ddl))


def test_an_answer_is_kept_and_found_again() -> None:
    """Asking again judges nothing, and the value survives being stored."""
    old, new = columns("a int"), columns("a bigint, b string")
    answer, kept = Judgements().judge(old, new)
    assert (answer.query, answer.wire, answer.query_compatible) == (Level.SAFE, None, True)
    stored = msgspec.json.decode(msgspec.json.encode(kept), type=Judgements)
    assert stored == kept
    assert stored.judge(old, new) == (answer, stored)
    assert stored.find(new.fingerprint, old.fingerprint) is None


def test_answers_by_other_rules_are_not_believed() -> None:
    """When the rules change, everything is judged anew, and old answers go."""
    old, new = columns("a int"), columns("a string")
    answer, kept = Judgements().judge(old, new)
    lie = msgspec.structs.replace(answer, rules=answer.rules - 1, query=Level.SAFE)
    before = msgspec.structs.replace(kept, answers=(lie,))
    assert before.find(old.fingerprint, new.fingerprint) is None
    again, after = before.judge(old, new)
    assert (again, after.answers) == (answer, (answer,))


def test_only_so_many_answers_are_kept() -> None:
    """The oldest answers go first."""
    kept = Judgements(limit=2)
    versions = [columns(f"a{at} int") for at in range(4)]
    _, kept = kept.judge_all(versions[:3], versions[3])
    assert [answer.old for answer in kept.answers] == [it.fingerprint for it in versions[1:3]]


def test_compatibility_does_not_carry_over() -> None:
    """Each step can be safe and both together not, so every version that is alive is asked."""
    versions = [columns("a int, b string"), columns("b string"), columns("a string, b string")]
    assert judge(versions[0], versions[1]).query_compatible
    assert judge(versions[1], versions[2]).query_compatible
    assert not judge(versions[0], versions[2]).query_compatible
    answers, _ = Judgements().judge_all(versions[:2], versions[2])
    assert [answer.query_compatible for answer in answers] == [False, True]


def test_ids_tell_a_rename_from_a_new_column() -> None:
    """Without ids, a column that went and one that came leave a doubt; with them, there is none."""
    old, new = (Schema((Field(1, name, Primitive("int")),)) for name in ("a", "b"))
    by_id = judge(ColumnsVersion(old, by_id=True), ColumnsVersion(new, by_id=True))
    assert (by_id.query, by_id.semantic) == (Level.UNSAFE, Level.UNSAFE)
    by_name = judge(ColumnsVersion(old), ColumnsVersion(new))
    assert (by_name.query, by_name.semantic) == (Level.SAFE, Level.CONDITIONAL)


@pytest.mark.parametrize(
    ("old", "new", "query"),
    [
        ("a int, s struct<x: int, y: int>", "a int, s struct<y: int, x: int>", "conditional"),
        ("a int, b int", "b int, a int", "conditional"),
        ("a int", "a int not null", "unsafe"),
        ("a int not null", "a int", "safe"),
        ("a int", "a int, b int not null", "unsafe"),
        ("m map<int, int>", "m map<bigint, int>", "unsafe"),
        ("m map<int, int>", "m map<int, bigint>", "safe"),
        ("a decimal(5,2)", "a decimal(7,3)", "safe"),
        ("a decimal(7,3)", "a decimal(5,2)", "unsafe"),
        ("A int", "a int", "safe"),
    ],
)
def test_columns_are_judged_as_tables_evolve(old: str, new: str, query: str) -> None:
    """Order, nulls, keys and types inside are looked at."""
    assert judge(columns(old), columns(new)).query.value == query


def avro(*fields: object, name: str = "R") -> str:
    """Return an Avro record."""
    return json.dumps({"type": "record", "name": name, "fields": fields})


@pytest.mark.parametrize(
    ("old", "new", "wire", "semantic"),
    [
        ({"name": "a", "type": "int"}, {"name": "a", "type": "long"}, "safe", "safe"),
        ({"name": "a", "type": "long"}, {"name": "a", "type": "double"}, "conditional", "safe"),
        ({"name": "a", "type": "int"}, {"name": "b", "type": "int", "aliases": ["a"]}, "safe", "unsafe"),
        ({"name": "a", "type": "int"}, {"name": "b", "type": "int"}, "unsafe", "conditional"),
        ({"name": "a", "type": "int"}, {"name": "a", "type": ["null", "int"]}, "safe", "safe"),
        ({"name": "a", "type": ["null", "int"]}, {"name": "a", "type": "int"}, "unsafe", "safe"),
        (
            {"name": "a", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "a", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            "unsafe",
            "safe",
        ),
    ],
)
def test_avro_is_resolved_as_its_readers_do(old: object, new: object, wire: str, semantic: str) -> None:
    """Promotions, aliases, unions and logical types."""
    judgement = judge(parse_avro(avro(old)), parse_avro(avro(new)))
    assert judgement.wire is not None
    assert (judgement.wire.value, judgement.semantic.value) == (wire, semantic)


def test_documents_are_open_unless_they_say_so() -> None:
    """A new property is safe only if old documents cannot have it already."""
    for closed, wire in ((False, Level.CONDITIONAL), (True, Level.SAFE)):
        old = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": not closed}
        new = {**old, "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
        judgement = judge(parse_json_schema(json.dumps(old)), parse_json_schema(json.dumps(new)))
        assert (judgement.wire, judgement.query) == (wire, Level.SAFE)


def test_formats_can_be_compared_by_their_columns() -> None:
    """Between formats there is no wire to judge."""
    judgement = judge(parse_avro(avro({"name": "a", "type": ["null", "int"]})), columns("a bigint"))
    assert (judgement.wire, judgement.wire_safe, judgement.query_compatible) == (None, True, True)


@pytest.mark.parametrize(
    ("old", "new", "wire"),
    [
        ('syntax = "proto2"', 'syntax = "proto3"', Level.CONDITIONAL),
        ('syntax = "proto3"', 'syntax = "proto2"', Level.SAFE),
        ('syntax = "proto2"', 'edition = "2023"', Level.CONDITIONAL),
        ('edition = "2023"', 'syntax = "proto3"', Level.SAFE),
        ('edition = "2023"; option features.utf8_validation = NONE', 'syntax = "proto3"', Level.CONDITIONAL),
    ],
)
def test_strings_that_need_not_be_utf8_may_not_be_readable(
    old: str, new: str, wire: Level, tmp_path: Path
) -> None:
    """proto2 lets any bytes be a string, and proto3 does not; editions say it for themselves."""
    versions = []
    for name, head in (("old", old), ("new", new)):
        label = "" if head.startswith("edition") else "optional "
        (tmp_path / f"{name}.proto").write_text(f"{head};\nmessage A {{ {label}string a = 1; }}\n")
        versions.append(load_version(str(tmp_path / f"{name}.proto")))
    assert judge(*versions).wire is wire

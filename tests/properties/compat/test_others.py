"""What is judged safe for Avro and JSON Schema is safe: fastavro reads it, and jsonschema accepts it."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import jsonschema
from hypothesis import given, note, settings
from hypothesis import strategies as st

from instar.compat import Level, judge, parse_avro, parse_json_schema

PLAIN = ["int", "long", "float", "double", "string", "bytes", "boolean"]
VALUES: dict[str, list[Any]] = {
    "int": [0, -1, 2**31 - 1],
    "long": [0, 2**62 + 1],
    "float": [0.5],
    "double": [1e300],
    "string": ["", "é"],
    "bytes": [b"\xff", b"a"],
    "boolean": [True, False],
}
MANY = settings(max_examples=4 * settings().max_examples)


def enum(symbols: tuple[str, ...], default: str | None) -> dict[str, Any]:
    """Return an Avro enum."""
    given = {"type": "enum", "name": "E", "symbols": list(symbols)}
    return given if default is None else {**given, "default": symbols[0]}


AVRO_TYPES = st.recursive(
    st.sampled_from(PLAIN)
    | st.builds(enum, st.sampled_from([("A",), ("A", "B"), ("B", "C")]), st.sampled_from([None, "first"])),
    lambda inner: (
        st.builds(lambda it: {"type": "array", "items": it}, inner)
        | st.builds(lambda it: {"type": "map", "values": it}, inner)
        | st.sampled_from(PLAIN).map(lambda it: ["null", it])
        | st.lists(st.sampled_from(PLAIN), min_size=2, max_size=3, unique=True)
    ),
    max_leaves=2,
)


@st.composite
def avro_records(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a record of up to two fields; only one of them may define the enum."""
    fields: list[dict[str, Any]] = []
    for name in draw(st.lists(st.sampled_from("ab"), min_size=1, max_size=2, unique=True)):
        type_ = draw(AVRO_TYPES if not fields else st.sampled_from(PLAIN))
        field: dict[str, Any] = {"name": name, "type": type_}
        if type_ == "int" and draw(st.booleans()):
            field["default"] = 0
        fields.append(field)
    return {"type": "record", "name": "R", "fields": fields}


def avro_value(schema: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 -- JSON
    """Draw a value of a schema; a union says which branch it is of."""
    if isinstance(schema, list):
        return st.one_of([avro_value(it) for it in schema if it != "null"])
    if isinstance(schema, str):
        return st.sampled_from(VALUES[schema])
    match schema["type"]:
        case "enum":
            return st.sampled_from(schema["symbols"])
        case "array":
            return st.lists(avro_value(schema["items"]), max_size=2)
        case "map":
            return st.dictionaries(st.just("k"), avro_value(schema["values"]), max_size=1)
    return st.fixed_dictionaries({it["name"]: avro_value(it["type"]) for it in schema["fields"]})


@MANY
@given(avro_records(), avro_records(), st.data())
def test_avro_that_is_safe_is_read(old: dict[str, Any], new: dict[str, Any], data: st.DataObject) -> None:
    """A record written under the old schema is resolved under a safe new one, with the same values."""
    judgement = judge(parse_avro(json.dumps(old)), parse_avro(json.dumps(new)))
    if judgement.wire is not Level.SAFE:
        return
    note(str(judgement.differences))
    value = data.draw(avro_value(old))
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(old), value)
    written.seek(0)
    same: Any = fastavro.schemaless_reader(io.BytesIO(written.getvalue()), fastavro.parse_schema(old), None)
    read: Any = fastavro.schemaless_reader(written, fastavro.parse_schema(old), fastavro.parse_schema(new))
    for name in read.keys() & same.keys():
        assert plain(read[name]) == plain(same[name])


def test_the_first_branch_that_may_fit_counts() -> None:
    """Libraries that take the first branch of a union read bytes as text, though a later one is bytes."""

    def record(type_: object) -> str:
        return json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": type_}]})

    for branches, level in ((["string", "bytes"], Level.CONDITIONAL), (["bytes", "string"], Level.SAFE)):
        assert judge(parse_avro(record("bytes")), parse_avro(record(branches))).wire is level


def plain(value: Any) -> Any:  # noqa: ANN401 -- JSON
    """Return a value with the bytes of its text: Avro reads strings as bytes."""
    if isinstance(value, list):
        return [plain(it) for it in value]
    if isinstance(value, dict):
        return {key: plain(it) for key, it in value.items()}
    return value.encode() if isinstance(value, str) else value


JSON_SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number", "string", "boolean", "null", ["string", "null"]])},
        optional={
            "minimum": st.integers(0, 2),
            "maximum": st.integers(1, 3),
            "maxLength": st.integers(0, 2),
            "enum": st.sampled_from([[1], [1, "a"], ["a", None]]),
            "pattern": st.sampled_from(["^a", "a"]),
        },
    )
    | st.just({})
    | st.just(True),
    lambda inner: (
        st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
            },
            optional={
                "required": st.lists(st.sampled_from("ab"), max_size=2, unique=True),
                "additionalProperties": st.booleans() | inner,
            },
        )
        | st.fixed_dictionaries({"type": st.just("array"), "items": inner}, optional={"maxItems": st.just(1)})
        | st.lists(inner, min_size=1, max_size=2).map(lambda them: {"anyOf": them})
    ),
    max_leaves=4,
)
DOCUMENTS = st.recursive(
    st.sampled_from([None, True, 0, 1, 2, 1.5, "", "a", "ab", "ba"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=4,
)


@st.composite
def json_pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    """Draw a schema, and another: unrelated, or the same with some keywords changed or taken away."""
    old, other = draw(JSON_SCHEMAS), draw(JSON_SCHEMAS)
    if not (isinstance(old, dict) and isinstance(other, dict)) or draw(st.booleans()):
        return old, other
    gone = draw(st.lists(st.sampled_from(sorted(old) or ["type"]), max_size=1))
    mixed = {key: value for key, value in old.items() if key not in gone}
    taken = draw(st.lists(st.sampled_from(sorted(other) or ["type"]), max_size=2))
    return old, {**mixed, **{key: other[key] for key in taken if key in other and key != "type"}}


@MANY
@given(json_pairs(), st.lists(DOCUMENTS, min_size=5, max_size=30))
def test_documents_that_are_safe_stay_valid(pair: tuple[Any, Any], documents: list[Any]) -> None:
    """Every document of the old schema is one of a safe new one."""
    old, new = pair
    root = {"type": "object", "properties": {"a": old}, "required": ["a"]}
    other = {"type": "object", "properties": {"a": new}}
    judgement = judge(parse_json_schema(json.dumps(root)), parse_json_schema(json.dumps(other)))
    if judgement.wire is not Level.SAFE:
        return
    note(str(judgement.differences))
    for document in documents:
        if jsonschema.Draft202012Validator(root).is_valid({"a": document}):
            assert jsonschema.Draft202012Validator(other).is_valid({"a": document}), document

"""Schemas and records made to hurt: each gets an answer, or an error that says what is wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.compat import Level, judge, load_version
from instar.compat.avro import parse_avro
from instar.compat.json_schema import parse_json_schema
from instar.compat.protobuf.compile import compile_proto, load_encoding
from instar.compat.protobuf.decode import Decoder
from instar.errors import InvalidSchemaError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DEEP = 30


def _avro(type_: Any) -> str:  # noqa: ANN401 -- JSON
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": type_}]})


def _twice_avro() -> str:
    inner: Any = "int"
    for at in reversed(range(DEEP)):
        again = "int" if at == DEEP - 1 else f"A{at + 1}"
        fields = [{"name": "a", "type": inner}, {"name": "b", "type": again}]
        inner = {"type": "record", "name": f"A{at}", "fields": fields}
    return json.dumps(inner)


def _twice_json() -> str:
    kinds: dict[str, Any] = {f"a{DEEP}": {"type": "integer"}}
    for at in range(DEEP):
        inside = {"$ref": f"#/$defs/a{at + 1}"}
        kinds[f"a{at}"] = {"type": "object", "properties": {"x": inside, "y": inside}}
    return json.dumps({"$ref": "#/$defs/a0", "$defs": kinds})


def _twice_protobuf() -> str:
    messages = "".join(f"message M{at} {{ M{at + 1} a = 1; M{at + 1} b = 2; }}\n" for at in range(DEEP))
    return f'syntax = "proto3";\n{messages}message M{DEEP} {{ int32 x = 1; }}\n'


@pytest.mark.parametrize(
    ("name", "make"),
    [("a.avsc", _twice_avro), ("a.json", _twice_json), ("a.proto", _twice_protobuf)],
)
def test_types_that_hold_others_twice_are_refused(name: str, make: Callable[[], str], tmp_path: Path) -> None:
    """A few lines may stand for a billion columns: that is said before anybody counts them."""
    (tmp_path / name).write_text(make())
    with pytest.raises(InvalidSchemaError, match="more than 10,000 columns"):
        load_version(str(tmp_path / name))


@pytest.mark.parametrize("levels", [100, 200, 400])
def test_what_is_nested_too_deep_is_refused(levels: int, tmp_path: Path) -> None:
    """Neither a list of lists nor messages without end are followed until the stack ends."""
    lists: Any = "int"
    objects: Any = {"type": "integer"}
    for _ in range(levels):
        lists = {"type": "array", "items": lists}
        objects = {"type": "object", "properties": {"a": objects}}
    messages = "".join(f"message M{at} {{ M{at + 1} a = 1; }}\n" for at in range(levels))
    (tmp_path / "a.proto").write_text(f'syntax = "proto3";\n{messages}message M{levels} {{}}\n')
    with pytest.raises(InvalidSchemaError, match="nested"):
        parse_avro(_avro(lists))
    with pytest.raises(InvalidSchemaError, match="nested"):
        parse_json_schema(json.dumps(objects))
    with pytest.raises(InvalidSchemaError, match="nested"):
        load_version(str(tmp_path / "a.proto"))


def test_unions_with_too_many_combinations_are_not_called_safe() -> None:
    """What cannot be tried in full is conditional."""
    versions = []
    for number in ("int", "long"):
        inner: Any = number
        for at in range(14):
            left = {
                "type": "record",
                "name": f"U{at}",
                "fields": [{"name": "a", "type": inner}],
            }
            again = ["null", f"U{at - 1}"] if at else "int"
            right = {"type": "record", "name": f"V{at}", "fields": [{"name": "a", "type": again}]}
            inner = [left, right]
        versions.append(parse_avro(_avro(inner)))
    assert judge(versions[0], versions[0]).wire is Level.SAFE
    assert judge(*versions).wire is not Level.SAFE


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "thing"}, "`type`"),
        ({"type": [["object"]]}, "`type`"),
        ({"type": "object", "properties": 0}, "`properties`"),
        ({"type": "object", "properties": {"a": 0}}, "is not a JSON Schema"),
        ({"type": "object", "properties": {"a": {}}, "required": -1}, "`required`"),
        ({"enum": 5}, "`enum`"),
        ({"oneOf": 1.5}, "`oneOf`"),
        ({"maximum": {}}, "`maximum`"),
        ({"$ref": "#/nowhere"}, "leads nowhere"),
        ({"$ref": "#"}, "forever"),
    ],
)
def test_keywords_have_values_as_they_should(schema: Any, message: str) -> None:  # noqa: ANN401 -- JSON
    """A JSON Schema that is none is refused with the keyword that is wrong."""
    with pytest.raises(InvalidSchemaError, match=message):
        parse_json_schema(json.dumps(schema))


@pytest.mark.parametrize(
    "type_", [[], "error", {"type": "error", "name": "E", "fields": []}, {"type": "map"}]
)
def test_avro_that_is_none_is_refused(type_: Any) -> None:  # noqa: ANN401 -- JSON
    """Unions without a branch, and what is no type, are no columns."""
    with pytest.raises(InvalidSchemaError):
        parse_avro(_avro(type_))


_WORDS = ["type", "name", "fields", "items", "properties", "enum", "required", "anyOf", "$ref", "minimum"]
_ATOMS = st.sampled_from([None, True, 0, -1.5, "", "a", "R", "#", "object", "array", "record", "int", "null"])
_JSON = st.recursive(
    _ATOMS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_WORDS), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150)
@given(_JSON, _JSON)
def test_whatever_is_given_as_json_is_judged_or_refused(old: Any, new: Any) -> None:  # noqa: ANN401 -- JSON
    """No JSON of the words that schemas are made of leads to anything but an answer or an error of ours."""
    for parse in (parse_json_schema, parse_avro):
        try:
            before, after = parse(json.dumps(old)), parse(json.dumps(new))
            judge(before, after)
            assert judge(before, before).differences == ()
        except UsageError:
            continue


def test_names_that_differ_in_case_alone_are_no_two_columns() -> None:
    """A version is like itself; one more column that no table could hold is unsafe for queries."""
    both = {"type": "object", "properties": {"A": {"type": "string"}, "a": {"type": "integer"}}}
    one = {"type": "object", "properties": {"A": {"type": "string"}}}
    versions = [parse_json_schema(json.dumps(it)) for it in (one, both)]
    assert judge(versions[1], versions[1]).differences == ()
    assert judge(*versions).query is Level.UNSAFE


METHODS = (
    "HasField",
    "Clear",
    "ByteSize",
    "DESCRIPTOR",
    "SerializeToString",
    "DiscardUnknownFields",
    "FromString",
)


def test_a_field_may_be_called_as_a_method(tmp_path: Path) -> None:
    """Names that Python's messages have a use for are columns as any other."""
    fields = " ".join(f"optional int32 {name} = {at};" for at, name in enumerate(METHODS, 1))
    (tmp_path / "a.proto").write_text(f'syntax = "proto3";\nmessage A {{ {fields} A inside = 9; }}\n')
    record = b"".join(bytes([8 * at, at]) for at in range(1, 1 + len(METHODS)))
    nested = bytes([8 * 9 + 2, len(record)]) + record
    decoded = Decoder(load_encoding(tmp_path / "a.proto")).decode([record, nested, b"\xff"])
    assert list(decoded.rejected) == [2]
    first, second = decoded.rows.to_pylist()
    assert first == {**{name: at for at, name in enumerate(METHODS, 1)}, "inside": None}
    assert second["inside"] == record


def test_a_value_of_an_extension_is_an_unknown_field(tmp_path: Path) -> None:
    """It has no column, so the record is kept whole, at every level."""
    (tmp_path / "a.proto").write_text(
        'syntax = "proto2";\nmessage A { optional int32 x = 1; extensions 100 to 199; optional A a = 2; }\n'
        "extend A { optional int32 e = 100; }\n"
    )
    extended = b"\xa0\x06\x05"
    decoded = Decoder(load_encoding(tmp_path / "a.proto", message="A")).decode(
        [extended, bytes([18, len(extended)]) + extended, b"\x08\x01"]
    )
    assert decoded.unknown == {0, 1}
    assert len(decoded.rows) == 3


@pytest.mark.parametrize("name", ["@args.proto", "--plugin=args.proto", "-I.proto", "folder/@args.proto"])
def test_a_file_that_is_called_as_an_option_is_only_a_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiler reads options from `@file`, and takes `--plugin` for one; here, both are files."""
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "made"
    (tmp_path / "args.proto").write_text(f"--python_out={tmp_path}\n--descriptor_set_out={made}\n")
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('syntax = "proto3"; message Event { int32 a = 1; }')
    (found,) = compile_proto(path, includes=[tmp_path])
    assert (found.name, found.message_type[0].name) == (name, "Event")
    assert not made.exists()

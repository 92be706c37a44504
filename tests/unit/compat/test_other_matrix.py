"""Every kind of change to Avro, JSON Schema and DDL gets the right answer, and their readers agree."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import fastavro
import jsonschema
import pytest
from fastavro.schema import parse_schema

from instar.compat import ColumnsVersion, Level, judge
from instar.compat.avro import parse_avro
from instar.compat.json_schema import parse_json_schema
from instar.schema import as_schema
from tests.meta.modules import ROOT
from tests.unit.compat.other_matrix import AVRO, DDL, JSON, JSON_VALUE, Change, avro_text, json_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.compat import Judgement, Version


def _avro(given: JSON_VALUE) -> Version:
    return parse_avro(avro_text(given))


def _json(given: JSON_VALUE) -> Version:
    return parse_json_schema(json_text(given))


def _ddl(given: JSON_VALUE) -> Version:
    return ColumnsVersion(as_schema(given))


EVERY = [(parse, row) for parse, rows in ((_avro, AVRO), (_json, JSON), (_ddl, DDL)) for row in rows]
NAMES = [f"{parse.__name__[1:]}: {row.name}" for parse, row in EVERY]


@pytest.mark.parametrize(("parse", "row"), EVERY, ids=NAMES)
def test_every_kind_of_change_is_answered(parse: Callable[[JSON_VALUE], Version], row: Change) -> None:
    """Wire, query and meaning are three answers, and each has a reason; a version is like itself."""
    judgement = judge(parse(row.old), parse(row.new))
    wire = "-" if judgement.wire is None else judgement.wire.value
    found = (wire, judgement.query.value, judgement.semantic.value)
    assert found == (row.wire, row.query, row.semantic), judgement.differences
    assert judge(parse(row.old), parse(row.old)).differences == ()


@pytest.mark.parametrize("row", [row for row in AVRO if row.values], ids=lambda row: row.name)
def test_readers_of_avro_agree(row: Change) -> None:
    """What is safe is read with the same values by a real reader; what is not loses or changes one."""
    old, new = (parse_schema(json.loads(avro_text(given))) for given in (row.old, row.new))
    same = []
    for value in row.values:
        file = io.BytesIO()
        fastavro.schemaless_writer(file, old, {"a": value})
        file.seek(0)
        try:
            read: Any = fastavro.schemaless_reader(file, old, new)
            same.append(read.get("a") == value)
        except Exception:  # noqa: BLE001 -- whatever a reader of Avro raises: it could not read it
            same.append(False)
    assert all(same) == (row.wire == "safe")


@pytest.mark.parametrize("row", [row for row in JSON if row.values], ids=lambda row: row.name)
def test_validators_of_documents_agree(row: Change) -> None:
    """Old documents are valid under what is safe, and one of them is not under what is not."""
    old, new = (json.loads(json_text(given)) for given in (row.old, row.new))
    whole = "type" not in row.old and "enum" not in row.old
    documents = [value if whole else {"a": value} for value in row.values]
    for document in documents:
        jsonschema.validate(document, old)
    valid = [jsonschema.Draft202012Validator(new).is_valid(document) for document in documents]
    assert all(valid) == (row.wire == "safe")


def _why(judgement: Judgement) -> str:
    rulings = [
        it
        for each in judgement.differences
        for it in (each.wire, each.query, each.semantic)
        if it is not None
    ]
    bad = [it.reason for it in rulings if it.level is not Level.SAFE]
    return "; ".join(dict.fromkeys(bad or [it.reason for it in rulings][:1]))


def table_row(parse: Callable[[JSON_VALUE], Version], row: Change) -> str:
    """Return the row of docs/compatibility.md for one kind of change."""
    why = _why(judge(parse(row.old), parse(row.new)))
    wire = "" if row.wire == "-" else f" {row.wire} |"
    return f"| {row.name} |{wire} {row.query} | {row.semantic} | {why} |"


def test_the_documentation_shows_every_kind_of_change() -> None:
    """docs/compatibility.md has these very tables."""
    text = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
    missing = [row for row in (table_row(*each) for each in EVERY) if row not in text]
    assert missing == [], "\n" + "\n".join(missing)

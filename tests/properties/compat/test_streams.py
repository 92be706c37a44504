"""The check and streams agree: what is safe for queries can be declared, and fields keep their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, note

from instar.compat import Level, judge
from instar.compat.protobuf.compile import describe_encoding
from instar.errors import InstarError
from instar.schema import Field, as_schema
from instar.schema.algebra import member_fields
from instar.stream.catalog import apply_change
from instar.stream.commands import create_stream
from instar.stream.protobuf import plan_protobuf
from instar.stream.version import as_version
from tests.properties.compat.pairs import Shape, pairs
from tests.properties.compat.test_decoding import encoding_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from instar.compat.protobuf.model import Encoding
    from instar.stream.catalog import Catalog, CatalogChange


def began() -> Catalog:
    """Return a stream without versions of protobuf."""
    schema = as_schema("at timestamp")
    changes = create_stream(None, "s", "id", schema, version="v0.0.1", time="at", kinds={"regular": "1d"})
    return folded(None, changes)


def folded(catalog: Catalog | None, changes: Sequence[CatalogChange]) -> Catalog:
    """Apply changes."""
    for change in changes:
        catalog = apply_change(catalog, "s", change)
    assert catalog is not None
    return catalog


def declared(catalog: Catalog, version: str, encoding: Encoding) -> Catalog:
    """Declare a version."""
    return folded(catalog, plan_protobuf(catalog, version, encoding))


@given(pairs())
def test_what_is_safe_for_queries_can_be_declared(pair: tuple[Shape, Shape]) -> None:
    """A stream takes what neither queries nor records would notice, and keeps each field in its column."""
    old, new = (encoding_of(shape) for shape in pair)
    judgement = judge(describe_encoding(old), describe_encoding(new))
    first = declared(began(), "v0.0.2", old)
    try:
        second = declared(first, "v0.0.3", new)
    except InstarError as error:
        note(str(error))
        # Numbers that were swapped are refused: no query would notice, but records would be misread.
        assert not judgement.query_compatible or judgement.wire is Level.UNSAFE, judgement.differences
        return
    before, after = (second.versions[as_version(it)].schema.fields for it in ("v0.0.2", "v0.0.3"))
    known = {field.name: field.id for field in before}
    members = {shape.number: shape.name for shape in pair[0].members}
    for member in pair[1].members:
        [column] = [field for field in after if field.name == member.name]
        if member.number in members:
            assert column.id == known[members[member.number]]
    assert declared(second, "v0.0.3", new) == second
    ids = [field.id for field in walk(second.schema.fields)]
    assert len(ids) == len(set(ids))


def walk(fields: tuple[Field, ...]) -> list[Field]:
    """Return fields at every level."""
    return [it for field in fields for it in (field, *walk(tuple(member_fields(field.type))))]

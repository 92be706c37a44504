"""Readers and fences, against a direct reading of what fences a reader and what does not."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from instar.schema import Field, History, Primitive, Schema, check_reader
from tests.properties.schema.checker import Stop, expected_fences
from tests.properties.schema.strategies import (
    Past,
    histories,
    legal_schemas,
    pasts,
    projections,
    readers,
    thorough,
)

Case = tuple[tuple[Schema, ...], int, Schema]


def found_fences(schemas: tuple[Schema, ...], reader: Schema) -> Counter[Stop]:
    """Return what instar finds, without its words."""
    fences = check_reader(History.fold(schemas), reader)
    return Counter(Stop(fence.kind, fence.path, fence.ids, fence.by_schema) for fence in fences)


@thorough
@given(readers())
def test_fences_are_exactly_those_of_a_direct_reading(case: Case) -> None:
    """Each thing that a reader reads fences it once, by the first schema since which it stands in the way."""
    schemas, at, reader = case
    assert found_fences(schemas, reader) == Counter(expected_fences(schemas, at, reader))


@given(histories(), st.data())
def test_the_latest_schema_and_its_projections_are_never_fenced(
    schemas: tuple[Schema, ...], data: st.DataObject
) -> None:
    """Whatever a table went through, who reads what it is now goes on, in any order of columns."""
    assert not found_fences(schemas, schemas[-1])
    assert not found_fences(schemas, data.draw(projections(schemas[-1])))


@given(pasts(most=4))
def test_what_a_reader_does_not_read_never_fences_it(past: Past) -> None:
    """A reader of one column is undisturbed by anything that happens to all the others."""
    column = Field(past.ids.fresh(), "read", Primitive("int"), nullable=False)
    schemas = tuple(Schema((column, *schema.fields)) for schema in past.schemas)
    assert not found_fences(schemas, Schema((column,)))


@given(pasts(most=4), st.data())
def test_a_fence_once_up_stays_up(past: Past, data: st.DataObject) -> None:
    """Further evolution adds fences or moves them to a parent, but frees no reader."""
    reader = data.draw(projections(data.draw(st.sampled_from(past.schemas))))
    if found_fences(past.schemas, reader):
        later = data.draw(legal_schemas(past.schemas[-1], past.ids))
        assert found_fences((*past.schemas, later), reader)

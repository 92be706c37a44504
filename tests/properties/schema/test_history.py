"""The laws of histories: what a fold remembers, and that nothing deleted ever comes back."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.errors import IncompatibleSchemaError
from instar.schema import ChangeKind, Field, History, List, Map, Primitive, Schema, Struct, parse_schema_ddl
from tests.properties.schema.strategies import (
    Past,
    edit_struct,
    every_struct,
    histories,
    mutated_schemas,
    pasts,
    thorough,
)

if TYPE_CHECKING:
    from collections.abc import Callable

INT = Primitive("int")


@given(histories())
def test_the_current_type_of_the_fold_is_the_latest_schema(schemas: tuple[Schema, ...]) -> None:
    """Filtering the deleted fields out of the folded history leaves the latest schema, at every step."""
    for size in range(1, len(schemas) + 1):
        history = History.fold(schemas[:size])
        assert history.migration_type.current() == schemas[size - 1] == history.latest
        assert history.latest_id == size - 1


@given(histories())
def test_a_fold_equals_the_history_that_evolved(schemas: tuple[Schema, ...]) -> None:
    """Rebuilding a history from its schemas gives the very value that evolving step by step gave."""
    history = History.start(schemas[0])
    for schema in schemas[1:]:
        history = history.evolve(schema)
    unrepeated = tuple(s for at, s in enumerate(schemas) if at == 0 or s != schemas[at - 1])
    assert history == History.fold(unrepeated)


@given(histories())
def test_a_fold_remembers_every_id_ever_used(schemas: tuple[Schema, ...]) -> None:
    """An id is live if the latest schema has it, deleted if only an earlier one has, and never both."""
    folded = History.fold(schemas).migration_type
    ever = {field_id for schema in schemas for field_id in schema.field_ids()}
    assert folded.live_ids() == set(schemas[-1].field_ids())
    assert folded.deleted_ids() == ever - folded.live_ids()
    assert History.fold(schemas).next_field_id > max(ever)


@given(histories())
def test_the_latest_schema_again_changes_nothing(schemas: tuple[Schema, ...]) -> None:
    """A schema compared with a history that it ends has no changes, and evolving to it adds none."""
    history = History.fold(schemas)
    assert history.compare(schemas[-1]) == ()
    assert history.evolve(schemas[-1]) is history


@thorough
@given(pasts(most=5), st.data())
def test_a_deleted_field_never_comes_back(past: Past, data: st.DataObject) -> None:
    """However schemas are tried one after another, those accepted never have an id again that one lacked."""
    history = History.fold(past.schemas)
    for _ in range(3):
        schema = data.draw(mutated_schemas(past._replace(schemas=history.schemas)))
        with suppress(IncompatibleSchemaError):
            history = history.evolve(schema)
    for field_id in {i for schema in history.schemas for i in schema.field_ids()}:
        has = [field_id in set(schema.field_ids()) for schema in history.schemas]
        assert "".join("x" if here else "." for here in has).strip(".").count(".") == 0


def hide_plain(field: Field) -> Field:
    """Leave a field as it is."""
    return field


def hide_in_struct(field: Field) -> Field:
    """Put a field inside a new struct."""
    return Field(901, "fresh", Struct((field,)))


def hide_in_list(field: Field) -> Field:
    """Put a field inside the elements of a new list."""
    return Field(901, "fresh", List(Struct((Field(902, "other", INT), field))))


def hide_in_value(field: Field) -> Field:
    """Put a field inside the values of a new map, two levels down."""
    return Field(901, "fresh", Map(INT, List(Struct((Field(902, "inner", Struct((field,))),)))))


def hide_in_key(field: Field) -> Field:
    """Put a field inside the keys of a new map."""
    return Field(901, "fresh", Map(Struct((field,)), INT))


# kept int, plain int, s struct<x, deep struct<y>>, l array<struct<z, w>>, m map<int, struct<v, u>>
BEFORE = parse_schema_ddl(
    "kept int, plain int, s struct<x: int, deep: struct<y: int>>, "
    "l array<struct<z: int, w: int>>, m map<int, struct<v: int, u: int>>, t struct<k: int>"
)
GONE = {
    "a column": ("plain",),
    "a member": ("s", "x"),
    "a member of a dropped struct": ("s", "deep", "y"),
    "a dropped struct": ("s", "deep"),
    "a member of an element": ("l", "element", "z"),
    "a member of a value": ("m", "value", "v"),
}
HIDING = {
    "plainly": hide_plain,
    "in a struct": hide_in_struct,
    "in a list": hide_in_list,
    "in a map's value": hide_in_value,
    "in a map's key": hide_in_key,
}


def drop_one(fields: tuple[Field, ...], path: tuple[str, ...]) -> tuple[tuple[Field, ...], Field]:
    """Return the fields without the one at a path, and that one."""
    found = next(field for field in fields if field.name == path[0])
    if len(path) == 1:
        return tuple(field for field in fields if field is not found), found
    rest = path[1:]
    match found.type:
        case Struct(fields=members):
            inner, dropped = drop_one(members, rest)
            type_: Struct | List | Map = Struct(inner)
        case List(element=Struct(fields=members)):
            inner, dropped = drop_one(members, rest[1:])
            type_ = List(Struct(inner))
        case Map(key=key, value=Struct(fields=members)):
            inner, dropped = drop_one(members, rest[1:])
            type_ = Map(key, Struct(inner))
        case _:
            raise AssertionError(path)
    kept = () if not inner else (Field(found.id, found.name, type_, found.nullable),)
    return tuple(new for field in fields for new in (kept if field is found else (field,))), dropped


@pytest.mark.parametrize("where", ["table", "struct"])
@pytest.mark.parametrize("hide", HIDING.values(), ids=HIDING)
@pytest.mark.parametrize("path", GONE.values(), ids=GONE)
def test_no_disguise_brings_a_deleted_field_back(
    path: tuple[str, ...], hide: Callable[[Field], Field], where: str
) -> None:
    """Under its old id a field is refused forever: at any place, inside anything, after its parent went."""
    without, dropped = drop_one(BEFORE.fields, path)
    history = History.start(BEFORE).evolve(Schema(without))
    # Some more evolution in between: what was deleted stays known through all of it.
    for name in ("s", "l"):
        later = tuple(field for field in history.latest.fields if field.name != name)
        history = history.evolve(Schema(later))
    back = hide(Field(dropped.id, "back", dropped.type))
    if where == "table":
        fields = (back, *history.latest.fields)
    else:
        *others, last = history.latest.fields
        assert isinstance(last.type, Struct)
        fields = (*others, Field(last.id, last.name, Struct((*last.type.fields, back))))
    violations = history.check(Schema(fields))
    assert dropped.id in {change.ids[-1] for change in violations}
    assert {change.kind for change in violations} == {ChangeKind.RECREATED}


@given(pasts(most=6), st.data())
def test_every_deleted_id_is_refused_wherever_it_is_added(past: Past, data: st.DataObject) -> None:
    """Any id that the latest schema lacks and an earlier one had is against the rules in any struct."""
    history = History.fold(past.schemas)
    dead = sorted(history.migration_type.deleted_ids())
    if not dead:
        return
    field = Field(data.draw(st.sampled_from(dead)), "came back", INT)
    path, _ = data.draw(st.sampled_from(list(every_struct(history.latest.fields))))
    fields = edit_struct(history.latest.fields, path, lambda members: (*members, field))
    (violation,) = history.check(Schema(fields))
    assert violation.kind is ChangeKind.RECREATED
    assert violation.ids[-1] == field.id


@given(pasts(most=6))
def test_a_dropped_name_may_be_used_again(past: Past) -> None:
    """A name is only a name: the same one with a new id is an addition, and reads as null."""
    history = History.fold(past.schemas)
    live = {field.name.lower() for field in history.latest.fields}
    names = {f.name for schema in past.schemas for f in schema.fields if f.name.lower() not in live}
    for name in names:
        added = Field(past.ids.fresh(), name, INT)
        (change,) = history.compare(Schema((added, *history.latest.fields)))
        assert change.kind is ChangeKind.ADDED

"""Every row of a small schema, and the order of rows in plain Python.

All rows over a few values each are few enough to enumerate, so whether a migration keeps them sorted
or makes some of them equal is not sampled but known.
"""

from __future__ import annotations

from itertools import pairwise, product
from random import Random
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from instar.schema import Decimal, Field, List, Map, Primitive, Schema, Struct, Type, migrate
from tests.properties.schema.data import batch_of, random_leaf, rows_of
from tests.properties.schema.strategies import Ids, draw_legal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hypothesis.strategies import DrawFn

    from tests.properties.schema.data import Row, Value

__all__ = [
    "Key",
    "collapses",
    "every_row",
    "row_key",
    "small_changes",
    "sort_keys",
    "stays_sorted",
]

Key = tuple["int | float | str | bytes | object", ...]

SMALL: dict[str, tuple[Value, ...]] = {
    "boolean": (False, True),
    "string": ("", "a"),
    "binary": (b"", b"a"),
    "float": (-0.0, float("nan")),
    "double": (0.5, float("nan")),
}
MOST_ROWS = 1200


def every_value(type_: Type, *, nullable: bool) -> list[Value]:
    """Return every value of a type over two values for each leaf, and lists of up to two elements."""
    nulls: list[Value] = [None] if nullable else []
    match type_:
        case Struct(fields=members):
            return nulls + _combinations(members)
        case List(element=element, element_nullable=element_nullable):
            items = every_value(element, nullable=element_nullable)
            return nulls + [list(some) for size in range(3) for some in product(items, repeat=size)]
        case Map(key=key, value=value, value_nullable=value_nullable):
            entries = list(
                product(every_value(key, nullable=False), every_value(value, nullable=value_nullable))
            )
            pairs = [[one, two] for one, two in product(entries, repeat=2) if one[0] != two[0]]
            return [*nulls, [], *([entry] for entry in entries), *pairs]
        case Decimal():
            return [*nulls, *sorted({random_leaf(Random(seed), type_) for seed in range(9)})[:2]]
        case Primitive(name=name):
            return [*nulls, *SMALL.get(name, (0, 1))]


def _combinations(fields: Sequence[Field]) -> list[Row]:
    choices = [every_value(field.type, nullable=field.nullable) for field in fields]
    return [
        {field.id: value for field, value in zip(fields, values, strict=True)} for values in product(*choices)
    ]


def count_values(type_: Type, *, nullable: bool) -> int:
    """Return how many values `every_value` would give, without making them."""
    match type_:
        case Struct(fields=members):
            size = count_rows(members)
        case List(element=element, element_nullable=element_nullable):
            items = count_values(element, nullable=element_nullable)
            size = 1 + items + items * items
        case Map(key=key, value=value, value_nullable=value_nullable):
            entries = count_values(key, nullable=False) * count_values(value, nullable=value_nullable)
            size = 1 + entries + entries * entries
        case _:
            size = 2
    return size + nullable


def count_rows(fields: Sequence[Field]) -> int:
    """Return how many rows `every_row` would give."""
    size = 1
    for field in fields:
        size *= count_values(field.type, nullable=field.nullable)
    return size


def every_row(schema: Schema) -> list[Row]:
    """Return every row of a schema over few values."""
    return _combinations(schema.fields)


# --- order ----------------------------------------------------------------------------------------


def value_key(value: Value, type_: Type) -> Key:
    """Order a value: null first, NaN last, -0.0 like 0.0; structs and lists item by item."""
    if value is None:
        return ()
    match type_:
        case Struct(fields=members):
            return (tuple(value_key(value[member.id], member.type) for member in members),)
        case List(element=element):
            return (tuple(value_key(item, element) for item in value),)
        case Map(key=key, value=item_type):
            return (tuple((value_key(k, key), value_key(v, item_type)) for k, v in value),)
        case Primitive(name="float" | "double"):
            return ((value != value, 0.0 if value != value else value + 0.0),)  # noqa: PLR0124
    return (value,)


def _find(row: Row | None, fields: tuple[Field, ...], field_id: int) -> Key | None:
    """Return the key of the column or struct member of an id; below a null struct it is null."""
    for field in fields:
        value = None if row is None else row[field.id]
        if field.id == field_id:
            return value_key(value, field.type)
        if isinstance(field.type, Struct):
            below = _find(value, field.type.fields, field_id)
            if below is not None:
                return below
    return None


def row_key(row: Row, schema: Schema, order_by: Iterable[int] = ()) -> Key:
    """Order a row: by the `order_by` fields that there still are, then by all columns in their order."""
    leading = [_find(row, schema.fields, field_id) for field_id in order_by]
    columns = [value_key(row[field.id], field.type) for field in schema.fields]
    return (*(key for key in leading if key is not None), *columns)


def sort_keys(
    rows: list[Row], old: Schema, new: Schema, order_by: Iterable[int] = ()
) -> tuple[list[Key], list[Key]]:
    """Sort rows under the old schema, migrate them with instar, and return their keys before and after."""
    order_by = tuple(order_by)
    rows = sorted(rows, key=lambda row: row_key(row, old, order_by))
    after = rows_of(migrate(batch_of(rows, old, Random(0)), old, new), new)
    return [row_key(row, old) for row in rows], [row_key(row, new, order_by) for row in after]


def stays_sorted(old: Schema, new: Schema, order_by: Iterable[int] = ()) -> bool:
    """Whether every row over few values, sorted and migrated, is still sorted."""
    _, after = sort_keys(every_row(old), old, new, order_by)
    return all(one <= two for one, two in pairwise(after))


def collapses(old: Schema, new: Schema) -> bool:
    """Whether two rows over few values that differ become equal."""
    before, after = sort_keys(every_row(old), old, new)
    return len(set(after)) < len(set(before))


# --- small schemas and what may happen to them ----------------------------------------------------


def _draw_small_type(draw: DrawFn, ids: Ids, depth: int) -> Type:
    leaves = ("int", "tinyint", "float", "string")
    match draw(st.sampled_from(("leaf", "leaf", "struct", "struct", "list", "map"))) if depth else "leaf":
        case "struct":
            return Struct(_draw_small_fields(draw, ids, depth - 1, most=3 if depth > 1 else 2))
        case "list":
            return List(_draw_small_type(draw, ids, depth - 1), draw(st.booleans()))
        case "map":
            return Map(Primitive("int"), _draw_small_type(draw, ids, depth - 1), draw(st.booleans()))
    return Primitive(draw(st.sampled_from(leaves)))


def _draw_small_fields(draw: DrawFn, ids: Ids, depth: int, most: int) -> tuple[Field, ...]:
    fields: list[Field] = []
    for name in "abc"[: draw(st.integers(1, most))]:
        type_ = _draw_small_type(draw, ids, depth)
        fields.append(Field(ids.fresh(), name, type_, nullable=draw(st.booleans())))
    return tuple(fields)


def _members(fields: tuple[Field, ...]) -> list[int]:
    """Return the ids that a table may be ordered by: columns, and members of structs."""
    return [
        field_id
        for field in fields
        for field_id in (
            field.id,
            *(_members(field.type.fields) if isinstance(field.type, Struct) else ()),
        )
    ]


@st.composite
def small_changes(draw: DrawFn) -> tuple[Schema, Schema, tuple[int, ...]]:
    """Draw a schema with few rows, a schema that may follow it, and what the rows are sorted by first."""
    ids = Ids(1, 0)
    fields = _draw_small_fields(draw, ids, depth=2, most=3)
    while count_rows(fields) > MOST_ROWS and len(fields) > 1:
        fields = fields[:-1]
    while count_rows(fields) > MOST_ROWS:  # one column, too rich: its last resort is to be plain
        fields = (Field(fields[0].id, "a", Primitive("int")),)
    old = Schema(fields)
    new = draw_legal(draw, old, ids, most=2, only=draw(st.sampled_from(("drop", None))))
    order_by = draw(st.lists(st.sampled_from(_members(fields)), max_size=2, unique=True))
    return old, new, tuple(order_by)

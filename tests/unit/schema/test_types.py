"""Types, fields and schemas as values: what they refuse, and what can be asked of them."""

from __future__ import annotations

import pytest

from instar.errors import ColumnNotFoundError, InvalidSchemaError, UsageError
from instar.schema import Decimal, Field, List, Map, Primitive, Schema, Struct, Type, parse_schema_ddl
from instar.schema.algebra import member_fields, walk_fields
from instar.schema.paths import format_path, parse_path
from instar.schema.types import INTERVAL_DAY_TIME, INTERVAL_YEAR_MONTH, PRIMITIVES
from instar.schema.wellformed import MAX_DEPTH

INT = Primitive("int")


def nested(depth: int, kind: str) -> Type:
    """Wrap an int in so many structs, lists or maps."""
    type_: Type = INT
    for at in range(depth):
        match kind:
            case "struct":
                type_ = Struct((Field(1000 + at, "x", type_),))
            case "list":
                type_ = List(type_)
            case _:
                type_ = Map(INT, type_)
    return type_


@pytest.mark.parametrize(
    "name", ["integer", "INT", "varchar", "interval", "interval month to day", "", "decimal"]
)
def test_only_known_names_are_primitive_types(name: str) -> None:
    """A primitive type has one of the canonical names: no synonym, no other case."""
    with pytest.raises(ValueError, match="is not a primitive type"):
        Primitive(name)


def test_there_are_twelve_plain_types_and_thirteen_intervals() -> None:
    """Four day-time units make ten spans, two year-month units three."""
    assert len(INTERVAL_DAY_TIME) == 10
    assert len(INTERVAL_YEAR_MONTH) == 3
    assert len(PRIMITIVES) == 12 + 13


@pytest.mark.parametrize(("precision", "scale"), [(0, 0), (39, 0), (5, 6), (5, -1), (-1, 0)])
def test_decimals_have_bounds(precision: int, scale: int) -> None:
    """A decimal has 1 to 38 digits, of which 0 to all are after the point."""
    with pytest.raises(ValueError, match="1 <= precision <= 38 and 0 <= scale <= precision"):
        Decimal(precision, scale)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ((), "a schema needs at least one column"),
        ((Field(1, "a", INT), Field(2, "a", INT)), "column `a` appears twice"),
        (
            (Field(1, "a", INT), Field(2, "A", INT)),
            "column `A` appears twice (as `a`; case does not tell them apart)",
        ),
        (
            (Field(1, "s", List(Struct((Field(2, "ü", INT), Field(3, "Ü", INT))))),),
            "column `Ü` appears twice in `s.element` (as `ü`; case does not tell them apart)",
        ),
        ((Field(1, "_ts", INT),), "column name `_ts` is reserved: every part has a column of that name"),
        ((Field(1, "_DIFF", INT),), "column name `_DIFF` is reserved: every part has a column of that name"),
        ((Field(1, "", INT),), "a column name is empty"),
        ((Field(1, "s", Struct((Field(2, "", INT),))),), "a column name is empty in `s`"),
        ((Field(1, "a\nb", INT),), "column name 'a\\nb' has characters that cannot be printed"),
        ((Field(1, "\u200b", INT),), "column name '\\u200b' has characters that cannot be printed"),
        ((Field(-1, "a", INT),), "field id -1 of `a` is negative"),
        (
            (Field(1, "a", INT), Field(1, "b", INT)),
            "field id 1 of `b` is used twice: every field has its own",
        ),
        (
            (Field(1, "a", INT), Field(2, "m", Map(INT, List(Struct((Field(1, "b", INT),)))))),
            "field id 1 of `b` is used twice: every field has its own",
        ),
        (
            (Field(1, "a", INT), Field(2, "m", Map(Struct((Field(1, "b", INT),)), INT))),
            "field id 1 of `b` is used twice: every field has its own",
        ),
        ((Field(1, "s", Struct(())),), "struct `s` has no members: a struct needs at least one"),
        (
            (Field(1, "m", Map(INT, Struct((Field(2, "t", Struct(())),)))),),
            "struct `m.value.t` has no members: a struct needs at least one",
        ),
        ((Field(1, "m", Map(Map(INT, INT), INT)),), "the key of map `m` holds a map, and maps have no order"),
        (
            (Field(1, "m", Map(Struct((Field(2, "x", List(Map(INT, INT))),)), INT)),),
            "the key of map `m` holds a map, and maps have no order",
        ),
        ((Field(1, "a", nested(MAX_DEPTH, "struct")),), "fields are nested more than 64 levels deep"),
        ((Field(1, "a", nested(MAX_DEPTH, "list")),), "fields are nested more than 64 levels deep"),
        ((Field(1, "a", nested(MAX_DEPTH, "map")),), "fields are nested more than 64 levels deep"),
    ],
)
def test_fields_that_are_no_schema(fields: tuple[Field, ...], problem: str) -> None:
    """What cannot be a table's schema is refused when it is made, and the message names the place."""
    with pytest.raises(InvalidSchemaError) as refusal:
        Schema(fields)
    assert str(refusal.value) == problem


@pytest.mark.parametrize("kind", ["struct", "list", "map"])
def test_nesting_may_be_deep(kind: str) -> None:
    """Up to 64 levels are a schema, and print and read back."""
    schema = Schema((Field(1, "a", nested(MAX_DEPTH - 1, kind)),))
    assert str(parse_schema_ddl(str(schema))) == str(schema)


def test_reserved_names_are_free_inside_structs() -> None:
    """Parts have `_ts` and `_diff` beside the columns, not inside them; ids may start at 0."""
    assert Schema((Field(0, "s", Struct((Field(1, "_ts", INT), Field(2, "_diff", INT)))),)).names == ("s",)


def test_columns_are_found_as_spark_finds_them() -> None:
    """A path is resolved without regard to case, through structs only."""
    schema = parse_schema_ddl("User struct<Name: string, `first.name`: string>, tags array<struct<x: int>>")
    assert schema.load_column("USER.name").id == 2
    assert schema.load_column("user.`FIRST.NAME`").id == 3
    assert schema.find_column("tags.element") is None
    assert schema.find_column("user.nope") is None
    assert schema.find_column("user.name.more") is None
    with pytest.raises(ColumnNotFoundError) as error:
        schema.load_column("User.Nam")
    assert str(error.value) == (
        "there is no column `User.Nam`: the columns are User, User.Name, User.`first.name`, tags, "
        "tags.element, tags.element.x. Did you mean `User.Name`?"
    )


def test_paths_name_everything_that_can_evolve() -> None:
    """Columns, members, elements and values have paths; keys never evolve and have none."""
    schema = parse_schema_ddl("a int, l array<struct<x: int>>, m map<struct<k: int>, struct<v: int>>")
    assert list(schema.paths()) == ["a", "l", "l.element", "l.element.x", "m", "m.value", "m.value.v"]


def test_a_selection_keeps_ids_and_takes_the_order_given() -> None:
    """A projection is made of the columns asked for, in the order asked for, by their own names."""
    schema = parse_schema_ddl("a int, `b.c` string, d date")
    assert [(field.id, field.name) for field in schema.select(["D", "b.c"]).fields] == [(3, "d"), (2, "b.c")]
    with pytest.raises(ColumnNotFoundError):
        schema.select(["b"])
    with pytest.raises(InvalidSchemaError, match="appears twice"):
        schema.select(["a", "A"])
    with pytest.raises(InvalidSchemaError, match="at least one column"):
        schema.select([])


def test_every_field_is_walked_parents_first() -> None:
    """A walk looks through lists, map keys and map values."""
    schema = parse_schema_ddl("a int, m map<struct<k: int>, array<struct<v: struct<w: int>>>>, z int")
    assert [field.name for field in walk_fields(schema.fields)] == ["a", "m", "k", "v", "w", "z"]
    assert list(schema.field_ids()) == [1, 2, 3, 4, 5, 6]
    assert [field.name for field in member_fields(schema.fields[1].type)] == ["k", "v"]


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b", "`a", "a`b", "`a`b", "``", "`a`.``"])
def test_what_is_not_a_path(path: str) -> None:
    """A path has names between its dots, and backticks come in pairs around a whole name."""
    with pytest.raises(UsageError, match="is not a column path"):
        parse_path(path)


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a", ("a",)),
        ("a.b", ("a", "b")),
        ("`a.b`.c", ("a.b", "c")),
        ("`a``b`", ("a`b",)),
        ("two words.x", ("two words", "x")),
    ],
)
def test_paths_are_split_at_dots_outside_backticks(path: str, steps: tuple[str, ...]) -> None:
    """A backtick inside backticks is doubled, and a dot there is part of the name."""
    assert parse_path(path) == steps
    assert parse_path(format_path(steps)) == steps

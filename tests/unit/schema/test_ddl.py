"""DDL text: what it means, and where exactly it is wrong."""

from __future__ import annotations

import pytest

from instar.errors import InvalidSchemaError, UnsupportedTypeError
from instar.schema import Decimal, List, Map, Primitive, Struct, parse_schema_ddl, parse_type_ddl
from instar.schema.ddl import UNSUPPORTED

INT = Primitive("int")


def refusal(text: str) -> InvalidSchemaError:
    """Return the error that a text is refused with."""
    with pytest.raises(InvalidSchemaError) as error:
        parse_schema_ddl(text)
    assert error.value.text == text
    return error.value


def test_columns_get_ids_from_one_parents_first() -> None:
    """Ids count up through the text, members after the struct that holds them."""
    schema = parse_schema_ddl("a int, s struct<b: int, t: struct<c: int>>, m map<struct<k: int>, int>, z int")
    assert list(schema.field_ids()) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [field.id for field in schema.fields] == [1, 2, 6, 8]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("a BYTE, b Short", "a tinyint, b smallint"),
        ("a integer, b long, c real", "a int, b bigint, c float"),
        ("a dec, b numeric(5), c decimal(7 , 3)", "a decimal(10,0), b decimal(5,0), c decimal(7,3)"),
        ("a timestamp_ltz NOT NULL", "a timestamp not null"),
        ("a:int,b : struct<c int,d:int not null>", "a int, b struct<c: int, d: int not null>"),
        ("a ARRAY<INT NOT NULL>", "a array<int not null>"),
        ("a map<string not null,int not null>", "a map<string, int not null>"),
        ("a INTERVAL YEAR TO MONTH, b interval Second", "a interval year to month, b interval second"),
        ("`a` int, `b c` int, `d``e` int", "a int, `b c` int, `d``e` int"),
        ("`1` int, x1 int, 1x struct<`é` int>", "`1` int, x1 int, `1x` struct<`é`: int>"),
    ],
)
def test_texts_print_in_one_way(text: str, canonical: str) -> None:
    """Whatever the spelling, a schema prints in lower case, one space apart, quoted only where needed."""
    assert str(parse_schema_ddl(text)) == canonical
    assert str(parse_schema_ddl(canonical)) == canonical


def test_a_type_alone_can_be_read() -> None:
    """A single type says whether it may be null; its members have provisional ids."""
    assert parse_type_ddl("int") == (INT, True)
    assert parse_type_ddl(" BIGINT not null ") == (Primitive("bigint"), False)
    assert parse_type_ddl("map<int, array<decimal(3,1) not null> not null>") == (
        Map(INT, List(Decimal(3, 1), element_nullable=False), value_nullable=False),
        True,
    )
    struct, _ = parse_type_ddl("struct<a: int, b: struct<c: int>>")
    assert isinstance(struct, Struct)
    for wrong in ("", "int,", "int int", "a int", "struct<a: int", "not null"):
        with pytest.raises(InvalidSchemaError):
            parse_type_ddl(wrong)


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 0, "a schema needs at least one column"),
        ("  \n", 0, "a schema needs at least one column"),
        ("a", 1, "expected a type, found 'the end'"),
        ("a int,", 6, "expected a column after ','"),
        ("a struct<b: int,>", 16, "expected a column after ','"),
        ("a int b int", 6, "expected ',' between columns, found 'b'"),
        ("a int, 1 int", 7, "column name '1' needs backticks around it"),
        ("é int", 0, "column name 'é' needs backticks around it"),
        ("a int, 'b' int", 7, "expected a column name, found \"'b'\""),
        ("a int, b foo", 9, "unknown type 'foo'"),
        ("a text", 2, "unknown type 'text': write string"),
        ("a integr", 2, "unknown type 'integr': write int"),
        (
            "a uuid",
            2,
            "type uuid cannot be stored: Spark has no such type; use string, or binary for its 16 bytes",
        ),
        ("a int, b array", 14, "expected '<' after array, found 'the end'"),
        ("a array<int, b int", 11, "expected '>' to close the array, found ','"),
        ("a map<int>", 9, "expected ',' between the key and the value of a map, found '>'"),
        ("a map<int, int", 14, "expected '>' to close the map, found 'the end'"),
        ("a int, b struct<>", 9, "a struct needs at least one member"),
        ("a struct<b: int", 15, "expected '>' to close the struct, found 'the end'"),
        ("a decimal(x)", 10, "expected the precision of a decimal, found 'x'"),
        ("a decimal(5,x)", 12, "expected the scale of a decimal, found 'x'"),
        ("a decimal(5,2", 13, "expected ')' to close the decimal, found 'the end'"),
        ("a decimal(39)", 2, "decimal(39,0) needs 1 <= precision <= 38 and 0 <= scale <= precision"),
        ("a int, b decimal(5,6)", 9, "decimal(5,6) needs 1 <= precision <= 38 and 0 <= scale <= precision"),
        ("a interval year to day", 2, "'interval year to day' is not an interval type"),
        ("a interval day to", 2, "'interval day to the end' is not an interval type"),
        ("a int - words", 6, "unexpected character '-'"),
        ("a int; b int", 5, "unexpected character ';'"),
        ("a int comment 'x'", 6, "a table does not keep COMMENT clauses; remove it"),
        ("a struct<b: int default 1>", 16, "a table does not keep DEFAULT clauses; remove it"),
        ("a int not null generated always as (1)", 15, "a table does not keep GENERATED clauses; remove it"),
        ("a int, _Ts int", 7, "column name `_Ts` is reserved: every part has a column of that name"),
        ("a int, b int, A int", 14, "column `A` appears twice (as `a`; case does not tell them apart)"),
        ("s struct<x: int, y: int, x: int>", 25, "column `x` appears twice in `s`"),
        ("a int, m map<map<int, int>, int>", 7, "the key of map `m` holds a map, and maps have no order"),
        ("a int, `` int", 7, "a column name is empty"),
    ],
)
def test_errors_say_where(text: str, position: int, problem: str) -> None:
    """A text that is no schema is refused with the offset of what is wrong with it."""
    error = refusal(text)
    assert (error.position, error.problem) == (position, problem)


def test_errors_show_the_line() -> None:
    """The message repeats the line that is wrong, and points at the place."""
    assert str(refusal("a int,\n  b foo,\nc int")) == (
        "unknown type 'foo'\n  line 2, column 5:\n      b foo,\n        ^"
    )


@pytest.mark.parametrize("name", sorted(set(UNSUPPORTED) - {"calendar interval"}))
def test_types_that_a_table_cannot_hold_are_refused_by_name(name: str) -> None:
    """Each Spark type without a place in a table is named, with what to use instead, at any depth."""
    for text, position in ((f"a {name}", 2), (f"a struct<b: array<{name.upper()}>>", 18)):
        error = refusal(text)
        assert isinstance(error, UnsupportedTypeError)
        assert error.type_name == name
        assert error.why == UNSUPPORTED[name]
        assert error.position == position


def test_intervals_without_units_and_collations_are_refused_by_name() -> None:
    """A calendar interval has no order, and a collation would change the order of strings."""
    for text, name in (("a interval", "interval"), ("a string collate UTF8_LCASE", "string collate …")):
        error = refusal(text)
        assert isinstance(error, UnsupportedTypeError)
        assert (error.type_name, error.position) == (name, 2)


@pytest.mark.parametrize("opening", ["array<", "map<int,", "struct<a:"])
def test_endless_nesting_is_refused_not_crashed_on(opening: str) -> None:
    """A text that nests thousands of levels gets an error with a position, not a recursion error."""
    error = refusal("x " + opening * 5000)
    assert error.problem == "fields are nested more than 64 levels deep"
    closed = refusal("x " + opening * 70 + "int" + ">" * 70)
    assert closed.problem == "fields are nested more than 64 levels deep"


def test_long_numbers_are_refused() -> None:
    """A precision of many digits is out of bounds, however many."""
    assert "needs 1 <= precision" in refusal("a decimal(" + "9" * 5000 + ")").problem

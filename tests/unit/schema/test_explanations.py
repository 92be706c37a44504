"""What changes and fences say: each kind once, in the words that a person reads."""

from __future__ import annotations

import pytest

from instar.errors import IncompatibleSchemaError, ReaderFencedError
from instar.schema import (
    ChangeKind,
    Field,
    History,
    List,
    Map,
    Primitive,
    Schema,
    Struct,
    check_reader,
    parse_schema_ddl,
)

INT = Primitive("int")
BIGINT = Primitive("bigint")
STRING = Primitive("string")


def history() -> History:
    """Return a table that once had a column `gone` (field 9)."""
    base = (
        Field(1, "a", INT, nullable=False),
        Field(2, "s", Struct((Field(3, "x", BIGINT), Field(4, "y", STRING)))),
        Field(5, "m", Map(STRING, List(INT))),
    )
    return History.start(Schema((*base, Field(9, "gone", INT)))).evolve(Schema(base))


A, S, M = history().latest.fields

CASES: dict[ChangeKind, tuple[tuple[Field, ...], str]] = {
    ChangeKind.ADDED: (
        (A, S, M, Field(6, "n", STRING)),
        "`n` (field 6) is added: data written before reads as null",
    ),
    ChangeKind.DELETED: (
        (A, S),
        "`m` (field 5) is deleted: its values are no longer read, and its id is never used again",
    ),
    ChangeKind.RENAMED: (
        (Field(1, "b", INT, nullable=False), S, M),
        "`b` (field 1) is renamed from `a`: a field is known by its id, so no data changes",
    ),
    ChangeKind.MADE_NULLABLE: (
        (Field(1, "a", INT), S, M),
        "`a` (field 1) becomes nullable: data written before has no nulls, and stays as it is",
    ),
    ChangeKind.WIDENED: (
        (Field(1, "a", BIGINT, nullable=False), S, M),
        "`a` (field 1) is widened from int to bigint: every int is also a bigint",
    ),
    ChangeKind.ADDED_REQUIRED: (
        (A, S, M, Field(6, "n", STRING, nullable=False)),
        (
            "`n` (field 6) cannot be added as not null: parts already written have no values for it. "
            "Add it as a nullable column"
        ),
    ),
    ChangeKind.MADE_REQUIRED: (
        (A, S, Field(5, "m", Map(STRING, List(INT, element_nullable=False)))),
        (
            "`m.value.element` (field 5) cannot become not null: parts already written may hold nulls. "
            "Leave it nullable"
        ),
    ),
    ChangeKind.NARROWED: (
        (A, Field(2, "s", Struct((Field(3, "x", INT), Field(4, "y", STRING)))), M),
        (
            "`s.x` (field 3) cannot be narrowed from bigint to int: parts already written hold values "
            "of bigint, which int cannot represent. Add a new column of type int instead"
        ),
    ),
    ChangeKind.RETYPED: (
        (A, Field(2, "s", INT), M),
        (
            "`s` (field 2) cannot change from struct<x: bigint, y: string> to int: "
            "parts already written hold values of struct<x: bigint, y: string>, which are not int. "
            "Add a new column of type int instead"
        ),
    ),
    ChangeKind.KEY_CHANGED: (
        (A, S, Field(5, "m", Map(INT, List(INT)))),
        (
            "`m.key` (field 5) cannot change its keys from string to int: keys that differ could become "
            "equal. Add a new map column instead"
        ),
    ),
    ChangeKind.REORDERED: (
        (S, A, M),
        (
            "the table cannot change the order of its fields to s, a, m: rows are sorted by the order "
            "a, s, m. Keep the fields that stay in this order"
        ),
    ),
    ChangeKind.RECREATED: (
        (A, S, M, Field(9, "new", INT)),
        (
            "`new` (field 9) cannot be created under this id: the id belongs to a deleted field whose values "
            "would come back. Use a new id"
        ),
    ),
    ChangeKind.MOVED: (
        (A, Field(2, "s", Struct((Field(3, "x", BIGINT),))), M, Field(4, "y", STRING)),
        (
            "`y` (field 4) cannot be created under this id: the id belongs to a field in another place. "
            "Use a new id"
        ),
    ),
}


def test_every_kind_of_change_has_a_case() -> None:
    """No kind is left without words."""
    assert set(CASES) == set(ChangeKind)


@pytest.mark.parametrize("kind", CASES)
def test_a_change_says_what_and_why_and_what_instead(kind: ChangeKind) -> None:
    """One sentence for what changes, one for why, and for what is refused one for what to do."""
    fields, words = CASES[kind]
    changes = [change for change in history().compare(Schema(fields)) if change.kind is kind]
    assert [str(change) for change in changes] == [words]
    assert changes[0].summary in words
    assert changes[0].reason in words


def test_old_and_new_are_in_the_words_of_ddl() -> None:
    """A change carries what was and what would be, or None where there is nothing."""
    fields = (Field(1, "a", STRING), Field(5, "m", M.type), Field(6, "n", INT))
    found = {change.kind: (change.old, change.new) for change in history().compare(Schema(fields))}
    assert found == {
        ChangeKind.DELETED: ("s struct<x: bigint, y: string>", None),
        ChangeKind.MADE_NULLABLE: ("not null", "nullable"),
        ChangeKind.RETYPED: ("int", "string"),
        ChangeKind.ADDED: (None, "n int"),
    }


def test_a_reordered_struct_is_named_by_its_path() -> None:
    """The order of members is a violation of their struct; only the members that stay are listed."""
    fields = (A, Field(2, "s", Struct((Field(4, "y", STRING), Field(7, "z", INT), Field(3, "w", BIGINT)))), M)
    (violation,) = history().check(Schema(fields))
    assert (violation.kind, violation.path, violation.ids) == (ChangeKind.REORDERED, "s", (2,))
    assert (violation.old, violation.new) == ("x, y", "y, x")


def test_an_incompatible_schema_lists_every_violation() -> None:
    """One violation stands in the sentence, several in a list; the history stays as it was."""
    with pytest.raises(IncompatibleSchemaError) as one:
        history().evolve(Schema((Field(1, "a", STRING), S, M)), "sales.orders")
    assert str(one.value).startswith("cannot evolve `sales.orders`: `a` (field 1) cannot change from int")
    with pytest.raises(IncompatibleSchemaError) as two:
        history().evolve(Schema((Field(1, "a", STRING), S, M, Field(9, "x", INT))))
    assert str(two.value).startswith("the schemas are not compatible: 2 changes break the rules:\n  - `a`")
    kinds = [violation.kind for violation in two.value.violations]  # type: ignore[attr-defined]
    assert kinds == [ChangeKind.RETYPED, ChangeKind.RECREATED]


def test_fences_say_which_schema_did_it() -> None:
    """Dropped, nullable and widened columns name the first schema since which the reader is stopped."""
    table = History.start(parse_schema_ddl("a int not null, b smallint, c int, s struct<d: int>"))
    reader = table.latest
    a, _, c, s = reader.fields
    table = table.evolve(Schema((a, Field(2, "b", INT), c, s)))
    table = table.evolve(Schema((Field(1, "z", INT), Field(2, "b", BIGINT), c, s)))
    table = table.evolve(Schema((Field(1, "z", INT), Field(2, "b", BIGINT), s)))
    fences = check_reader(table, reader)
    assert [str(fence) for fence in fences] == [
        "column `a` (field 1) may hold nulls since schema 2",
        "column `b` (field 2) is widened from smallint to bigint since schema 1",
        "column `c` (field 3) was dropped by schema 3",
    ]
    error = ReaderFencedError("sales.orders", fences, reader_schema=0, latest=3)
    assert str(error).endswith("Read without what changed, or open the table at schema 3.")


@pytest.mark.parametrize(
    ("reader", "words"),
    [
        (Schema((Field(1, "a", STRING),)), "column `a` (field 1) is int since schema 0, not string"),
        (
            Schema((Field(5, "m", Map(INT, List(INT))),)),
            "column `m.key` (field 5) has keys of string since schema 0, not int",
        ),
        (
            Schema((Field(77, "n", INT, nullable=False),)),
            "column `n` (field 77) is not null for this reader, but the table never had it",
        ),
        (
            Schema((Field(3, "x", BIGINT),)),
            "column `x` (field 3) is in another place of the table since schema 0",
        ),
        (Schema((Field(9, "gone", INT),)), "column `gone` (field 9) was dropped by schema 1"),
    ],
)
def test_readers_of_what_never_was_are_fenced_too(reader: Schema, words: str) -> None:
    """A schema that is no schema of the table, nor a projection of one, is told what does not fit."""
    assert [str(fence) for fence in check_reader(history(), reader)] == [words]


def test_a_reader_of_an_unknown_nullable_column_reads_nulls() -> None:
    """A column that the table does not have yet, and that may be null, fences nobody."""
    assert check_reader(history(), Schema((Field(77, "later", INT),))) == ()

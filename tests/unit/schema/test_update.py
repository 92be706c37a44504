"""`SchemaUpdate`: each step, by path and position, and what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar.errors import (
    AmbiguousEvolutionError,
    ColumnNotFoundError,
    IncompatibleSchemaError,
    InvalidSchemaError,
    UsageError,
)
from instar.schema import (
    ChangeKind,
    Field,
    History,
    List,
    Primitive,
    Schema,
    SchemaUpdate,
    Struct,
    parse_schema_ddl,
)

if TYPE_CHECKING:
    from collections.abc import Callable

INT = Primitive("int")
TEXT = (
    "id int not null, addr struct<city: string, zip: int not null>, "
    "tags array<struct<t: smallint> not null>, props map<string, float not null>, amounts array<decimal(5,2)>"
)


def update(text: str = TEXT) -> SchemaUpdate:
    """Begin an update of a table with one schema."""
    return SchemaUpdate(History.start(parse_schema_ddl(text)))


def kinds(step: SchemaUpdate) -> list[tuple[ChangeKind, str]]:
    """Return what an update changes."""
    return [(change.kind, change.path) for change in step.changes]


def ids(step: SchemaUpdate) -> dict[str, int]:
    """Return the ids of the columns by name."""
    return {field.name: field.id for field in step.schema.fields}


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ({}, "a b c x"),
        ({"first": True}, "x a b c"),
        ({"before": "a"}, "x a b c"),
        ({"before": "C"}, "a b x c"),
        ({"after": "a"}, "a x b c"),
        ({"after": "c"}, "a b c x"),
    ],
)
def test_a_column_is_added_where_it_is_said(place: dict[str, bool | str], names: str) -> None:
    """The place is the end, the start, or beside a sibling; columns and members alike."""
    added = update("a int, b int, c int").add_column("x", "string", **place)  # type: ignore[arg-type]
    assert " ".join(added.schema.names) == names
    assert kinds(added) == [(ChangeKind.ADDED, "x")]
    inside = update("s array<struct<a: int, b: int, c: int>>").add_column("s.element.x", "int", **place)  # type: ignore[arg-type]
    (column,) = inside.schema.fields
    assert isinstance(column.type, List)
    assert isinstance(column.type.element, Struct)
    assert " ".join(field.name for field in column.type.element.fields) == names
    assert kinds(inside) == [(ChangeKind.ADDED, "s.element.x")]


@pytest.mark.parametrize(
    "place", [{"first": True, "before": "a"}, {"before": "a", "after": "a"}, {"first": True, "after": "a"}]
)
def test_a_column_has_one_place(place: dict[str, bool | str]) -> None:
    """Two places at once are refused."""
    with pytest.raises(UsageError, match="give only one of first, before and after"):
        update("a int").add_column("x", "int", **place)  # type: ignore[arg-type]


def test_a_place_beside_nobody_is_refused() -> None:
    """A sibling that is not there is named, with those that are; other levels do not count."""
    for sibling in ("nope", "addr.city", "city"):
        with pytest.raises(ColumnNotFoundError) as error:
            update().add_column("x", "int", after=sibling)
        assert error.value.path == sibling
        assert error.value.known == ("id", "addr", "tags", "props", "amounts")


def test_new_fields_get_ids_that_were_never_used() -> None:
    """Each new field at every level counts on, past deleted ones, and never takes an id back."""
    history = History.start(parse_schema_ddl("a int, b struct<c: int>"))
    history = history.evolve(SchemaUpdate(history).drop_column("b").schema)
    step = SchemaUpdate(history).add_column("b", "struct<c: int, d: array<struct<e: int>>>")
    assert list(step.schema.field_ids()) == [1, 4, 5, 6, 7]
    step.drop_column("b").add_column("z", Struct((Field(1, "y", INT),)))
    assert list(step.schema.field_ids()) == [1, 8, 9]
    assert step.check() == ()


def test_a_column_may_be_given_as_a_type() -> None:
    """A type value is as good as its text, and is nullable."""
    assert str(update("a int").add_column("l", List(INT)).schema) == "a int, l array<int>"


def test_adding_as_not_null_is_said_to_be_against_the_rules() -> None:
    """The step is taken as it was given, and the check names it."""
    step = update("a int").add_column("b", "int not null")
    assert [(change.kind, change.path) for change in step.check()] == [(ChangeKind.ADDED_REQUIRED, "b")]


@pytest.mark.parametrize("path", ["ID", "addr.CITY", "tags.element.t"])
def test_a_name_that_is_taken_is_refused(path: str) -> None:
    """There is one column of a name in each struct, whatever its case."""
    with pytest.raises(UsageError, match=f"there is already a column `{path}`"):
        update().add_column(path, "int")


@pytest.mark.parametrize("path", ["id.x", "tags.x", "tags.element.t.x", "props.x", "props.value.x"])
def test_only_structs_have_members(path: str) -> None:
    """Adding to, dropping from or renaming in anything but a struct is refused by its path."""
    parent = path.rpartition(".")[0]
    steps: list[Callable[[], SchemaUpdate]] = [
        lambda: update().add_column(path, "int"),
        lambda: update().drop_column(path),
        lambda: update().rename_column(path, "y"),
    ]
    for step in steps:
        with pytest.raises(UsageError) as error:
            step()
        assert str(error.value) == f"`{parent}` is not a struct, so it has no member `{path}`"


@pytest.mark.parametrize("path", ["tags.element", "props.value", "props.key"])
def test_elements_keys_and_values_are_not_members(path: str) -> None:
    """They cannot be dropped or renamed: they are what a list or map is made of."""
    with pytest.raises(UsageError, match="is not a struct"):
        update().drop_column(path)
    with pytest.raises(UsageError, match="is not a struct"):
        update().rename_column(path, "y")


@pytest.mark.parametrize(
    ("path", "rest"),
    [("ADDR", ["id", "tags", "props", "amounts"]), ("addr.zip", ["id", "addr", "tags", "props", "amounts"])],
)
def test_a_column_is_dropped(path: str, rest: list[str]) -> None:
    """A drop takes a column or member away, found without regard to case."""
    step = update().drop_column(path)
    assert list(step.schema.names) == rest
    assert [kind for kind, _ in kinds(step)] == [ChangeKind.DELETED]


def test_the_last_column_cannot_be_dropped() -> None:
    """Neither a table nor a struct may become empty; after an addition the drop is fine."""
    with pytest.raises(UsageError, match="cannot drop `a`, the last column of the table"):
        update("a int").drop_column("a")
    with pytest.raises(
        UsageError, match=r"cannot drop `tags.element.t`, the last column of struct `tags.element`"
    ):
        update().drop_column("tags.element.t")
    step = update("a int").add_column("b", "int").drop_column("a")
    assert step.schema.names == ("b",)
    assert step.check() == ()


def test_a_rename_keeps_the_id() -> None:
    """A new name, even one that needs quotes or differs only in case, is the same field."""
    step = update().rename_column("addr.city", "big city").rename_column("id", "ID")
    assert kinds(step) == [(ChangeKind.RENAMED, "ID"), (ChangeKind.RENAMED, "addr.`big city`")]
    assert ids(step)["ID"] == 1
    assert step.rename_column("addr.`big city`", "city").rename_column("ID", "id").changes == ()


def test_a_name_is_free_after_a_drop_or_rename() -> None:
    """The same name with another id is another field."""
    step = update("a int, b int").drop_column("a").add_column("a", "string")
    assert ids(step) == {"b": 2, "a": 3}
    swapped = update("a int, b int").rename_column("a", "c").rename_column("b", "a").rename_column("c", "b")
    assert ids(swapped) == {"b": 1, "a": 2}
    assert swapped.check() == ()


def test_a_rename_to_a_name_that_is_taken_is_no_schema() -> None:
    """Two columns of one name are refused when the schema is asked for."""
    with pytest.raises(InvalidSchemaError, match="appears twice"):
        _ = update().rename_column("id", "ADDR").schema


@pytest.mark.parametrize("path", ["id", "addr.zip", "tags.element", "props.value"])
def test_what_is_not_null_may_become_nullable(path: str) -> None:
    """Columns, members, elements and values alike."""
    step = update().make_nullable(path)
    assert kinds(step) == [(ChangeKind.MADE_NULLABLE, path)]
    assert step.check() == ()
    assert step.make_nullable(path).schema == step.schema


@pytest.mark.parametrize(
    ("path", "wider"),
    [
        ("id", "bigint"),
        ("addr.zip", "double"),
        ("tags.element.t", "int"),
        ("props.value", "double"),
        ("amounts.element", "decimal(9,3)"),
    ],
)
def test_types_may_be_widened(path: str, wider: str) -> None:
    """Columns, members, elements and values alike; whether they may be null stays as it was."""
    step = update().widen_column(path, wider)
    assert kinds(step) == [(ChangeKind.WIDENED, path)]
    assert step.check() == ()


def test_a_type_that_is_not_wider_is_against_the_rules() -> None:
    """The step is taken as it was given, and the check names it."""
    step = update().widen_column("id", "smallint").widen_column("addr.zip", Primitive("string"))
    assert [(change.kind, change.path) for change in step.check()] == [
        (ChangeKind.NARROWED, "id"),
        (ChangeKind.RETYPED, "addr.zip"),
    ]


@pytest.mark.parametrize("path", ["props.key", "props.KEY", "m.key.k"])
def test_a_maps_key_never_changes(path: str) -> None:
    """Every step on a key or inside one is refused."""
    text = TEXT + ", m map<struct<k: int not null>, int>"
    with pytest.raises(UsageError, match="is a map's key, which never changes"):
        update(text).make_nullable(path)
    with pytest.raises(UsageError, match="is a map's key, which never changes"):
        update(text).widen_column(path, "bigint")


@pytest.mark.parametrize(
    "path", ["nope", "addr.nope", "tags.nope", "tags.element.nope", "props.element", "id.x"]
)
def test_what_is_not_there_is_named(path: str) -> None:
    """A path that leads nowhere is refused with the paths that there are."""
    with pytest.raises(ColumnNotFoundError) as error:
        update().make_nullable(path)
    assert error.value.path == path
    assert error.value.known == (
        *("id", "addr", "addr.city", "addr.zip", "tags", "tags.element", "tags.element.t"),
        *("props", "props.value", "amounts", "amounts.element"),
    )


def test_a_drop_or_rename_of_nothing_is_named() -> None:
    """The same for steps on members."""
    with pytest.raises(ColumnNotFoundError, match=r"Did you mean `addr.city`\?"):
        update().drop_column("addr.cit")
    with pytest.raises(ColumnNotFoundError):
        update().rename_column("nope.x", "y")


def test_names_that_look_like_steps_are_names() -> None:
    """A member called element, key or value is found by that name, and a dotted one in backticks."""
    text = "s struct<element: int not null, value: int, key: int>, `a.b` struct<`c.d`: int, e: int>"
    step = update(text).make_nullable("s.element").drop_column("s.key").rename_column("`a.b`.`c.d`", "f")
    assert str(step.schema) == "s struct<element: int, value: int>, `a.b` struct<f: int, e: int>"


def test_an_update_without_a_table_cannot_be_committed() -> None:
    """It is good for its schema only."""
    with pytest.raises(UsageError, match="belongs to no table"):
        update().commit()


def test_a_commit_hands_over_the_schema() -> None:
    """All steps together are one new schema, and the answer is its id."""
    taken: list[Schema] = []

    def commit(schema: Schema) -> int:
        taken.append(schema)
        return 7

    step = SchemaUpdate(History.start(parse_schema_ddl("a int")), commit).add_column("b", "int")
    assert step.commit() == 7
    assert taken == [step.schema]


def test_a_commit_against_the_rules_raises_with_every_violation() -> None:
    """Nothing is handed over, and each violation is there."""
    step = SchemaUpdate(History.start(parse_schema_ddl("a int, b int")), lambda _: pytest.fail("committed"))
    step.widen_column("a", "string").add_column("c", "int not null")
    with pytest.raises(IncompatibleSchemaError) as error:
        step.commit()
    assert error.value.violations == step.check()
    assert len(error.value.violations) == 2


# --- evolve_to ------------------------------------------------------------------------------------


def test_evolving_to_a_text_matches_by_name() -> None:
    """Fields of the same name in the same place keep their ids, whatever their case; others get new ones."""
    step = update("a int not null, S struct<x: int, y: int>, l array<struct<p: smallint>>")
    step.evolve_to("A int, n string, s struct<X: bigint, y: int, z: int>, l array<struct<p: int, q: int>>")
    assert step.check() == ()
    assert kinds(step) == [
        (ChangeKind.RENAMED, "A"),
        (ChangeKind.MADE_NULLABLE, "A"),
        (ChangeKind.ADDED, "n"),
        (ChangeKind.RENAMED, "s"),
        (ChangeKind.RENAMED, "s.X"),
        (ChangeKind.WIDENED, "s.X"),
        (ChangeKind.ADDED, "s.z"),
        (ChangeKind.WIDENED, "l.element.p"),
        (ChangeKind.ADDED, "l.element.q"),
    ]


def test_evolving_to_a_schema_goes_by_ids() -> None:
    """An instar schema says which field is which: another name is a rename, and an old name may be new."""
    step = update("a int, b int").evolve_to(Schema((Field(1, "b", INT), Field(9, "a", INT))))
    assert kinds(step) == [(ChangeKind.DELETED, "b"), (ChangeKind.RENAMED, "b"), (ChangeKind.ADDED, "a")]
    assert step.check() == ()


@pytest.mark.parametrize(
    ("old", "new", "candidates"),
    [
        ("a int", "b int", [("a", "b")]),
        ("a int", "b bigint", [("a", "b")]),
        ("a int, k int", "k int, b int, c double", [("a", "b"), ("a", "c")]),
        ("s struct<a: int>", "s struct<b: int>", [("s.a", "s.b")]),
        ("l array<struct<a: int>>", "l array<struct<b: int>>", [("l.element.a", "l.element.b")]),
        ("m map<int, struct<a: int>>", "m map<int, struct<b: int>>", [("m.value.a", "m.value.b")]),
        ("a struct<x: int>", "b struct<y: int>", [("a", "b")]),
        ("a array<int>", "b array<bigint>", [("a", "b")]),
        ("a map<int, int>", "b map<int, int>", [("a", "b")]),
        ("`a.b` int", "`c d` int", [("`a.b`", "`c d`")]),
        ("a decimal(5,2)", "b decimal(7,2)", [("a", "b")]),
    ],
)
def test_a_rename_or_a_drop_and_an_add_is_not_guessed(
    old: str, new: str, candidates: list[tuple[str, str]]
) -> None:
    """If a name vanishes beside one that appears, and a rename is possible, only the caller can tell."""
    with pytest.raises(AmbiguousEvolutionError) as error:
        update(old).evolve_to(new)
    assert list(error.value.candidates) == candidates
    for gone, came in candidates:
        assert f"is `{came}` the old `{gone}` renamed, or a new column?" in str(error.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a int, k int", "k int, b string"),
        ("a bigint, k int", "k int, b int"),
        ("a array<int>, k int", "k int, b array<string>"),
        ("a map<int, int>, k int", "k int, b map<string, int>"),
        ("a map<int, int>, k int", "k int, b map<int, string>"),
        ("a struct<x: int>, k int", "k int, b array<int>"),
        ("a int, k struct<x: int>", "k struct<x: int, b: int>"),
    ],
)
def test_what_can_only_be_a_drop_and_an_add_is_done(old: str, new: str) -> None:
    """If no rename could lead from one to the other, there is nothing to decide."""
    step = update(old).evolve_to(new)
    assert step.check() == ()
    assert {kind for kind, _ in kinds(step)} == {ChangeKind.DELETED, ChangeKind.ADDED}


def test_ambiguity_is_resolved_by_saying_so_first() -> None:
    """Renaming or dropping first decides it, and the rest follows by name."""
    renamed = update("a int, k int").rename_column("a", "b").evolve_to("b bigint, k int")
    assert ids(renamed) == {"b": 1, "k": 2}
    replaced = update("a int, k int").drop_column("a").evolve_to("k int, b bigint")
    assert ids(replaced) == {"k": 2, "b": 3}
    assert renamed.check() == replaced.check() == ()


def test_a_failed_evolution_leaves_the_update_as_it_was() -> None:
    """After an ambiguity, or a text that cannot be read, the steps before still stand."""
    step = update("a int").add_column("c", "int")
    before = step.schema
    with pytest.raises(AmbiguousEvolutionError):
        step.evolve_to("b int, c int")
    with pytest.raises(InvalidSchemaError):
        step.evolve_to("nonsense")
    assert step.schema == before


def test_evolving_to_a_changed_key_or_order_is_taken_to_the_rules() -> None:
    """Matching decides nothing about what is permitted: the check does."""
    step = update("a int, m map<struct<k: int>, int>").evolve_to("m map<struct<k: bigint>, int>, a int")
    assert [(change.kind, change.path) for change in step.check()] == [
        (ChangeKind.REORDERED, ""),
        (ChangeKind.KEY_CHANGED, "m.key"),
    ]
    same = update("m map<struct<k: int>, int>").evolve_to("m map<struct<k: int>, bigint>")
    assert kinds(same) == [(ChangeKind.WIDENED, "m.value")]
    renamed = update("m map<struct<k: int>, int>").evolve_to("m map<struct<K: int>, int>")
    assert kinds(renamed) == [(ChangeKind.KEY_CHANGED, "m.key")]
    retyped = update("a int").evolve_to("a struct<x: int>")
    assert kinds(retyped) == [(ChangeKind.RETYPED, "a")]


def test_evolving_to_arrow_or_what_there_is() -> None:
    """Every form of a schema will do, and the schema that is already there changes nothing."""
    step = update("a int").evolve_to(pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.string())]))
    assert kinds(step) == [(ChangeKind.WIDENED, "a"), (ChangeKind.ADDED, "b")]
    assert update().evolve_to(TEXT).changes == ()
    assert update().evolve_to(parse_schema_ddl(TEXT)).changes == ()

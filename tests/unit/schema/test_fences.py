"""Who is fenced and who goes on: one fact each."""

from __future__ import annotations

import pytest

from instar.schema import ChangeKind, History, Schema, SchemaUpdate, check_reader, parse_schema_ddl

START = parse_schema_ddl(
    "a int not null, b smallint, s struct<x: int not null, y: float>, "
    "l array<struct<p: int> not null>, m map<string, tinyint not null>"
)


def after(step: str, path: str, *more: str) -> History:
    """Return a table to which one thing happened."""
    history = History.start(START)
    update = SchemaUpdate(history)
    getattr(update, step)(path, *more)
    return history.evolve(update.schema)


FENCED = [
    ("make_nullable", "a", (), ChangeKind.MADE_REQUIRED),
    ("make_nullable", "s.x", (), ChangeKind.MADE_REQUIRED),
    ("make_nullable", "l.element", (), ChangeKind.MADE_REQUIRED),
    ("make_nullable", "m.value", (), ChangeKind.MADE_REQUIRED),
    ("widen_column", "b", ("int",), ChangeKind.NARROWED),
    ("widen_column", "s.y", ("double",), ChangeKind.NARROWED),
    ("widen_column", "l.element.p", ("bigint",), ChangeKind.NARROWED),
    ("widen_column", "m.value", ("double",), ChangeKind.NARROWED),
    ("drop_column", "b", (), ChangeKind.RECREATED),
    ("drop_column", "s.y", (), ChangeKind.RECREATED),
]
UNDISTURBED = [
    ("rename_column", "a", ("z",)),
    ("rename_column", "s", ("z",)),
    ("rename_column", "s.x", ("z",)),
    ("rename_column", "l.element.p", ("z",)),
    ("add_column", "n", ("int",)),
    ("add_column", "s.n", ("int",)),
    ("add_column", "l.element.n", ("int",)),
]


@pytest.mark.parametrize(("step", "path", "more", "kind"), FENCED)
def test_a_change_to_what_is_read_fences(
    step: str, path: str, more: tuple[str, ...], kind: ChangeKind
) -> None:
    """What becomes nullable, wider or deleted stops a reader of it, and the fence names it."""
    (fence,) = check_reader(after(step, path, *more), START)
    assert (fence.kind, fence.path, fence.by_schema) == (kind, path, 1)
    assert fence.ids[0] == START.load_column(path.split(".", maxsplit=1)[0]).id


@pytest.mark.parametrize(("step", "path", "more", "kind"), FENCED)
def test_a_change_to_what_is_not_read_fences_nobody(
    step: str, path: str, more: tuple[str, ...], kind: ChangeKind
) -> None:
    """The same changes leave a reader of the other columns alone."""
    column = path.split(".", maxsplit=1)[0]
    others = START.select([name for name in START.names if name != column])
    assert check_reader(after(step, path, *more), others) == ()


@pytest.mark.parametrize(("step", "path", "more"), UNDISTURBED)
def test_renaming_and_adding_fence_nobody(step: str, path: str, more: tuple[str, ...]) -> None:
    """A reader keeps its own name for what it reads, and does not see what was added."""
    assert check_reader(after(step, path, *more), START) == ()


def test_a_reader_chooses_its_order() -> None:
    """A projection in another order is still a projection."""
    assert check_reader(History.start(START), START.select(["m", "a", "s"])) == ()
    assert check_reader(History.start(START), Schema(START.fields[::-1])) == ()


def test_a_reader_of_a_dropped_struct_is_told_about_all_of_it() -> None:
    """The struct and each member that was read have a fence, each by the schema that dropped it."""
    history = after("drop_column", "s.x")
    history = history.evolve(SchemaUpdate(history).drop_column("s").schema)
    fences = check_reader(history, START.select(["s"]))
    assert [(fence.path, fence.by_schema) for fence in fences] == [("s", 2), ("s.x", 1), ("s.y", 2)]
    assert {fence.kind for fence in fences} == {ChangeKind.RECREATED}


def test_the_first_schema_that_stood_in_the_way_is_named() -> None:
    """Widening once more does not make the fence any younger."""
    history = after("widen_column", "b", "int")
    history = history.evolve(SchemaUpdate(history).widen_column("b", "bigint").schema)
    (fence,) = check_reader(history, START)
    assert (fence.by_schema, fence.old, fence.new) == (1, "bigint", "smallint")
    (fence,) = check_reader(history, history.schemas[1])
    assert (fence.by_schema, fence.old, fence.new) == (2, "bigint", "int")

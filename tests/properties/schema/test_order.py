"""What migrations do to sorted rows, seen on the migrated rows themselves."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.schema import (
    History,
    Schema,
    SchemaUpdate,
    needs_consolidation,
    parse_schema_ddl,
    preserves_order,
)
from tests.properties.schema.data import random_rows
from tests.properties.schema.ordering import collapses, small_changes, sort_keys, stays_sorted
from tests.properties.schema.strategies import histories, thorough

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Change = tuple[Schema, Schema, tuple[int, ...]]
    Predicate = Callable[[Schema, Schema, Sequence[int]], bool]


def dropping(ddl: str, path: str, order_by: Sequence[str] = ()) -> Change:
    """Return a schema, the same without one column, and the ids that its rows are sorted by first."""
    old = parse_schema_ddl(ddl)
    new = SchemaUpdate(History.start(old)).drop_column(path).schema
    return old, new, tuple(old.load_column(name).id for name in order_by)


BROKEN = {
    "the first column": dropping("a int, b int", "a"),
    "a column in the middle": dropping("a int, b int, c int", "b"),
    "the last member of a struct that is not last": dropping("s struct<a: int, b: int>, c int", "s.b"),
    "a member before another": dropping("s struct<a: int, b: int>", "s.a"),
    "the last member of an inner struct that is not last": dropping(
        "s struct<t: struct<a: boolean, b: boolean>, c: boolean>", "s.t.b"
    ),
    "the last member of an element": dropping(
        "l array<struct<a: int not null, b: int not null>>", "l.element.b"
    ),
    "a member inside an element's element": dropping(
        "l array<array<struct<a: int not null, b: int not null> not null> not null> not null",
        "l.element.element.b",
    ),
    "the last member of a map's value": dropping("m map<int, struct<a: int, b: int>>", "m.value.b"),
    "the last member of a value's list": dropping(
        "m map<int, array<struct<a: boolean not null, b: boolean not null> not null> not null>",
        "m.value.element.b",
    ),
    "the column that rows are sorted by": dropping("a int, b int", "b", order_by=["b"]),
    "the first of two that rows are sorted by": dropping("a int, b int, c int", "b", order_by=["b", "a"]),
    "the member that rows are sorted by": dropping(
        "a int, s struct<b: int, c: int>", "s.b", order_by=["s.b"]
    ),
    "the struct of the member that rows are sorted by": dropping(
        "a int, s struct<b: int>", "s", order_by=["s.b"]
    ),
    "a struct before others": dropping("s struct<a: int>, b int", "s"),
    "a column before a list": dropping("a int, l array<int> not null", "a"),
    "a column before a map": dropping("a int, m map<int, int> not null", "a"),
    "a column before a struct that may be null": dropping("a int, s struct<b: int>", "a"),
}
KEPT = {
    "the last column": dropping("a int, b int", "b"),
    "the last member of the last struct": dropping("a int, s struct<b: int, c: int>", "s.c"),
    "the last member of the last inner struct": dropping(
        "s struct<a: int, t: struct<b: int, c: int>>", "s.t.c"
    ),
    "a last list": dropping("a int, l array<struct<b: int>>", "l"),
    "the first column, where rows are sorted by the other": dropping("a int, b int", "a", order_by=["b"]),
    "a column after those that rows are sorted by": dropping("a int, b int, c int", "a", order_by=["b", "c"]),
}


@thorough
@given(small_changes())
def test_order_that_is_said_to_be_kept_is_kept(case: Change) -> None:
    """Rows over a few values, sorted and migrated, are sorted if `preserves_order` says so, and only then.

    Only then: unless a member of a struct comes first, for then something is compared twice, and the
    answer may be no although the rows stay sorted.
    """
    old, new, order_by = case
    said, seen = preserves_order(old, new, order_by), stays_sorted(old, new, order_by)
    columns = {field.id for field in old.fields}
    assert said == seen or (seen and not columns.issuperset(order_by))


@given(small_changes())
def test_rows_are_said_to_collapse_exactly_if_they_do(case: Change) -> None:
    """`needs_consolidation` is right both ways about all rows over a few values."""
    old, new, _ = case
    assert needs_consolidation(old, new) == collapses(old, new)


@given(st.data())
def test_rows_of_every_type_stay_sorted_where_it_is_said(data: st.DataObject) -> None:
    """The same on random rows of every type and nesting, with NaN, both zeros and extreme values."""
    schemas = data.draw(histories(most=3))
    old, new = schemas[0], schemas[-1]
    order_by = data.draw(
        st.lists(st.sampled_from([field.id for field in old.fields]), max_size=2, unique=True)
    )
    rows = random_rows(Random(data.draw(st.integers(0, 2**32))), old, 12)
    before, after = sort_keys(rows + rows[:2], old, new, order_by)
    if preserves_order(old, new, order_by):
        assert all(one <= two for one, two in pairwise(after))
    if not needs_consolidation(old, new):
        assert len(set(before)) == len(set(after))


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_order_that_is_said_to_be_lost_is_lost(case: Change) -> None:
    """Dropping what is compared before something that stays leaves rows out of order."""
    old, new, order_by = case
    assert not preserves_order(old, new, order_by)
    assert not stays_sorted(old, new, order_by)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_dropping_what_is_compared_last_keeps_order_but_not_distinctness(case: Change) -> None:
    """Dropping a tail of what is compared leaves rows sorted, and rows that differed may be equal."""
    old, new, order_by = case
    assert preserves_order(old, new, order_by)
    assert stays_sorted(old, new, order_by)
    assert needs_consolidation(old, new)
    assert collapses(old, new)


@pytest.mark.parametrize("order_by", [(), (2,), (2, 1)])
def test_changes_without_a_drop_keep_order_and_distinctness(order_by: tuple[int, ...]) -> None:
    """Adding anywhere, renaming, making nullable and widening leave sorted rows sorted and different."""
    old = parse_schema_ddl("a int not null, f float, s struct<b: tinyint not null>")
    new = (
        SchemaUpdate(History.start(old))
        .add_column("x", "int", first=True)
        .add_column("s.y", "string", first=True)
        .rename_column("a", "z")
        .make_nullable("z")
        .widen_column("z", "double")
        .widen_column("f", "double")
        .widen_column("s.b", "bigint")
        .schema
    )
    assert preserves_order(old, new, order_by)
    assert stays_sorted(old, new, order_by)
    assert not needs_consolidation(old, new)
    assert not collapses(old, new)


def test_being_null_is_compared_though_no_member_is_left() -> None:
    """A struct whose members were all replaced still tells a null struct from one of nulls."""
    old = parse_schema_ddl("a int, s struct<b: int>")
    update = SchemaUpdate(History.start(old)).add_column("s.c", "int").drop_column("s.b")
    kept, broken = update.schema, update.drop_column("a").schema
    assert preserves_order(old, kept)
    assert stays_sorted(old, kept)
    assert not preserves_order(old, broken)
    assert not stays_sorted(old, broken)


def test_the_example_of_the_design() -> None:
    """({1,1},5), ({1,2},3) becomes (1,5), (1,3): sorted before, not after."""
    old, new, _ = dropping("s struct<a: int, b: int>, c int", "s.b")
    rows = [{1: {2: 1, 3: 1}, 4: 5}, {1: {2: 1, 3: 2}, 4: 3}]
    before, after = sort_keys(rows, old, new)
    assert before == sorted(before)
    assert after != sorted(after)


def test_order_by_a_field_that_is_no_longer_there_is_ignored() -> None:
    """A table sorted by a column that an earlier schema dropped is sorted by what else there is."""
    old, new, _ = dropping("a int, b int", "b")
    assert preserves_order(old, new, [99])
    assert preserves_order(old, new, [99, 1])
    assert not preserves_order(old, new, [2, 99, 1])


@pytest.mark.parametrize("liar", [lambda *_: True, lambda *_: False], ids=["always yes", "always no"])
def test_these_tests_would_notice_a_wrong_answer(liar: Predicate) -> None:
    """An answer that is always yes, or always no, differs from what the rows show in some case above."""
    cases = [*BROKEN.values(), *KEPT.values()]
    assert any(liar(*case) != stays_sorted(*case) for case in cases)

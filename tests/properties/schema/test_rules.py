"""The rules of evolution against a checker that was written independently of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import given

from instar.schema import PERMITTED, History, Schema, compare
from instar.schema.rules import can_widen
from tests.properties.schema.checker import Finding, expected_changes, is_wider
from tests.properties.schema.strategies import leaf_types, mutations, next_schemas, thorough

if TYPE_CHECKING:
    from instar.schema import Type

    Case = tuple[tuple[Schema, ...], Schema]


def found_changes(history: History, new: Schema) -> Counter[Finding]:
    """Return what instar finds, without its words."""
    return Counter(Finding(change.kind, change.path, change.ids) for change in history.compare(new))


@thorough
@given(mutations())
def test_changes_are_exactly_those_of_the_brute_force_checker(case: Case) -> None:
    """Every change is named once, by its kind, path and ids, and nothing else is."""
    schemas, new = case
    history = History.fold(schemas)
    expected = Counter(expected_changes(schemas, new))
    assert found_changes(history, new) == expected
    violations = Counter(Finding(change.kind, change.path, change.ids) for change in history.check(new))
    assert violations == Counter({f: n for f, n in expected.items() if f.kind not in PERMITTED})


@given(next_schemas())
def test_what_obeys_the_rules_is_accepted(case: Case) -> None:
    """A schema made of permitted changes has no violation, and becomes the latest one."""
    schemas, new = case
    history = History.fold(schemas)
    assert history.check(new) == ()
    assert {change.kind for change in history.compare(new)} <= PERMITTED
    assert history.evolve(new).latest == new


@given(mutations())
def test_a_schema_is_accepted_exactly_if_nothing_is_against_the_rules(case: Case) -> None:
    """What is refused by `check` is refused by `compare` against the fold, and each refusal says why."""
    schemas, new = case
    history = History.fold(schemas)
    changes = compare(history.migration_type, new)
    assert changes == history.compare(new)
    assert history.check(new) == tuple(change for change in changes if not change.permitted)
    for change in changes:
        assert change.summary
        assert change.reason
        assert change.reason in str(change)


@thorough
@given(leaf_types(), leaf_types())
def test_a_type_widens_only_along_the_steps_of_the_design(old: Type, new: Type) -> None:
    """One type widens into another exactly if a chain of the listed steps leads there."""
    assert can_widen(old, new) == is_wider(old, new)

"""Versions are text that compares as numbers do."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.errors import UsageError
from instar.stream import as_version


def test_versions_compare_as_numbers() -> None:
    """`v0.0.9999` comes before `v0.0.10000`, which it does not as text."""
    assert as_version("v0.0.9999") < as_version("v0.0.10000")
    assert max([as_version("v0.0.10"), as_version("v0.0.9")]) == "v0.0.10"
    assert as_version("v0.0.2") <= "v0.0.2" < as_version("v0.1")
    assert as_version("v0.1") > "v0.0.2"


def test_a_version_has_one_form() -> None:
    """Leading zeros, missing numbers and a missing `v` make no other version."""
    assert as_version("1") == as_version("v1.0") == as_version("v1.0.0.0") == "v1.0.0"
    assert as_version("v0.0.06001") == "v0.0.6001"
    assert hash(as_version("1.2")) == hash("v1.2.0")


@given(st.lists(st.lists(st.integers(0, 10**17), min_size=1, max_size=5), min_size=2, max_size=5))
def test_versions_sort_as_their_numbers_do(numbers: list[list[int]]) -> None:
    """Sorting versions is sorting what their numbers say, missing ones being 0."""
    texts = [".".join(map(str, each)) for each in numbers]
    random.Random(0).shuffle(texts)
    ordered = sorted(map(as_version, texts))
    padded = sorted([*each, *[0] * (8 - len(each))] for each in numbers)
    assert [[*version.numbers, *[0] * (8 - len(version.numbers))] for version in ordered] == padded


@pytest.mark.parametrize(
    "text", ["", "v", "v1.", "v1..2", "v-1", "va", "1.2-rc1", "v\uff11", " v1", "v1\n", 7]
)
def test_what_is_no_version_is_refused(text: str) -> None:
    """A version is numbers with dots between them, and nothing else."""
    with pytest.raises(UsageError, match="is not a schema version"):
        as_version(text)

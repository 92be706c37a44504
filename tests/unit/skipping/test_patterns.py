"""LIKE patterns: the prefix that every match has, with or without a known escape character."""

from __future__ import annotations

import pytest

from instar.skipping.kernels.patterns import read_pattern


@pytest.mark.parametrize(
    ("pattern", "escape", "prefix", "rest"),
    [
        ("abc", "\\", "abc", ""),
        ("ab%", "\\", "ab", "%"),
        ("a_c%", "\\", "a", "_c%"),
        ("a\\%b%", "\\", "a%b", "%"),
        ("a!%b%", "!", "a%b", "%"),
        ("a!!b", "!", "a!b", ""),
        ("%a", "\\", "", "%a"),
        ("", "\\", "", ""),
    ],
)
def test_what_stands_before_the_first_wildcard_is_a_prefix(
    pattern: str, escape: str, prefix: str, rest: str
) -> None:
    """An escaped wildcard is an ordinary character."""
    assert read_pattern(pattern, escape) == (prefix, rest)


@pytest.mark.parametrize(("pattern", "escape"), [("a\\b", "\\"), ("a\\", "\\"), ("%a!b", "!")])
def test_a_bad_escape_makes_a_pattern_invalid(pattern: str, escape: str) -> None:
    """Spark refuses it, so nothing is said about its matches."""
    assert read_pattern(pattern, escape) is None


@pytest.mark.parametrize(
    ("pattern", "prefix"),
    [
        ("ab%", "a"),
        ("k00012%", "k0001"),
        ("aab_", "a"),
        ("abc", "abc"),
        ("%x", ""),
        ("a!%b%", "a"),
        ("!!x", "!"),
    ],
)
def test_without_the_escape_only_what_all_readings_share_counts(pattern: str, prefix: str) -> None:
    """The character before a wildcard, or one that is doubled, may be the escape."""
    found = read_pattern(pattern, None)
    assert found is not None
    assert found.prefix == prefix
    assert found.rest == "?"

"""LIKE patterns: the characters that every match begins with, and what follows them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Pattern", "read_pattern"]

_WILD = ("%", "_")


class Pattern(NamedTuple):
    """What a pattern begins with, and the rest from its first wildcard on."""

    prefix: str
    rest: str


def read_pattern(pattern: str, escape: str | None) -> Pattern | None:
    """Take a pattern apart, or return None if Spark would refuse it.

    Without an escape character it is not known which one is meant, and then only as much of the prefix is
    returned as is the same whatever it is.
    """
    if escape is None:
        return _whatever_escapes(pattern)
    prefix = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == escape:
            if position + 1 == len(pattern) or pattern[position + 1] not in (*_WILD, escape):
                return None
            position += 1
            prefix.append(pattern[position])
        elif character in _WILD:
            break
        else:
            prefix.append(character)
        position += 1
    rest = pattern[position:]
    # A bad escape further on is an error too.
    return Pattern("".join(prefix), rest) if rest == "" or _is_valid(rest, escape) else None


def _is_valid(pattern: str, escape: str) -> bool:
    position = 0
    while position < len(pattern):
        if pattern[position] == escape:
            position += 1
            if position == len(pattern) or pattern[position] not in (*_WILD, escape):
                return False
        position += 1
    return True


def _whatever_escapes(pattern: str) -> Pattern:
    """Stop before the first character that could be an escape: one that is doubled, or before a wildcard."""
    for position, character in enumerate(pattern):
        after = pattern[position + 1 : position + 2]
        if character in _WILD or after in (*_WILD, character):
            return Pattern(pattern[:position], "?")
    return Pattern(pattern, "?")

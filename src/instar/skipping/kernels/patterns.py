"""Patterns of LIKE and regular expressions: what every match begins with, and what follows."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Anchored", "Pattern", "read_anchored", "read_pattern"]

_WILD = ("%", "_")
_REPLACED = "\ufffd"
"""What Java takes bytes for that are no text."""
_LONGEST = 200
_LETTER = r"(?:[\w \-@#/:;,=<>!~%&'\"]|[^\x00-\x7f])"
_ANCHORED = re.compile(
    rf"\^({_LETTER}*)"
    rf"(?:\((?:\?:)?({_LETTER}+(?:\|{_LETTER}+)*)\))?"  # one of several words
    r"((?:\.[*+]?|\[(?:0-9|a-z|A-Z|\w)+\][*+]?|[A-Za-z0-9 _-][*+?]?)*)(\$?)"  # what may follow
)


class Anchored(NamedTuple):
    """What a regular expression may begin with, and whether it says more than that."""

    prefixes: tuple[str, ...]
    more: bool


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


def read_anchored(pattern: str) -> Anchored | None:
    """Take a regular expression apart that begins with ^, or return None if it is not plainly one."""
    match = _ANCHORED.fullmatch(pattern) if len(pattern) <= _LONGEST else None
    if match is None:
        return None
    prefix, words, rest, end = match.groups()
    prefixes = tuple(prefix + word for word in (words or "").split("|"))
    return None if _REPLACED in pattern else Anchored(prefixes, more=bool(rest or end))


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
    """Return what all readings begin with: that without an escape, and each one that makes sense."""
    readings = [read_pattern(pattern, character) for character in sorted(set(pattern))]
    prefixes = [_plain(pattern), *(found.prefix for found in readings if found is not None)]
    shared = 0
    while all(prefix[: shared + 1] == prefixes[0][: shared + 1] for prefix in prefixes) and shared < min(
        map(len, prefixes)
    ):
        shared += 1
    return Pattern(prefixes[0][:shared], "?")


def _plain(pattern: str) -> str:
    """Return what stands before the first wildcard."""
    ends = [pattern.index(wild) for wild in _WILD if wild in pattern]
    return pattern[: min(ends, default=len(pattern))]

"""The error tree is total: whatever instar raises has a code, an answer and a place in the docs."""

from __future__ import annotations

import inspect
import re

import pytest

from instar import errors
from instar.errors import DISPOSITIONS, InstarError, disposition
from tests.meta.modules import import_all
from tools.generate_docs import error_classes

import_all()
CLASSES = list(error_classes())


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_lives_in_errors_and_is_public(kind: type[InstarError]) -> None:
    """No other package defines an error; all go by their public address, in tracebacks and in pickles."""
    assert kind.__module__ == errors.__name__
    assert kind.__name__ in errors.__all__


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_has_its_own_code(kind: type[InstarError]) -> None:
    """A code is written in kebab case on the class itself, not inherited."""
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", vars(kind).get("code", ""))


def test_codes_are_unique() -> None:
    """A code names one class."""
    codes = [kind.code for kind in CLASSES]
    assert len(set(codes)) == len(codes)


def test_every_group_has_a_disposition() -> None:
    """Each direct child of the base has an exit code and HTTP status of its own; deeper ones inherit."""
    assert set(InstarError.__subclasses__()) <= DISPOSITIONS.keys()
    assert DISPOSITIONS.keys() <= set(CLASSES)


@pytest.mark.parametrize("kind", CLASSES)
def test_every_disposition_is_a_failure(kind: type[InstarError]) -> None:
    """No error ends a process with success, or with a code that a shell reserves for signals."""
    answer = disposition(kind)
    assert 0 < answer.exit_code < 126
    assert 400 <= answer.http_status < 600


def test_the_tree_in_the_docstring_is_the_tree_of_classes() -> None:
    """The drawing shows every class, under its parent."""
    assert drawn_tree() == {
        kind.__name__: next((base.__name__ for base in kind.__bases__ if issubclass(base, InstarError)), None)
        for kind in CLASSES
    }


def drawn_tree() -> dict[str, str | None]:
    """Read class name -> parent name from the drawing: each level is four characters deep."""
    parents: dict[str, str | None] = {"InstarError": None}
    path = ["InstarError"]
    for line in (inspect.getdoc(errors) or "").splitlines():
        match = re.match(r" {4}([│├└─ ]*[├└]── )(\w+)", line)
        if match:
            depth = len(match[1]) // 4
            path[depth:] = [match[2]]
            parents[match[2]] = path[depth - 1]
    return parents

"""The public names are a promise: adding or losing one is a decision, made here."""

from __future__ import annotations

import ast
from collections import defaultdict

import pytest

import instar
from tests.meta.modules import SOURCE

PUBLIC = [
    "Changes",
    "Commit",
    "Evolver",
    "Listen",
    "PartReport",
    "PassReport",
    "ScanReport",
    "Schema",
    "Snapshot",
    "Store",
    "Stream",
    "StreamCommit",
    "StreamSnapshot",
    "StreamTable",
    "Table",
    "__version__",
    "open",
    "register",
    "scan_reports",
]


def test_public_names_are_pinned() -> None:
    """`instar.__all__` is exactly what this list says, and each name exists."""
    assert sorted(instar.__all__) == PUBLIC
    assert all(hasattr(instar, name) for name in PUBLIC)


def test_names_that_are_not_there_are_missed_as_usual() -> None:
    """What is loaded on demand is listed, and a wrong name is an `AttributeError`, as of any module."""
    assert set(PUBLIC) <= set(dir(instar))
    assert instar.Table is instar.Table
    assert issubclass(instar.errors.InstarError, Exception)
    with pytest.raises(AttributeError, match="module 'instar' has no attribute 'Tabel'"):
        _ = instar.Tabel  # type: ignore[attr-defined]


def test_one_noun_names_one_class() -> None:
    """No two classes share a name, so that a name in an error, a log or a talk means one thing."""
    places = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(SOURCE)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}

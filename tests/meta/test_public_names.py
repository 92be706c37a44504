"""The public names are a promise: adding or losing one is a decision, made here."""

from __future__ import annotations

import instar

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

"""Sessions that are looked at as if they were new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.spark.planner import compiled, guards

if TYPE_CHECKING:
    import pytest

__all__ = ["forget_planner"]


def forget_planner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let instar find out again what Spark's planner can do in each session."""
    for module, name in (
        (compiled, "_sessions"),
        (compiled, "_classes"),
        (guards, "_found"),
        (guards, "_warned"),
    ):
        monkeypatch.setattr(module, name, {})

"""The verdict on one change of schema: what changes, whether it is allowed, and which readers it stops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from instar.schema import Change, ChangeKind, Fence, History, check_reader

if TYPE_CHECKING:
    from instar.schema import Schema

__all__ = ["SchemaVerdict", "judge"]

_FENCED_BY = {
    ChangeKind.DELETED: ChangeKind.RECREATED,
    ChangeKind.MADE_NULLABLE: ChangeKind.MADE_REQUIRED,
    ChangeKind.WIDENED: ChangeKind.NARROWED,
}
"""The change that a table makes, and the obstacle that a reader of the old schema then meets."""


class SchemaVerdict(NamedTuple):
    """Every change between two schemas, and the fences that a reader of the old one would meet."""

    old: Schema
    new: Schema
    changes: tuple[Change, ...]
    fences: tuple[Fence, ...]

    @property
    def compatible(self) -> bool:
        """Whether every change is permitted."""
        return all(change.permitted for change in self.changes)

    def fences_readers(self, change: Change) -> bool | None:
        """Say whether a reader of the old schema that reads the column is stopped.

        If the change is refused, or another one with it, there is no answer.
        """
        if not self.compatible:
            return None
        obstacle = _FENCED_BY.get(change.kind)
        return any(fence.kind is obstacle and fence.ids == change.ids for fence in self.fences)

    def readers(self, change: Change) -> str:
        """Say what this change does to readers of the old schema."""
        return {None: "-", False: "go on", True: "fenced if they read it"}[self.fences_readers(change)]

    def summary(self) -> str:
        """Say the whole verdict in a line or two."""
        if not self.compatible:
            refused = sum(not change.permitted for change in self.changes)
            return f"Not compatible: {refused} of {len(self.changes)} changes break the rules."
        if not self.fences:
            return "Compatible. Readers of the old schema go on."
        lines = "".join(f"\n  - {fence}" for fence in self.fences)
        return f"Compatible. Readers of the old schema are fenced if they read what changed:{lines}"

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as JSON."""
        return {
            "compatible": self.compatible,
            "old": str(self.old),
            "new": str(self.new),
            "changes": [
                {
                    "path": change.path,
                    "ids": list(change.ids),
                    "kind": change.kind.value,
                    "old": change.old,
                    "new": change.new,
                    "permitted": change.permitted,
                    "reason": change.reason,
                    "fences_readers": self.fences_readers(change),
                }
                for change in self.changes
            ],
            "fences": [
                {"path": fence.path, "ids": list(fence.ids), "reason": str(fence)} for fence in self.fences
            ],
        }


def judge(history: History, schema: Schema, after: History | None = None) -> SchemaVerdict:
    """Judge the step from the latest schema of a history to another.

    `after` is the history up to that other schema, if it is more than one step away.
    """
    changes = history.compare(schema)
    allowed = all(change.permitted for change in changes)
    fences = check_reader(after or history.evolve(schema), history.latest) if allowed else ()
    return SchemaVerdict(history.latest, schema, changes, fences)

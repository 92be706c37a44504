"""Errors of the store: it failed, it refused, or the outcome is unknown."""

from __future__ import annotations

from instar.errors.base import InstarError

__all__ = [
    "CommitOutcomeUnknownError",
    "StorageDeniedError",
    "StorageError",
    "StorageTimeoutError",
    "StorageUnsupportedError",
]


class CommitOutcomeUnknownError(InstarError):
    """The store stopped answering after a commit was sent, so it is not known whether the commit landed."""

    code = "commit-outcome-unknown"

    def __init__(self, table: str, commit_id: str, why: str) -> None:
        self.table = table
        self.commit_id = commit_id
        self.why = why
        super().__init__(
            f"commit {commit_id} to `{table}` may or may not have landed: {why}. "
            f"Run `instar log {table}` before retrying."
        )


class StorageError(InstarError):
    """The store refused or failed, and it is certain that nothing happened."""

    code = "storage"

    def __init__(self, operation: str, why: str) -> None:
        self.operation = operation
        self.why = why
        super().__init__(f"{operation} failed: {why}")


class StorageDeniedError(StorageError):
    """The store does not allow it, to this user or to anyone: it may be read-only."""

    code = "storage-denied"


class StorageUnsupportedError(StorageError):
    """The store lacks something that instar needs, such as creating an object only if it does not exist."""

    code = "storage-unsupported"


class StorageTimeoutError(StorageError):
    """The store did not answer: the operation may or may not have happened."""

    code = "storage-timeout"

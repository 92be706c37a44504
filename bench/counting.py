"""A blob store that counts the requests that it gets."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from instar.storage import Blob

__all__ = ["CountingBlob"]


class CountingBlob:
    """A `Blob` around another one; every object and every range of an object is one request."""

    def __init__(self, blob: Blob) -> None:
        self._blob = blob
        self._lock = threading.Lock()
        self.requests = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- whatever the blob has of that name
        found = getattr(self._blob, name)
        if name in {"url", "location", "seeks", "settings"}:
            return found

        def call(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 -- passed on as they are
            many = name in {"find_many", "get_ranges"}
            with self._lock:
                self.requests += len(arguments[-1]) if many else 1
            return found(*arguments, **options)

        return call

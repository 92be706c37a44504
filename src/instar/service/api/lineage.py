"""Events come in here: one, or many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from instar.errors import InstarError, InvalidEventError, disposition
from instar.lineage import decode_event, ingest_event
from instar.service.routing import ApiCall, Endpoint, Reply

if TYPE_CHECKING:
    from instar.lineage import Database

__all__ = ["LINEAGE"]

_RETRIABLE = 500


def post_event(call: ApiCall) -> Reply:
    """Store one event. Sent again, it changes nothing."""
    stored = ingest_event(call.database, decode_event(call.body), received_at=call.now)
    return Reply(None, 201, {"X-Instar-Event": "stored" if stored else "repeated"})


def post_batch(call: ApiCall) -> Reply:
    """Store events one by one, each in a transaction of its own, and say which ones failed."""
    if not isinstance(call.body, list):
        raise InvalidEventError("a batch is an array of events")
    failed = []
    for index, value in enumerate(call.body):
        problem = _store(call.database, value, call.now)
        if problem is not None:
            failed.append({"index": index, **problem})
    retriable = sum(one["retriable"] for one in failed)
    return Reply(
        {
            "status": "partial_success" if failed else "success",
            "summary": {
                "received": len(call.body),
                "successful": len(call.body) - len(failed),
                "failed": len(failed),
                "retriable": retriable,
                "non_retriable": len(failed) - retriable,
            },
            "failed_events": failed,
        }
    )


def _store(database: Database, value: Any, now: int) -> dict[str, Any] | None:  # noqa: ANN401 -- JSON
    try:
        ingest_event(database, decode_event(value), received_at=now)
    except InstarError as error:
        return {"reason": str(error), "retriable": disposition(error).http_status >= _RETRIABLE}
    return None


LINEAGE = [
    Endpoint("POST", "/api/v1/lineage", post_event, "Take in an OpenLineage event.", body="Event",
             writes=True, status=201),
    Endpoint("POST", "/api/v1/lineage/batch", post_batch, "Take in many events.", body="Batch", writes=True),
]  # fmt: skip

"""Events come in here: one, or many at once."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from instar.errors import InstarError, InvalidEventError, disposition
from instar.lineage import decode_event, ingest_event
from instar.service.routing import ApiCall, Endpoint, Reply

if TYPE_CHECKING:
    from instar.lineage import Database

__all__ = ["LINEAGE"]

_LOG: Final = logging.getLogger("instar.service")
_RETRIABLE = 500


def post_event(call: ApiCall) -> Reply:
    """Store one event. Sent again, it changes nothing."""
    outcome = _store(call.database, call.body, call.now)
    return Reply(None, 201, {"X-Instar-Event": outcome}, {outcome: 1})


def post_batch(call: ApiCall) -> Reply:
    """Store events one by one, each in a transaction of its own, and say which ones failed."""
    if not isinstance(call.body, list):
        raise InvalidEventError("a batch is an array of events")
    failed: list[dict[str, Any]] = []
    outcomes: Counter[str] = Counter()
    for index, value in enumerate(call.body):
        try:
            outcomes[_store(call.database, value, call.now)] += 1
        except InstarError as error:
            again = disposition(error).http_status >= _RETRIABLE
            failed.append({"index": index, "reason": str(error), "retriable": again})
        except Exception:  # noqa: BLE001 -- the others are stored, and this one can be sent again
            _LOG.exception("an event of a batch failed")
            reason = "the service failed; its log says why. Nothing of the event was kept"
            failed.append({"index": index, "reason": reason, "retriable": True})
    retriable = sum(one["retriable"] for one in failed)
    outcomes["refused"] = len(failed) - retriable
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
        },
        events=outcomes,
    )


def _store(database: Database, value: Any, now: int) -> str:  # noqa: ANN401 -- JSON
    stored = ingest_event(database, decode_event(value), received_at=now)
    return "stored" if stored else "repeated"


LINEAGE = [
    Endpoint("POST", "/api/v1/lineage", post_event, "Take in an OpenLineage event.", body="Event",
             writes=True, status=201),
    Endpoint("POST", "/api/v1/lineage/batch", post_batch, "Take in many events.", body="Batch", writes=True),
]  # fmt: skip

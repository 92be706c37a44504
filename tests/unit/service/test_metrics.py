"""What Prometheus is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from testbed.lineage import run_event

if TYPE_CHECKING:
    from testbed.service import Client


def test_events_are_counted_by_what_became_of_them(service: Client) -> None:
    """Stored, repeated and refused events are counted, alone and in batches."""
    event = run_event("COMPLETE", 1)
    assert service.post("/api/v1/lineage", json=event).headers["x-instar-event"] == "stored"
    assert service.post("/api/v1/lineage", json=event).headers["x-instar-event"] == "repeated"
    for body in (b"{", b"{}"):
        assert service.post("/api/v1/lineage", content=body).status_code in {400, 422}
    batch = [event, run_event("COMPLETE", 2, 2), run_event("COMPLETE", 3, 3), {}, 5]
    assert service.post("/api/v1/lineage/batch", json=batch).json()["summary"]["failed"] == 2
    lines = service.get("/metrics").text.splitlines()
    counts = {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in lines if not line.startswith("#")}
    for outcome, count in (("stored", "3.0"), ("repeated", "2.0"), ("refused", "4.0")):
        assert counts[f'instar_lineage_events_total{{outcome="{outcome}"}}'] == count


def test_clients_cannot_make_up_figures(service: Client) -> None:
    """A method or path that nobody knows is counted with all others like it."""
    for number in range(5):
        service.request(f"FOO{number}", f"/api/v1/nowhere{number}")
        service.get(f"/nowhere{number}")
    figures = service.get("/metrics").text
    assert "FOO" not in figures
    assert "nowhere" not in figures
    assert 'endpoint="other",method="other"' in figures

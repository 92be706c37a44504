"""What Prometheus may ask: requests by endpoint and status, how long they took, and events taken in."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

__all__ = ["ServiceMetrics"]

_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


class ServiceMetrics:
    """The figures of one service."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ["method", "endpoint"]
        self.requests = Counter(
            "instar_lineage_requests",
            "Requests answered.",
            [*labels, "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "instar_lineage_request_seconds", "Time to answer a request.", labels, registry=self.registry
        )
        self.events = Counter(
            "instar_lineage_events",
            "Events by outcome: stored, repeated or refused.",
            ["outcome"],
            registry=self.registry,
        )

    def observe(self, method: str, endpoint: str, status: int, seconds: float) -> None:
        """Count one request. A client may make up methods, and no more figures by doing so."""
        method = method if method in _METHODS else "other"
        self.requests.labels(method, endpoint, str(status)).inc()
        self.seconds.labels(method, endpoint).observe(seconds)

    def render(self) -> bytes:
        """Return the figures as Prometheus reads them."""
        return generate_latest(self.registry)

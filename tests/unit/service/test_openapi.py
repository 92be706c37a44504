"""What the OpenAPI document says is what the service does; schemathesis tries to find out otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from instar.service.api import ENDPOINTS
from instar.service.openapi import describe
from testbed.lineage import dataset, run_event
from testbed.service import running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from testbed.service import Client

DOCUMENT = schemathesis.openapi.from_dict(describe(ENDPOINTS))
FOUND: list[Any] = list(DOCUMENT.get_all_operations())
OPERATIONS = {operation.label: operation for operation in (found.ok() for found in FOUND)}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Return a service with something in it."""
    with running(f"sqlite:///{tmp_path_factory.mktemp('openapi')}/lineage.db") as found:
        found.tell(run_event("COMPLETE", 1, inputs=[dataset("x", "a int")], outputs=[dataset("y", "a int")]))
        yield found


def test_the_document_is_served_and_lists_every_endpoint(client: Client) -> None:
    """Whoever asks finds each path with each of its methods."""
    paths = client.get("/openapi.json").json()["paths"]
    listed = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    known = {(one.method, one.template) for one in client.service.router.endpoints}
    assert listed == {one for one in known if "..." not in one[1]}


@pytest.mark.parametrize("label", OPERATIONS)
def test_no_request_makes_the_service_fail(client: Client, label: str) -> None:
    """Whatever the document allows gets a good answer or a 4xx with a message, and never a 5xx."""
    promised = OPERATIONS[label].definition.raw["responses"]

    @given(case=OPERATIONS[label].as_strategy())
    @settings(max_examples=8, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    def attempt(case: Any) -> None:  # noqa: ANN401 -- schemathesis makes its classes as it goes
        response = case.call(base_url=client.url, timeout=60)
        assert response.status_code < 500, response.text
        assert response.status_code >= 400 or str(response.status_code) in promised
        if response.status_code >= 400:
            assert response.json()["code"] == response.status_code
            assert response.json()["message"]

    attempt()

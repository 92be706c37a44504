"""Services that speak S3 but not its conditional writes: two writers of a log would both win there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import instar
from instar.errors import UsageError
from instar.table.housekeeping.examination import Health
from testbed.s3_proxy import Fault, S3Proxy
from tests.servers import postgres, s3

if TYPE_CHECKING:
    from testbed.servers import PostgresServer, S3Server

__all__ = ["postgres", "s3"]


@pytest.mark.parametrize("fault", [Fault.CARELESS, Fault.UNWILLING])
def test_a_service_without_conditional_writes_keeps_no_logs(
    s3: S3Server, postgres: PostgresServer, fault: Fault
) -> None:
    """It is refused by name when a store is made there, and has nothing of it; with PostgreSQL it works."""
    url = s3.url()
    with S3Proxy(s3.endpoint) as proxy:
        proxy.spoil = lambda _: fault
        options = {**s3.options, "AWS_ENDPOINT_URL": proxy.endpoint}
        refused = pytest.raises(UsageError, match=rf"^{url} cannot keep the logs .* PostgreSQL")
        with instar.open(url, options=options) as store, refused:
            store.create_table("t", "k bigint")
        assert not [request for request in proxy.take() if "log/" in request.key]
        with instar.open(url, options=options, consensus=postgres.url()) as store:
            store.create_table("t", "k bigint").append(pa.table({"k": [1, 2]}))
            assert store.table("t").count() == 2
            assert all(finding.health is Health.FINE for finding in store.examine())

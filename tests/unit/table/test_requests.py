"""What operations cost on S3, in requests counted before the server: they are what is slow and paid there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import instar
from testbed.s3_proxy import S3Proxy
from tests.servers import s3

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from testbed.servers import S3Server

__all__ = ["s3"]

ROWS = pa.table({"k": [1, 2]})


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[S3Proxy]:
    """Return what counts."""
    with S3Proxy(s3.endpoint) as proxy:
        yield proxy


def test_what_operations_cost(s3: S3Server, proxy: S3Proxy) -> None:
    """A look at the log is one request, a commit two; the rest are the lease, parts, and rows of parts."""
    url, options = s3.url(), {**s3.options, "AWS_ENDPOINT_URL": proxy.endpoint}

    def asked(do: Callable[[], object]) -> list[str]:
        proxy.take()
        do()
        return [request.kind for request in proxy.take()]

    with instar.open(url, options=options) as store:
        table = store.create_table("t", "k bigint")
        look, commit = ["LIST"], ["PUT", "LIST"]
        lease, release, part = ["PUT"], ["POST"], ["PUT"]
        assert asked(lambda: table.append(ROWS)) == look + lease + part + commit + release
        assert asked(lambda: table.evolve().add_column("n", "int").commit()) == look + commit
        assert asked(lambda: table.explain("k = 1")) == lease + look + release
        assert asked(lambda: table.snapshot().to_arrow()) == lease + look + ["GET"] + release
        table.append(ROWS)
        assert asked(lambda: table.snapshot().to_arrow()) == lease + look + ["GET"] * 2 + release
        assert asked(table.count) == lease + look + release
    with instar.open(url, options=options) as store:
        hint, entries = ["GET"], ["GET"] * 4
        assert asked(lambda: store.table("t")) == hint + look + entries + look
        assert asked(lambda: instar.open(url, options=options)) == ["GET"]


def test_a_look_at_a_log_finds_what_others_did(s3: S3Server, proxy: S3Proxy) -> None:
    """News are read at once, by as many requests as there are commits."""
    url, options = s3.url(), {**s3.options, "AWS_ENDPOINT_URL": proxy.endpoint}
    with instar.open(url, options=options) as store, instar.open(url, options=s3.options) as other:
        table = store.create_table("t", "k bigint")
        for _ in range(3):
            other.table("t").append(ROWS)
        proxy.take()
        assert table.upper == other.table("t").upper
        kinds = [request.kind for request in proxy.take()]
        assert kinds.count("LIST") == 2
        assert kinds.count("GET") <= 4


def test_a_store_of_many_tables_costs_what_is_shown(s3: S3Server, proxy: S3Proxy) -> None:
    """One table, or the first few of many, take as many requests as if there were no others."""
    url, options = s3.url(), {**s3.options, "AWS_ENDPOINT_URL": proxy.endpoint}
    costs = []
    with instar.open(url, options=options) as store:
        for first in (0, 40):
            for number in range(first, 40 + first):
                store.create_table(f"t{number:04d}", "k bigint")
            with instar.open(url, options=options) as fresh:
                proxy.take()
                assert [table.name for table in fresh.find_tables("t", limit=3)] == [
                    "t0000",
                    "t0001",
                    "t0002",
                ]
                listed = len(proxy.take())
                assert fresh.table("t0039").state.totals.parts == 0
                costs.append((listed, len(proxy.take())))
    assert costs[0] == costs[1]
    assert costs[0][0] < 3 * 6

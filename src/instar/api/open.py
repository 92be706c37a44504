"""`instar.open`: from a location to a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.api.store import Store
from instar.errors import StoreNotFoundError, UsageError
from instar.state.options import check_options
from instar.storage import consensus_kind, open_blob, open_consensus
from instar.table import Services, StoreMarker, check_consensus, find_marker, wall_clock

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from instar.state import ConfigValue

__all__ = ["open_store"]


def open_store(
    location: str | os.PathLike[str],
    *,
    consensus: str | None = None,
    options: Mapping[str, str] | None = None,
    defaults: Mapping[str, ConfigValue] | None = None,
    create: bool = True,
) -> Store:
    """Open the store at a directory or URL.

    Opening writes nothing. Where there is nothing yet, the first table that is created makes the store;
    with `create=False` it must be there already. A location that holds something else is refused.

    `location` is a path, `file://…`, `memory://name` (shared within the process), `s3://…`, `gs://…` or
    `az://…`. `consensus` is where the logs of a store are kept if not in the store itself:
    `postgresql://…`, with everything that libpq takes, and `schema=…` for another schema than `instar`.

    `options` are settings of the object store, named as the clouds' own tools name them:
    `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP`, and
    those that begin with `GOOGLE_` or `AZURE_`. What is not given is taken from environment variables of
    the same names. `defaults` are table options, such as {"skipping": "audit"}, for tables that do not say
    otherwise; they are not stored, and hold for whoever opens the store so.
    """
    usual = dict(defaults or {})
    check_options(usual)
    blob = open_blob(location, options)
    logs = open_consensus(consensus, blob, options)
    kind = consensus_kind(consensus)
    marker = find_marker(blob)
    if marker is None and create and next(iter(blob.list()), None) is not None:
        marker = find_marker(blob)  # the first thing that a store has: perhaps it came just now
        if marker is None:
            raise UsageError(
                f"{blob.url} holds something that is not an instar store: choose an empty location"
            )
    if marker is not None:
        check_consensus(marker, kind, logs, blob.url)
        return Store(blob.url, Services(blob, logs, marker.log_prefix, defaults=usual))
    if not create:
        raise StoreNotFoundError(blob.url)
    services = Services(blob, logs)
    new = StoreMarker(services.new_id(), kind, wall_clock())
    return Store(blob.url, Services(blob, logs, new.log_prefix, defaults=usual), new)

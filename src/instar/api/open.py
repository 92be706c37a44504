"""`instar.open`: from a location to a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.api.store import Store
from instar.arguments import checked
from instar.state.options import check_options
from instar.table import open_services

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from instar.state import ConfigValue

__all__ = ["open_store"]


@checked
def open_store(
    location: str | os.PathLike[str],
    *,
    consensus: str | None = None,
    options: Mapping[str, str] | None = None,
    defaults: Mapping[str, ConfigValue] | None = None,
    create: bool = True,
) -> Store:
    """Open the store at a directory or URL.

    Opening writes nothing. If there is no store yet, the first table creates it; with `create=False` the
    store must exist. A location that holds something else is refused.

    `location` is a path, `file://…`, `memory://name` (shared within the process), `s3://…`, `gs://…` or
    `az://…`. `consensus` is where the logs of a store are kept if not in the store itself:
    `postgresql://…`, with everything that libpq accepts, and `schema=…` for another schema than `instar`.

    `options` are settings of the object store, named as the clouds' own tools name them: `AWS_ACCESS_KEY_ID`,
    `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP`, and those that begin with
    `GOOGLE_` or `AZURE_`. Missing ones are taken from environment variables of the same names. `defaults` are
    table options, such as {"skipping": "audit"}, for tables that have not set them. They are not stored: they
    apply to this handle only.
    """
    usual = dict(defaults or {})
    check_options(usual)
    services, unwritten = open_services(
        location, consensus=consensus, options=options, defaults=usual, create=create
    )
    return Store(services.blob.url, services, unwritten)

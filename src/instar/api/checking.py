"""A new version judged against every version that some table of a stream still holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.compat import ColumnsVersion, judge
from instar.stream.protobuf import stored_encodings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from instar.compat import Judgement
    from instar.compat import Version as SchemaVersion
    from instar.stream import Version
    from instar.stream.catalog import Catalog

__all__ = ["judge_alive"]


def judge_alive(catalog: Catalog, alive: Iterable[Version], new: SchemaVersion) -> dict[Version, Judgement]:
    """Judge a new version against each version that a table holds, from the lowest to the highest.

    If the descriptors of a version are known, its wire is judged too.
    """
    encodings = stored_encodings(catalog)
    found = {}
    for version in sorted(alive):
        old: SchemaVersion = ColumnsVersion(catalog.versions[version].schema)
        if str(version) in encodings:
            from instar.compat.protobuf.compile import describe_encoding  # noqa: PLC0415 -- an extra

            old = describe_encoding(encodings[str(version)])
        found[version] = judge(old, new)
    return found

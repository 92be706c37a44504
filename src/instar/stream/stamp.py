"""What a table of a stream records: the versions written to it, and the one that it is stamped with.

A stamp is an ordinary evolution of the table, together with options that only a stream sets. Versions only
ever rise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from instar.errors import ConflictError, LeadershipLostError
from instar.state.commits import Configured, Created, Evolved
from instar.stream.version import Version, as_version

if TYPE_CHECKING:
    from instar.state import ConfigValue, Step, TableState
    from instar.stream.catalog import Catalog, TableRecord

__all__ = ["Stamp", "create_stamped", "dataset_name", "find_stamp", "load_stamp", "stamp_table"]

_STREAM: Final = "stream"
_STREAM_ID: Final = "stream.id"
_VERSION: Final = "stream.version"
_VERSIONS: Final = "stream.versions"
_SCHEMA: Final = "stream.schema"
_FENCE: Final = "stream.fence"


class Stamp(NamedTuple):
    """Where a table of a stream stands; `schema_id` is an id of the stream's history."""

    stream: str
    version: Version
    versions: tuple[Version, ...]
    schema_id: int
    fence: int
    stream_id: str


def find_stamp(state: TableState) -> Stamp | None:
    """Read the stamp of a table, or None if it belongs to no stream."""
    options = state.labels
    if _STREAM not in options:
        return None
    versions = str(options[_VERSIONS]).split()
    return Stamp(
        str(options[_STREAM]),
        as_version(str(options[_VERSION])),
        tuple(as_version(version) for version in versions),
        int(options[_SCHEMA]),
        int(options.get(_FENCE, 0)),
        str(options[_STREAM_ID]),
    )


def dataset_name(state: TableState) -> str:
    """Return what lineage calls a table: those of a stream have one name for each kind, as `clicks/1d`."""
    return state.name.rpartition("/")[0] if _STREAM in state.labels else state.name


def load_stamp(state: TableState, catalog: Catalog) -> Stamp:
    """Read the stamp of a table that must belong to a stream."""
    stamp = find_stamp(state)
    if stamp is None or stamp.stream_id != catalog.stream_id:
        whose = "no stream" if stamp is None else f"stream `{stamp.stream}`"
        whose += ", which was dropped" if stamp is not None and stamp.stream == catalog.name else ""
        raise ConflictError(
            f"table `{state.name}` belongs to {whose}, and stream `{catalog.name}` needs its name. "
            "Rename the table, or drop it."
        )
    return stamp


def create_stamped(
    state: TableState | None,
    catalog: Catalog,
    table: TableRecord,
    *,
    order_by: int,
    written: tuple[Version, ...] = (),
    name: str | None = None,
) -> tuple[Step, ...]:
    """Begin a table in the stream's latest schema; if it exists, there is no step.

    `name` is given if its log is that of another name, which a table had first that is called otherwise now.
    """
    if state is not None and not state.dropped:
        return ()
    versions = " ".join(sorted(written))
    config: dict[str, ConfigValue] = {
        _STREAM: catalog.name,
        _STREAM_ID: catalog.stream_id,
        _VERSION: str(catalog.max_version),
        _VERSIONS: versions,
        _SCHEMA: catalog.schema_id,
    }
    return (Created(table.table_id, catalog.schema, (order_by,), (), config, name),)


def stamp_table(
    state: TableState,
    catalog: Catalog,
    *,
    written: tuple[Version, ...] = (),
    evolve: bool = True,
    fence: int | None = None,
) -> tuple[Step, ...]:
    """Bring a table to the stream's latest schema and version, and note versions that are written to it.

    Nothing ever goes back. Without `evolve`, only the versions are noted. `fence` is the number of the
    evolver's leadership: a table that a later leader has stamped refuses an earlier one.
    """
    stamp = load_stamp(state, catalog)
    if fence is not None and fence < stamp.fence:
        raise LeadershipLostError(catalog.name, f"leader {stamp.fence}")
    steps: list[Step] = []
    changed: dict[str, ConfigValue | None] = {}
    if evolve and catalog.schema_id > stamp.schema_id:
        schema = catalog.schema
        if schema != state.history.latest:
            state.history.evolve(schema, state.name)
            steps.append(Evolved(state.history.latest_id + 1, schema))
        changed[_SCHEMA] = catalog.schema_id
    if evolve and catalog.max_version > stamp.version:
        changed[_VERSION] = str(catalog.max_version)
    versions = sorted({*stamp.versions, *written})
    if len(versions) > len(stamp.versions):
        changed[_VERSIONS] = " ".join(versions)
    if changed:
        if fence is not None:
            changed[_FENCE] = fence
        steps.append(Configured(changed))
    return tuple(steps)

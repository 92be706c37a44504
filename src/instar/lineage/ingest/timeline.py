"""The versions of a dataset in the order of time, and who read which of them.

A version is current from its moment until the next one's. A run that reads the dataset meanwhile, under any
of its names, reads that version, and amends its schema with the fields that it saw. Reads before the first
version belong to one that is made for them. All of this is computed again around the moments that an event
touches, so it never depends on the order in which events came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID  # noqa: TC003 -- a field of a named tuple

from sqlalchemy import delete, exists, func, or_, select, true, update

from instar.lineage.database import insert
from instar.lineage.ids import stable_id
from instar.lineage.ingest.alerts import raise_alert
from instar.lineage.ingest.names import NO_STAMP
from instar.lineage.ingest.schema_versions import (
    ensure_schema_version,
    load_content,
    refresh_schema_versions,
)
from instar.lineage.ingest.versions import count_versions
from instar.lineage.models import DatasetRow, DatasetVersionRow, FacetRow, ObservedSchemaRow, RunInputRow
from instar.lineage.old_layout.both import load_old_content, write_old_layout
from instar.lineage.schema_content import SchemaContent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy import ColumnElement, Connection, Row

    from instar.lineage.ingest.changes import DatasetChange

    Version = Row[*tuple[Any, ...]]

__all__ = ["Name", "Timeline"]

_V: Final = DatasetVersionRow
_R: Final = RunInputRow
_COLUMNS: Final = (
    _V.uuid,
    _V.dataset_uuid,
    _V.run_uuid,
    _V.created_at,
    _V.current_at,
    _V.declared_schema_version_uuid,
    _V.dataset_schema_version_uuid,
)


class Name(NamedTuple):
    """One name of a dataset: whether anybody ever read it, and whether a reader said which fields it saw."""

    uuid: UUID
    current: UUID | None
    policy: str
    versions: int
    read: bool
    observed: bool


_NAMES: Final = select(
    DatasetRow.root_uuid,
    DatasetRow.uuid,
    DatasetRow.current_version_uuid,
    DatasetRow.compatibility,
    DatasetRow.version_count,
    exists().where(RunInputRow.dataset_uuid == DatasetRow.uuid).correlate(DatasetRow),
    exists().where(ObservedSchemaRow.dataset_uuid == DatasetRow.uuid).correlate(DatasetRow),
)


class Timeline:
    """The versions of one dataset under all its names."""

    def __init__(self, connection: Connection, root: UUID, names: list[Name]) -> None:
        self.connection = connection
        self.root = root
        self.names = names
        self.members = [name.uuid for name in names]

    @staticmethod
    def load(connection: Connection, datasets: Iterable[UUID]) -> Iterator[Timeline]:
        """Yield the timeline of each dataset that one of these names means."""
        roots = select(DatasetRow.root_uuid).where(DatasetRow.uuid.in_(list(datasets)))
        found: dict[UUID, list[Name]] = {}
        rows = connection.execute(_NAMES.where(DatasetRow.root_uuid.in_(roots)))
        for root, uuid, current, policy, versions, read, observed in rows:
            name = Name(uuid, current, policy, versions, read, observed)
            found.setdefault(root, []).append(name)
        for root in sorted(found):
            yield Timeline(connection, root, sorted(found[root]))

    def latest(self) -> Version | None:
        """Return the version that is current now."""
        return self._last()

    def before(self, version: Version) -> Version | None:
        """Return the version before one."""
        at = version.current_at
        return self._last(_V.current_at <= at, or_(_V.current_at < at, _V.uuid < version.uuid))

    def after(self, version: Version) -> Version | None:
        """Return the version after one."""
        at = version.current_at
        return self._first(_V.current_at >= at, or_(_V.current_at > at, _V.uuid > version.uuid))

    def read_by(self, at: int, run_uuid: UUID | None) -> Version | None:
        """Return the version that a run found at a moment: what it writes itself, it has not read."""
        return self._last(_V.current_at <= at, _not_of(_V.run_uuid, run_uuid))

    def settle(self, here: Sequence[DatasetChange], *, whole: bool = False) -> None:
        """Compute again what depends on these changes of this dataset, or everything."""
        affected: set[UUID] = {change.version_uuid for change in here if change.version_uuid is not None}
        if not whole and len(affected) == 1 and self._has_one_version() and here[0].settled:
            self._point(here[0].version_uuid if here[0].is_current else None)
            return
        rewritten = bool(affected) or whole
        if whole or any(self._may_be_first(change) for change in here):
            moved = self._settle_unwritten()
            rewritten = rewritten or bool(moved)
            affected |= moved
        if whole:
            affected |= set(self.connection.scalars(select(_V.uuid).where(_V.dataset_uuid.in_(self.members))))
        observed = any(name.observed for name in self.names)
        for change in here if observed else []:
            affected |= self._around(change)
        if not observed and not whole:
            affected -= {change.version_uuid for change in here if change.settled}
        for uuid in sorted(affected):
            self._settle_schema(uuid, observed=observed)
        if rewritten:
            self._settle_current()

    def _has_one_version(self) -> bool:
        """Whether there is nothing to compute: one version, which nobody has read."""
        return sum(name.versions for name in self.names) == 1 and not any(name.read for name in self.names)

    def _may_be_first(self, change: DatasetChange) -> bool:
        """Whether a change is so early that it may matter for what was read before anybody wrote.

        Two versions of different runs are enough: who has written one of them has the other one to read.
        """
        others = [stable_id("unwritten", member) for member in self.members]
        others += [change.version_uuid] if change.version_uuid is not None else []
        conditions = (
            _V.current_at <= change.at,
            _V.uuid.not_in(others),
            _not_of(_V.run_uuid, change.run_uuid),
        )
        order = (_V.current_at.desc(), _V.uuid.desc())
        writers = [version.run_uuid for version in self._some(conditions, order, 2)]
        return len(writers) < 2 or (writers[0] == writers[1] and writers[0] is not None)  # noqa: PLR2004 -- see above

    def _around(self, change: DatasetChange) -> set[UUID]:
        """Return the versions whose readers a change may have changed."""
        found: set[UUID] = set()
        for run_uuid in {change.run_uuid, None}:
            version = self.read_by(change.at, run_uuid)
            if version is not None:
                earlier = self.before(version)
                found |= {version.uuid} | ({earlier.uuid} if earlier is not None else set())
        return found

    # What was read before anybody wrote

    def _settle_unwritten(self) -> set[UUID]:
        """Make, move or remove the version that represents the dataset before its first write."""
        uuid = stable_id("unwritten", self.root)
        ids = [stable_id("unwritten", member) for member in self.members]
        rows = self.connection.execute(select(*_COLUMNS).where(_V.uuid.in_(ids))).all()
        old = {row.uuid: row for row in rows}
        at = self._unwritten_since(ids)
        for stray in old.keys() - ({uuid} if at is not None else set()):
            self._remove(old[stray])
        if at is None or (uuid in old and old[uuid].current_at == at):
            return self._neighbours_of_first(ids) if old and at is None else set()
        if uuid in old:
            values = {"created_at": at, "current_at": at}
            self.connection.execute(update(_V).where(_V.uuid == uuid).values(**values))
            refresh_schema_versions(self.connection, [old[uuid].dataset_schema_version_uuid])
        else:
            row = {"uuid": uuid, "dataset_uuid": self.root, "created_at": at, "current_at": at}
            self.connection.execute(
                insert(self.connection.dialect.name, _V).values(**row, declared_stamp=NO_STAMP)
            )
            count_versions(self.connection, self.root, 1)
        return {uuid} | self._neighbours_of_first(ids)

    def _unwritten_since(self, unwritten: list[UUID]) -> int | None:
        """Return when the dataset was first read by somebody who found no version of anybody else."""
        first = self._first(_V.uuid.not_in(unwritten))
        earliest = select(func.min(_R.at)).where(_R.dataset_uuid.in_(self.members))
        if first is None:
            return self.connection.scalar(earliest)
        others = self.connection.scalar(earliest.where(_not_of(_R.run_uuid, first.run_uuid)))
        times = [others] if others is not None and others < first.current_at else []
        if first.run_uuid is not None:
            own = self.connection.scalar(earliest.where(_R.run_uuid == first.run_uuid))
            found = self._first(_V.uuid.not_in(unwritten), _not_of(_V.run_uuid, first.run_uuid))
            if own is not None and (found is None or own < found.current_at):
                times.append(min(own, first.current_at - 1))
        return min(times, default=None)

    def _neighbours_of_first(self, unwritten: list[UUID]) -> set[UUID]:
        first = self._first(_V.uuid.not_in(unwritten))
        return {first.uuid} if first is not None else set()

    def _remove(self, version: Version) -> None:
        self.connection.execute(delete(FacetRow).where(FacetRow.owner_uuid == version.uuid))
        self.connection.execute(delete(_V).where(_V.uuid == version.uuid))
        count_versions(self.connection, version.dataset_uuid, -1)
        refresh_schema_versions(self.connection, [version.dataset_schema_version_uuid])

    # Schemas

    def _settle_schema(self, uuid: UUID, *, observed: bool) -> None:
        """Point a version at its schema as its readers saw it."""
        version = self.connection.execute(select(*_COLUMNS).where(_V.uuid == uuid)).first()
        if version is None:
            return
        if version.declared_schema_version_uuid is None:
            version = self._declared_before(version)
        schema = self._schema(version) if observed else version.declared_schema_version_uuid
        if schema != version.dataset_schema_version_uuid:
            statement = update(_V).where(_V.uuid == uuid).values(dataset_schema_version_uuid=schema)
            self.connection.execute(statement)
            write_old_layout(self.connection, uuid, schema)
            refresh_schema_versions(self.connection, {schema, version.dataset_schema_version_uuid})

    def _declared_before(self, version: Version) -> Version:
        """Convert a version that only the old layout describes, before anything is added to it."""
        if version.dataset_schema_version_uuid is not None:
            return version
        content = load_old_content(self.connection, version.uuid)
        if content is None:
            return version
        schema = ensure_schema_version(self.connection, version.dataset_uuid, content, version.created_at)
        mine = _V.uuid == version.uuid
        self.connection.execute(update(_V).where(mine).values(declared_schema_version_uuid=schema))
        return self.connection.execute(select(*_COLUMNS).where(mine)).one()

    def _schema(self, version: Version) -> UUID | None:
        declared: UUID | None = version.declared_schema_version_uuid
        seen = self._seen(version) if version.current_at is not None else []
        if not seen:
            return declared
        content = load_content(self.connection, declared) if declared is not None else SchemaContent(())
        amended = content
        for text in seen:
            amended = amended.amended(SchemaContent.decode(text))
        if amended == content:
            return declared
        return ensure_schema_version(self.connection, version.dataset_uuid, amended, version.created_at)

    def _seen(self, version: Version) -> list[str]:
        """Return the fields that readers of a version saw, the latest last; equal ones once."""
        following = self.after(version)
        last = (
            select(func.max(_R.at))
            .where(
                _R.observed_uuid == ObservedSchemaRow.uuid,
                _R.at >= version.current_at,
                _not_of(_R.run_uuid, version.run_uuid),
            )
            .correlate(ObservedSchemaRow)
        )
        if following is not None:
            last = last.where(_R.at < following.current_at)
        rows = self.connection.execute(
            select(ObservedSchemaRow.content, last.scalar_subquery().label("at")).where(
                ObservedSchemaRow.dataset_uuid.in_(self.members)
            )
        )
        found = [(row.at, row.content) for row in rows if row.at is not None]
        if following is not None and following.run_uuid is not None:
            found += self._seen_by_writer(version, following)
        return [content for _, content in sorted(found)]

    def _seen_by_writer(self, version: Version, following: Version) -> list[tuple[int, str]]:
        """Return what the writer of the next version saw, if its first event is also its last."""
        reads = self.connection.execute(
            select(_R.at, ObservedSchemaRow.content)
            .join(ObservedSchemaRow, ObservedSchemaRow.uuid == _R.observed_uuid)
            .where(
                _R.run_uuid == following.run_uuid,
                _R.dataset_uuid.in_(self.members),
                _R.at >= following.current_at,
            )
        )
        found = []
        for at, content in reads.all():
            holder = self.read_by(at, following.run_uuid)
            if holder is not None and holder.uuid == version.uuid:
                found.append((at, content))
        return found

    # What is current

    def _settle_current(self) -> None:
        latest = self.latest()
        self._point(latest.uuid if latest is not None else None)
        policy = next(name.policy for name in self.names if name.uuid == self.root)
        earlier = self.before(latest) if latest is not None and policy != "none" else None
        if earlier is not None:
            raise_alert(self.connection, self.root, earlier, latest)

    def _point(self, current: UUID | None) -> None:
        """Let only the main name of the dataset point at its current version."""
        for name in self.names:
            wanted = current if name.uuid == self.root else None
            if name.current != wanted:
                statement = update(DatasetRow).where(DatasetRow.uuid == name.uuid)
                self.connection.execute(statement.values(current_version_uuid=wanted))

    def _first(self, *conditions: ColumnElement[bool]) -> Version | None:
        order = (_V.current_at, _V.uuid)
        return self._one(conditions, order)

    def _last(self, *conditions: ColumnElement[bool]) -> Version | None:
        order = (_V.current_at.desc(), _V.uuid.desc())
        return self._one(conditions, order)

    def _one(self, conditions: tuple[ColumnElement[bool], ...], order: tuple[Any, ...]) -> Version | None:
        return next(iter(self._some(conditions, order, 1)), None)

    def _some(
        self, conditions: tuple[ColumnElement[bool], ...], order: tuple[Any, ...], limit: int
    ) -> Sequence[Version]:
        """Return the first of the versions that are or were current, from an index in this order."""
        mine = _V.dataset_uuid == self.root if len(self.members) == 1 else _V.dataset_uuid.in_(self.members)
        statement = select(*_COLUMNS).where(mine, _V.current_at.is_not(None), *conditions)
        return self.connection.execute(statement.order_by(*order).limit(limit)).all()


def _not_of(column: Any, run_uuid: UUID | None) -> ColumnElement[bool]:  # noqa: ANN401 -- a column of either table
    """Say that a row belongs to another run, or to none."""
    return true() if run_uuid is None else or_(column.is_(None), column != run_uuid)

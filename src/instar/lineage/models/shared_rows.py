"""Tables that datasets, jobs and runs share: namespaces, sources, facets, tags and raw events."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import ForeignKey, Index, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from instar.lineage.models.base import Base, Key, Stamp, Words, reference

__all__ = [
    "DatasetFieldTagRow",
    "DatasetTagRow",
    "EventRow",
    "FacetContentRow",
    "FacetRow",
    "JobTagRow",
    "NamespaceRow",
    "SourceRow",
    "TagRow",
]


class NamespaceRow(Base):
    """A namespace, named exactly as events name it."""

    __tablename__ = "namespaces"

    uuid: Mapped[Key]
    name: Mapped[Words]
    created_at: Mapped[int]
    updated_at: Mapped[int | None]  # by a person
    owner_name: Mapped[str | None]
    description: Mapped[str | None]
    is_hidden: Mapped[bool] = mapped_column(default=False)


class SourceRow(Base):
    """Where datasets physically are."""

    __tablename__ = "sources"

    uuid: Mapped[Key]
    name: Mapped[Words]
    type: Mapped[Words]
    connection_url: Mapped[Words]
    description: Mapped[str | None]
    created_at: Mapped[int]
    updated_at: Mapped[int]
    stamp: Mapped[Stamp]


class FacetContentRow(Base):
    """The JSON of a facet, kept once however many runs report it."""

    __tablename__ = "facet_contents"

    uuid: Mapped[Key]
    payload: Mapped[Words]


class FacetRow(Base):
    """A facet of something: the content that the latest event gave it.

    `scope` says what the owner is: `dataset`, `version` (a dataset facet of one dataset version), `output`,
    `input` (of a run's input), `job` or `run`. Owners are in several tables, hence no foreign key.
    """

    __tablename__ = "facets"

    owner_uuid: Mapped[UUID] = mapped_column(primary_key=True)
    scope: Mapped[str] = mapped_column(String(16), primary_key=True)
    name: Mapped[str] = mapped_column(String(512), primary_key=True)
    content_uuid: Mapped[UUID] = mapped_column(reference("facet_contents"), index=True)
    stamp: Mapped[Stamp]


class TagRow(Base):
    """A tag that datasets, fields and jobs may carry."""

    __tablename__ = "tags"

    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    description: Mapped[str | None]


class DatasetTagRow(Base):
    """A tag of a dataset."""

    __tablename__ = "dataset_tags"

    dataset_uuid: Mapped[UUID] = mapped_column(reference("datasets", cascade=True), primary_key=True)
    tag_name: Mapped[str] = mapped_column(ForeignKey("tags.name"), primary_key=True, index=True)


class DatasetFieldTagRow(Base):
    """A tag of a field, by the field's name: it outlives a change of type."""

    __tablename__ = "dataset_field_tags"

    dataset_uuid: Mapped[UUID] = mapped_column(reference("datasets", cascade=True), primary_key=True)
    field_name: Mapped[str] = mapped_column(String(512), primary_key=True)
    tag_name: Mapped[str] = mapped_column(ForeignKey("tags.name"), primary_key=True, index=True)


class JobTagRow(Base):
    """A tag of a job."""

    __tablename__ = "job_tags"

    job_uuid: Mapped[UUID] = mapped_column(reference("jobs", cascade=True), primary_key=True)
    tag_name: Mapped[str] = mapped_column(ForeignKey("tags.name"), primary_key=True, index=True)


class EventRow(Base):
    """An event as it was received, compressed. Its id is its content, so a retry finds itself."""

    __tablename__ = "lineage_events"

    uuid: Mapped[Key]
    kind: Mapped[str] = mapped_column(String(16))
    event_type: Mapped[str | None] = mapped_column(String(16))  # of a run's event, such as COMPLETE
    event_time: Mapped[int]
    received_at: Mapped[int]
    namespace_uuid: Mapped[UUID]
    run_uuid: Mapped[UUID | None] = mapped_column(index=True)
    payload: Mapped[bytes] = mapped_column(LargeBinary)

    __table_args__ = (
        Index(None, "kind", "event_time"),
        Index(None, "namespace_uuid", "event_time"),
        Index(None, "event_time"),
    )

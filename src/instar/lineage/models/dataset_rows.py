"""Tables about datasets: names that mean the same, versions, and schemas kept once per content."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from instar.lineage.models.base import Base, Key, Stamp, Words, reference

__all__ = [
    "AlertRow",
    "ColumnLineageRow",
    "DatasetFieldRow",
    "DatasetRow",
    "DatasetSymlinkRow",
    "DatasetVersionRow",
    "ObservedSchemaRow",
    "SchemaVersionFieldRow",
    "SchemaVersionRow",
]


_LONG_NAME = "fk_dataset_schema_versions_field_mapping_version"  # PostgreSQL allows 63 characters


class DatasetRow(Base):
    """A name under which a dataset was reported.

    Names that symlinks connect are one dataset. `root_uuid` is the main name of all of them, and only
    that row has a current version; versions stay with the name under which they were reported.
    """

    __tablename__ = "datasets"

    uuid: Mapped[Key]
    namespace_uuid: Mapped[UUID] = mapped_column(reference("namespaces"), index=True)
    name: Mapped[Words]
    type: Mapped[str] = mapped_column(String(16))
    physical_name: Mapped[Words]
    root_uuid: Mapped[UUID] = mapped_column(reference("datasets"), index=True)
    current_version_uuid: Mapped[UUID | None]
    version_count: Mapped[int]  # of this name; counting them would take longer the more there are
    created_at: Mapped[int]
    updated_at: Mapped[int]
    is_hidden: Mapped[bool]
    compatibility: Mapped[str] = mapped_column(String(16))
    webhook_url: Mapped[str | None]


class DatasetSymlinkRow(Base):
    """A dataset says that another name means the same."""

    __tablename__ = "dataset_symlinks"

    dataset_uuid: Mapped[UUID] = mapped_column(reference("datasets", cascade=True), primary_key=True)
    alias_uuid: Mapped[UUID] = mapped_column(
        reference("datasets", cascade=True), primary_key=True, index=True
    )
    type: Mapped[str | None]


class DatasetFieldRow(Base):
    """A field by its content: name, type (which may be unknown) and what is nested in it. Immutable."""

    __tablename__ = "dataset_fields"

    uuid: Mapped[Key]
    dataset_uuid: Mapped[UUID] = mapped_column(reference("datasets", cascade=True), index=True)
    name: Mapped[Words]
    type: Mapped[str | None]
    members: Mapped[str | None]  # JSON, sorted; null if nothing is nested


class SchemaVersionRow(Base):
    """A schema of a dataset by its content. Immutable, and there is one for each content."""

    __tablename__ = "dataset_schema_versions"

    uuid: Mapped[Key]
    dataset_uuid: Mapped[UUID] = mapped_column(reference("datasets", cascade=True))
    fingerprint: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[int]

    __table_args__ = (UniqueConstraint("dataset_uuid", "fingerprint"),)


class SchemaVersionFieldRow(Base):
    """A field that belongs to a schema version."""

    __tablename__ = "dataset_schema_versions_field_mapping"

    dataset_schema_version_uuid: Mapped[UUID] = mapped_column(
        reference("dataset_schema_versions", cascade=True, name=_LONG_NAME), primary_key=True
    )
    dataset_field_uuid: Mapped[UUID] = mapped_column(
        reference("dataset_fields", cascade=True), primary_key=True, index=True
    )


class ObservedSchemaRow(Base):
    """Fields that a reader saw in a dataset: they amend the schema of the version that it read."""

    __tablename__ = "dataset_observed_schemas"

    uuid: Mapped[Key]
    dataset_uuid: Mapped[UUID] = mapped_column(reference("datasets", cascade=True), index=True)
    content: Mapped[Words]  # JSON, as `SchemaContent.encode` writes it


class DatasetVersionRow(Base):
    """What one run wrote, one event described, or a reader found before anybody had written.

    The version is current from `current_at` until the next one; a run that has not completed has none.
    `declared_schema_version_uuid` is what the writer said, `dataset_schema_version_uuid` is that as amended
    by those who read this version.
    """

    __tablename__ = "dataset_versions"

    uuid: Mapped[Key]
    dataset_uuid: Mapped[UUID] = mapped_column(reference("datasets", cascade=True))
    run_uuid: Mapped[UUID | None] = mapped_column(reference("runs"), index=True)
    created_at: Mapped[int]
    current_at: Mapped[int | None]
    declared_schema_version_uuid: Mapped[UUID | None] = mapped_column(reference("dataset_schema_versions"))
    declared_stamp: Mapped[Stamp]
    dataset_schema_version_uuid: Mapped[UUID | None] = mapped_column(reference("dataset_schema_versions"))

    __table_args__ = (
        Index(None, "dataset_uuid", "current_at", "uuid"),
        Index(None, "dataset_uuid", "created_at", "uuid"),
        Index("ix_dataset_versions_declared", "declared_schema_version_uuid", "created_at"),
        Index("ix_dataset_versions_schema_version", "dataset_schema_version_uuid", "created_at"),
        Index(None, "created_at"),
    )


class ColumnLineageRow(Base):
    """A column that is made from another, kept once however many runs report it."""

    __tablename__ = "column_lineage"

    uuid: Mapped[Key]
    output_dataset_uuid: Mapped[UUID] = mapped_column(reference("datasets", cascade=True), index=True)
    output_field: Mapped[Words]
    input_dataset_uuid: Mapped[UUID] = mapped_column(reference("datasets", cascade=True), index=True)
    input_field: Mapped[Words]
    transformations: Mapped[Words]  # JSON: a list, in the order of the event
    transformation_type: Mapped[str | None]
    transformation_description: Mapped[str | None]
    job_uuid: Mapped[UUID | None] = mapped_column(reference("jobs"), index=True)
    first_seen_at: Mapped[int]
    last_seen_at: Mapped[int]


class AlertRow(Base):
    """A change of schema that a dataset's compatibility policy does not allow."""

    __tablename__ = "schema_alerts"

    uuid: Mapped[Key]
    dataset_uuid: Mapped[UUID] = mapped_column(reference("datasets", cascade=True), index=True)
    dataset_version_uuid: Mapped[UUID]
    policy: Mapped[str] = mapped_column(String(16))
    old_schema_version_uuid: Mapped[UUID]
    new_schema_version_uuid: Mapped[UUID]
    changes: Mapped[Words]  # JSON
    created_at: Mapped[int] = mapped_column(index=True)
    webhook_url: Mapped[str | None]
    delivery: Mapped[str | None] = mapped_column(String(16), index=True)  # pending, delivered or failed
    attempts: Mapped[int]
    problem: Mapped[str | None]

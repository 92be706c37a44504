"""Tables about jobs and their runs: states, inputs, and edges that outlive single runs."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import Index, String
from sqlalchemy.orm import Mapped, mapped_column

from instar.lineage.models.base import Base, Key, Stamp, Words, reference

__all__ = ["JobEdgeRow", "JobRow", "JobVersionIoRow", "JobVersionRow", "RunInputRow", "RunRow"]


class JobRow(Base):
    """A job, named exactly as events name it. Type, location and description are read from its facets."""

    __tablename__ = "jobs"

    uuid: Mapped[Key]
    namespace_uuid: Mapped[UUID] = mapped_column(reference("namespaces"), index=True)
    name: Mapped[Words]
    parent_uuid: Mapped[UUID | None] = mapped_column(reference("jobs"), index=True)
    parent_stamp: Mapped[Stamp]
    created_at: Mapped[int]
    updated_at: Mapped[int]
    is_hidden: Mapped[bool]


class JobVersionRow(Base):
    """A job with one set of inputs and outputs. Its id is that content."""

    __tablename__ = "job_versions"

    uuid: Mapped[Key]
    job_uuid: Mapped[UUID] = mapped_column(reference("jobs", cascade=True), index=True)


class JobVersionIoRow(Base):
    """An input or output of a job version."""

    __tablename__ = "job_versions_io_mapping"

    job_version_uuid: Mapped[UUID] = mapped_column(reference("job_versions", cascade=True), primary_key=True)
    dataset_uuid: Mapped[UUID] = mapped_column(
        reference("datasets", cascade=True), primary_key=True, index=True
    )
    io: Mapped[str] = mapped_column(String(8), primary_key=True)


class JobEdgeRow(Base):
    """A job reads or writes a dataset: the union over all runs, and when it was first and last seen."""

    __tablename__ = "job_edges"

    job_uuid: Mapped[UUID] = mapped_column(reference("jobs", cascade=True), primary_key=True)
    dataset_uuid: Mapped[UUID] = mapped_column(
        reference("datasets", cascade=True), primary_key=True, index=True
    )
    io: Mapped[str] = mapped_column(String(8), primary_key=True)
    first_seen_at: Mapped[int]
    last_seen_at: Mapped[int]


class RunRow(Base):
    """A run of a job. A terminal state wins over any other; between equals, the latest event wins."""

    __tablename__ = "runs"

    uuid: Mapped[Key]
    run_id: Mapped[Words]
    job_uuid: Mapped[UUID] = mapped_column(reference("jobs"))
    job_stamp: Mapped[Stamp]
    state: Mapped[str] = mapped_column(String(16))
    state_stamp: Mapped[Stamp]
    is_streaming: Mapped[bool]
    created_at: Mapped[int]
    updated_at: Mapped[int] = mapped_column(index=True)
    started_at: Mapped[int | None]
    ended_at: Mapped[int | None]
    job_version_uuid: Mapped[UUID | None] = mapped_column(reference("job_versions"), index=True)

    __table_args__ = (Index(None, "job_uuid", "created_at", "uuid"),)


class RunInputRow(Base):
    """A run, or a job without a run, reads a dataset: since when, and with which fields it saw it."""

    __tablename__ = "run_inputs"

    uuid: Mapped[Key]
    run_uuid: Mapped[UUID | None] = mapped_column(reference("runs", cascade=True), index=True)
    job_uuid: Mapped[UUID] = mapped_column(reference("jobs", cascade=True), index=True)
    dataset_uuid: Mapped[UUID] = mapped_column(reference("datasets", cascade=True))
    at: Mapped[int]
    observed_uuid: Mapped[UUID | None] = mapped_column(reference("dataset_observed_schemas"))
    observed_stamp: Mapped[Stamp]

    __table_args__ = (
        Index(None, "dataset_uuid", "at", "uuid"),
        Index(None, "observed_uuid", "at"),
        Index(None, "at"),
    )

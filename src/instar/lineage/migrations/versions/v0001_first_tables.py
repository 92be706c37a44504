"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "facet_contents",
        sa.Column("uuid", sa.Uuid(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("uuid", name="pk_facet_contents"),
    )
    op.create_table(
        "lineage_events",
        sa.Column("uuid", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("event_time", sa.BigInteger(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("namespace_uuid", sa.Uuid(), nullable=False),
        sa.Column("run_uuid", sa.Uuid(), nullable=True),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("uuid", name="pk_lineage_events"),
    )
    op.create_index("ix_lineage_events_event_time", "lineage_events", ["event_time"], unique=False)
    op.create_index(
        "ix_lineage_events_kind_event_time", "lineage_events", ["kind", "event_time"], unique=False
    )
    op.create_index(
        "ix_lineage_events_namespace_uuid_event_time",
        "lineage_events",
        ["namespace_uuid", "event_time"],
        unique=False,
    )
    op.create_index("ix_lineage_events_run_uuid", "lineage_events", ["run_uuid"], unique=False)
    op.create_table(
        "namespaces",
        sa.Column("uuid", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=True),
        sa.Column("owner_name", sa.Text(), nullable=True),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("is_hidden", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("uuid", name="pk_namespaces"),
    )
    op.create_table(
        "sources",
        sa.Column("uuid", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("connection_url", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column(
            "stamp",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("uuid", name="pk_sources"),
    )
    op.create_table(
        "tags",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_tags"),
    )
    op.create_table(
        "datasets",
        sa.Column("uuid", sa.Uuid(), nullable=False),
        sa.Column("namespace_uuid", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.String(length=16), nullable=False),
        sa.Column("physical_name", sa.Text(), nullable=False),
        sa.Column("root_uuid", sa.Uuid(), nullable=False),
        sa.Column("current_version_uuid", sa.Uuid(), nullable=True),
        sa.Column("version_count", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("is_hidden", sa.Boolean(), nullable=False),
        sa.Column("compatibility", sa.String(length=16), nullable=False),
        sa.Column("webhook_url", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["namespace_uuid"], ["namespaces.uuid"], name="fk_datasets_namespace_uuid"),
        sa.ForeignKeyConstraint(["root_uuid"], ["datasets.uuid"], name="fk_datasets_root_uuid"),
        sa.PrimaryKeyConstraint("uuid", name="pk_datasets"),
    )
    op.create_index("ix_datasets_current_version_uuid", "datasets", ["current_version_uuid"], unique=False)
    op.create_index("ix_datasets_namespace_uuid", "datasets", ["namespace_uuid"], unique=False)
    op.create_index("ix_datasets_root_uuid", "datasets", ["root_uuid"], unique=False)
    op.create_index("ix_datasets_updated_at", "datasets", ["updated_at"], unique=False)
    op.create_table(
        "facets",
        sa.Column("owner_uuid", sa.Uuid(), nullable=False),
        sa.Column("scope", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=512), nullable=False),
        sa.Column("content_uuid", sa.Uuid(), nullable=False),
        sa.Column(
            "stamp",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(["content_uuid"], ["facet_contents.uuid"], name="fk_facets_content_uuid"),
        sa.PrimaryKeyConstraint("owner_uuid", "scope", "name", name="pk_facets"),
    )
    op.create_index("ix_facets_content_uuid", "facets", ["content_uuid"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("uuid", sa.Uuid(), nullable=False),
        sa.Column("namespace_uuid", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("parent_uuid", sa.Uuid(), nullable=True),
        sa.Column(
            "parent_stamp",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("is_hidden", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["namespace_uuid"], ["namespaces.uuid"], name="fk_jobs_namespace_uuid"),
        sa.ForeignKeyConstraint(["parent_uuid"], ["jobs.uuid"], name="fk_jobs_parent_uuid"),
        sa.PrimaryKeyConstraint("uuid", name="pk_jobs"),
    )
    op.create_index("ix_jobs_namespace_uuid", "jobs", ["namespace_uuid"], unique=False)
    op.create_index("ix_jobs_parent_uuid", "jobs", ["parent_uuid"], unique=False)
    op.create_index("ix_jobs_updated_at", "jobs", ["updated_at"], unique=False)
    op.create_table(
        "column_lineage",
        sa.Column("uuid", sa.Uuid(), nullable=False),
        sa.Column("output_dataset_uuid", sa.Uuid(), nullable=False),
        sa.Column("output_field", sa.Text(), nullable=False),
        sa.Column("input_dataset_uuid", sa.Uuid(), nullable=False),
        sa.Column("input_field", sa.Text(), nullable=False),
        sa.Column("transformations", sa.Text(), nullable=False),
        sa.Column("transformation_type", sa.Text(), nullable=True),
        sa.Column("transformation_description", sa.Text(), nullable=True),
        sa.Column("job_uuid", sa.Uuid(), nullable=True),
        sa.Column("first_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["input_dataset_uuid"],
            ["datasets.uuid"],
            name="fk_column_lineage_input_dataset_uuid",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["job_uuid"], ["jobs.uuid"], name="fk_column_lineage_job_uuid"),
        sa.ForeignKeyConstraint(
            ["output_dataset_uuid"],
            ["datasets.uuid"],
            name="fk_column_lineage_output_dataset_uuid",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("uuid", name="pk_column_lineage"),
    )
    op.create_index(
        "ix_column_lineage_input_dataset_uuid", "column_lineage", ["input_dataset_uuid"], unique=False
    )
    op.create_index("ix_column_lineage_job_uuid", "column_lineage", ["job_uuid"], unique=False)
    op.create_index(
        "ix_column_lineage_output_dataset_uuid", "column_lineage", ["output_dataset_uuid"], unique=False
    )
    op.create_table(
        "dataset_field_tags",
        sa.Column("dataset_uuid", sa.Uuid(), nullable=False),
        sa.Column("field_name", sa.String(length=512), nullable=False),
        sa.Column("tag_name", sa.String(length=255), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_uuid"], ["datasets.uuid"], name="fk_dataset_field_tags_dataset_uuid", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["tag_name"], ["tags.name"], name="fk_dataset_field_tags_tag_name"),
        sa.PrimaryKeyConstraint("dataset_uuid", "field_name", "tag_name", name="pk_dataset_field_tags"),
    )
    op.create_index("ix_dataset_field_tags_tag_name", "dataset_field_tags", ["tag_name"], unique=False)
    op.create_table(
        "dataset_fields",
        sa.Column("uuid", sa.Uuid(), nullable=False),
        sa.Column("dataset_uuid", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=True),
        sa.Column("members", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["dataset_uuid"], ["datasets.uuid"], name="fk_dataset_fields_dataset_uuid", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("uuid", name="pk_dataset_fields"),
    )
    op.create_index("ix_dataset_fields_dataset_uuid", "dataset_fields", ["dataset_uuid"], unique=False)
    op.create_table(
        "dataset_observed_schemas",
        sa.Column("uuid", sa.Uuid(), nullable=False),
        sa.Column("dataset_uuid", sa.Uuid(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_uuid"],
            ["datasets.uuid"],
            name="fk_dataset_observed_schemas_dataset_uuid",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("uuid", name="pk_dataset_observed_schemas"),
    )
    op.create_index(
        "ix_dataset_observed_schemas_dataset_uuid", "dataset_observed_schemas", ["dataset_uuid"], unique=False
    )
    op.create_table(
        "dataset_schema_versions",
        sa.Column("uuid", sa.Uuid(), nullable=False),
        sa.Column("dataset_uuid", sa.Uuid(), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_uuid"],
            ["datasets.uuid"],
            name="fk_dataset_schema_versions_dataset_uuid",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("uuid", name="pk_dataset_schema_versions"),
        sa.UniqueConstraint(
            "dataset_uuid", "fingerprint", name="uq_dataset_schema_versions_dataset_uuid_fingerprint"
        ),
    )
    op.create_table(
        "dataset_symlinks",
        sa.Column("dataset_uuid", sa.Uuid(), nullable=False),
        sa.Column("alias_uuid", sa.Uuid(), nullable=False),
        sa.Column("type", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["alias_uuid"], ["datasets.uuid"], name="fk_dataset_symlinks_alias_uuid", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["dataset_uuid"], ["datasets.uuid"], name="fk_dataset_symlinks_dataset_uuid", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("dataset_uuid", "alias_uuid", name="pk_dataset_symlinks"),
    )
    op.create_index("ix_dataset_symlinks_alias_uuid", "dataset_symlinks", ["alias_uuid"], unique=False)
    op.create_table(
        "dataset_tags",
        sa.Column("dataset_uuid", sa.Uuid(), nullable=False),
        sa.Column("tag_name", sa.String(length=255), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_uuid"], ["datasets.uuid"], name="fk_dataset_tags_dataset_uuid", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["tag_name"], ["tags.name"], name="fk_dataset_tags_tag_name"),
        sa.PrimaryKeyConstraint("dataset_uuid", "tag_name", name="pk_dataset_tags"),
    )
    op.create_index("ix_dataset_tags_tag_name", "dataset_tags", ["tag_name"], unique=False)
    op.create_table(
        "job_edges",
        sa.Column("job_uuid", sa.Uuid(), nullable=False),
        sa.Column("dataset_uuid", sa.Uuid(), nullable=False),
        sa.Column("io", sa.String(length=8), nullable=False),
        sa.Column("first_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_uuid"], ["datasets.uuid"], name="fk_job_edges_dataset_uuid", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["job_uuid"], ["jobs.uuid"], name="fk_job_edges_job_uuid", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_uuid", "dataset_uuid", "io", name="pk_job_edges"),
    )
    op.create_index("ix_job_edges_dataset_uuid", "job_edges", ["dataset_uuid"], unique=False)
    op.create_table(
        "job_tags",
        sa.Column("job_uuid", sa.Uuid(), nullable=False),
        sa.Column("tag_name", sa.String(length=255), nullable=False),
        sa.ForeignKeyConstraint(["job_uuid"], ["jobs.uuid"], name="fk_job_tags_job_uuid", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["tag_name"], ["tags.name"], name="fk_job_tags_tag_name"),
        sa.PrimaryKeyConstraint("job_uuid", "tag_name", name="pk_job_tags"),
    )
    op.create_index("ix_job_tags_tag_name", "job_tags", ["tag_name"], unique=False)
    op.create_table(
        "job_versions",
        sa.Column("uuid", sa.Uuid(), nullable=False),
        sa.Column("job_uuid", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_uuid"], ["jobs.uuid"], name="fk_job_versions_job_uuid", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("uuid", name="pk_job_versions"),
    )
    op.create_index("ix_job_versions_job_uuid", "job_versions", ["job_uuid"], unique=False)
    op.create_table(
        "schema_alerts",
        sa.Column("uuid", sa.Uuid(), nullable=False),
        sa.Column("dataset_uuid", sa.Uuid(), nullable=False),
        sa.Column("dataset_version_uuid", sa.Uuid(), nullable=False),
        sa.Column("policy", sa.String(length=16), nullable=False),
        sa.Column("old_schema_version_uuid", sa.Uuid(), nullable=False),
        sa.Column("new_schema_version_uuid", sa.Uuid(), nullable=False),
        sa.Column("changes", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("webhook_url", sa.Text(), nullable=True),
        sa.Column("delivery", sa.String(length=16), nullable=True),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["dataset_uuid"], ["datasets.uuid"], name="fk_schema_alerts_dataset_uuid", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("uuid", name="pk_schema_alerts"),
    )
    op.create_index("ix_schema_alerts_created_at", "schema_alerts", ["created_at"], unique=False)
    op.create_index("ix_schema_alerts_dataset_uuid", "schema_alerts", ["dataset_uuid"], unique=False)
    op.create_index("ix_schema_alerts_delivery", "schema_alerts", ["delivery"], unique=False)
    op.create_table(
        "dataset_schema_versions_field_mapping",
        sa.Column("dataset_schema_version_uuid", sa.Uuid(), nullable=False),
        sa.Column("dataset_field_uuid", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_field_uuid"],
            ["dataset_fields.uuid"],
            name="fk_dataset_schema_versions_field_mapping_dataset_field_uuid",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["dataset_schema_version_uuid"],
            ["dataset_schema_versions.uuid"],
            name="fk_dataset_schema_versions_field_mapping_version",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "dataset_schema_version_uuid",
            "dataset_field_uuid",
            name="pk_dataset_schema_versions_field_mapping",
        ),
    )
    op.create_index(
        "ix_dataset_schema_versions_field_mapping_dataset_field_uuid",
        "dataset_schema_versions_field_mapping",
        ["dataset_field_uuid"],
        unique=False,
    )
    op.create_table(
        "job_versions_io_mapping",
        sa.Column("job_version_uuid", sa.Uuid(), nullable=False),
        sa.Column("dataset_uuid", sa.Uuid(), nullable=False),
        sa.Column("io", sa.String(length=8), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_uuid"],
            ["datasets.uuid"],
            name="fk_job_versions_io_mapping_dataset_uuid",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["job_version_uuid"],
            ["job_versions.uuid"],
            name="fk_job_versions_io_mapping_job_version_uuid",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("job_version_uuid", "dataset_uuid", "io", name="pk_job_versions_io_mapping"),
    )
    op.create_index(
        "ix_job_versions_io_mapping_dataset_uuid", "job_versions_io_mapping", ["dataset_uuid"], unique=False
    )
    op.create_table(
        "runs",
        sa.Column("uuid", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("job_uuid", sa.Uuid(), nullable=False),
        sa.Column(
            "job_stamp",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column(
            "state_stamp",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("is_streaming", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("job_version_uuid", sa.Uuid(), nullable=True),
        sa.ForeignKeyConstraint(["job_uuid"], ["jobs.uuid"], name="fk_runs_job_uuid"),
        sa.ForeignKeyConstraint(["job_version_uuid"], ["job_versions.uuid"], name="fk_runs_job_version_uuid"),
        sa.PrimaryKeyConstraint("uuid", name="pk_runs"),
    )
    op.create_index(
        "ix_runs_job_uuid_created_at_uuid", "runs", ["job_uuid", "created_at", "uuid"], unique=False
    )
    op.create_index("ix_runs_job_version_uuid", "runs", ["job_version_uuid"], unique=False)
    op.create_index("ix_runs_updated_at", "runs", ["updated_at"], unique=False)
    op.create_table(
        "dataset_versions",
        sa.Column("uuid", sa.Uuid(), nullable=False),
        sa.Column("dataset_uuid", sa.Uuid(), nullable=False),
        sa.Column("run_uuid", sa.Uuid(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("current_at", sa.BigInteger(), nullable=True),
        sa.Column("declared_schema_version_uuid", sa.Uuid(), nullable=True),
        sa.Column(
            "declared_stamp",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.Column("dataset_schema_version_uuid", sa.Uuid(), nullable=True),
        sa.ForeignKeyConstraint(
            ["dataset_schema_version_uuid"],
            ["dataset_schema_versions.uuid"],
            name="fk_dataset_versions_dataset_schema_version_uuid",
        ),
        sa.ForeignKeyConstraint(
            ["dataset_uuid"], ["datasets.uuid"], name="fk_dataset_versions_dataset_uuid", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["declared_schema_version_uuid"],
            ["dataset_schema_versions.uuid"],
            name="fk_dataset_versions_declared_schema_version_uuid",
        ),
        sa.ForeignKeyConstraint(["run_uuid"], ["runs.uuid"], name="fk_dataset_versions_run_uuid"),
        sa.PrimaryKeyConstraint("uuid", name="pk_dataset_versions"),
    )
    op.create_index("ix_dataset_versions_created_at", "dataset_versions", ["created_at"], unique=False)
    op.create_index(
        "ix_dataset_versions_dataset_uuid_created_at_uuid",
        "dataset_versions",
        ["dataset_uuid", "created_at", "uuid"],
        unique=False,
    )
    op.create_index(
        "ix_dataset_versions_dataset_uuid_current_at_uuid",
        "dataset_versions",
        ["dataset_uuid", "current_at", "uuid"],
        unique=False,
    )
    op.create_index(
        "ix_dataset_versions_declared",
        "dataset_versions",
        ["declared_schema_version_uuid", "created_at"],
        unique=False,
    )
    op.create_index("ix_dataset_versions_run_uuid", "dataset_versions", ["run_uuid"], unique=False)
    op.create_index(
        "ix_dataset_versions_schema_version",
        "dataset_versions",
        ["dataset_schema_version_uuid", "created_at"],
        unique=False,
    )
    op.create_table(
        "run_inputs",
        sa.Column("uuid", sa.Uuid(), nullable=False),
        sa.Column("run_uuid", sa.Uuid(), nullable=True),
        sa.Column("job_uuid", sa.Uuid(), nullable=False),
        sa.Column("dataset_uuid", sa.Uuid(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("observed_uuid", sa.Uuid(), nullable=True),
        sa.Column(
            "observed_stamp",
            sa.String(length=40).with_variant(sa.String(length=40, collation="C"), "postgresql"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["dataset_uuid"], ["datasets.uuid"], name="fk_run_inputs_dataset_uuid", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["job_uuid"], ["jobs.uuid"], name="fk_run_inputs_job_uuid", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["observed_uuid"], ["dataset_observed_schemas.uuid"], name="fk_run_inputs_observed_uuid"
        ),
        sa.ForeignKeyConstraint(
            ["run_uuid"], ["runs.uuid"], name="fk_run_inputs_run_uuid", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("uuid", name="pk_run_inputs"),
    )
    op.create_index("ix_run_inputs_at", "run_inputs", ["at"], unique=False)
    op.create_index(
        "ix_run_inputs_dataset_uuid_at_uuid", "run_inputs", ["dataset_uuid", "at", "uuid"], unique=False
    )
    op.create_index("ix_run_inputs_job_uuid", "run_inputs", ["job_uuid"], unique=False)
    op.create_index("ix_run_inputs_observed_uuid_at", "run_inputs", ["observed_uuid", "at"], unique=False)
    op.create_index("ix_run_inputs_run_uuid", "run_inputs", ["run_uuid"], unique=False)

"""What people and older clients write: namespaces, sources, datasets, jobs, runs, tags and deletions."""

from instar.lineage.edits.datasets import delete_dataset, put_dataset, put_policy
from instar.lineage.edits.jobs import create_run, delete_job, mark_run, put_job
from instar.lineage.edits.namespaces import delete_namespace, put_namespace, put_source
from instar.lineage.edits.tags import put_tag, tag_dataset, tag_field, tag_job

__all__ = [
    "create_run",
    "delete_dataset",
    "delete_job",
    "delete_namespace",
    "mark_run",
    "put_dataset",
    "put_job",
    "put_namespace",
    "put_policy",
    "put_source",
    "put_tag",
    "tag_dataset",
    "tag_field",
    "tag_job",
]

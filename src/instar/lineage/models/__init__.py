"""The tables of the lineage database, one class for each; `migrations` creates them."""

from instar.lineage.models.base import Base
from instar.lineage.models.dataset_rows import (
    AlertRow,
    ColumnLineageRow,
    DatasetFieldRow,
    DatasetRow,
    DatasetSymlinkRow,
    DatasetVersionRow,
    ObservedSchemaRow,
    SchemaVersionFieldRow,
    SchemaVersionRow,
)
from instar.lineage.models.job_rows import (
    JobEdgeRow,
    JobRow,
    JobVersionIoRow,
    JobVersionRow,
    RunInputRow,
    RunRow,
)
from instar.lineage.models.shared_rows import (
    DatasetFieldTagRow,
    DatasetTagRow,
    EventRow,
    FacetContentRow,
    FacetRow,
    JobTagRow,
    NamespaceRow,
    SourceRow,
    TagRow,
)

__all__ = [
    "AlertRow",
    "Base",
    "ColumnLineageRow",
    "DatasetFieldRow",
    "DatasetFieldTagRow",
    "DatasetRow",
    "DatasetSymlinkRow",
    "DatasetTagRow",
    "DatasetVersionRow",
    "EventRow",
    "FacetContentRow",
    "FacetRow",
    "JobEdgeRow",
    "JobRow",
    "JobTagRow",
    "JobVersionIoRow",
    "JobVersionRow",
    "NamespaceRow",
    "ObservedSchemaRow",
    "RunInputRow",
    "RunRow",
    "SchemaVersionFieldRow",
    "SchemaVersionRow",
    "SourceRow",
    "TagRow",
]

"""Parts: Arrow data in the layout of a schema, written as Parquet files with statistics, and read back."""

from instar.parts.adopted import path_value
from instar.parts.adopting import adopted_stats, check_foreign, foreign_nanos
from instar.parts.choice import RowChoice
from instar.parts.clustering import cluster_rows, clustered_run, sample_rows
from instar.parts.conform import Conformer, conform
from instar.parts.consolidate import consolidate, expand, group_rows, snapshot_rows
from instar.parts.curve import Curve
from instar.parts.foreign import ForeignFile, inspect_file
from instar.parts.incoming import (
    ArrowData,
    NewColumn,
    as_table,
    data_schema,
    needed_types,
    new_columns,
    open_stream,
    wider_columns,
)
from instar.parts.layout import DIFF, TS
from instar.parts.merge import merge_runs
from instar.parts.needed import needed_fields
from instar.parts.probe import Probe
from instar.parts.read import read_part
from instar.parts.rows import compare_bounds, decode_row, encode_limits, may_overlap
from instar.parts.settle import settle_runs
from instar.parts.sort import rank_rows, sort_indices, sort_rows
from instar.parts.spill import spill_runs
from instar.parts.split import write_parts
from instar.parts.statistics import (
    STATS_BUDGET,
    column_stats,
    compute_stats,
    fit_budget,
    key_stats,
    present_fields,
)
from instar.parts.write import NewPart, PartLimits, RowOrder, write_part

__all__ = [
    "DIFF",
    "STATS_BUDGET",
    "TS",
    "ArrowData",
    "Conformer",
    "Curve",
    "ForeignFile",
    "NewColumn",
    "NewPart",
    "PartLimits",
    "Probe",
    "RowChoice",
    "RowOrder",
    "adopted_stats",
    "as_table",
    "check_foreign",
    "cluster_rows",
    "clustered_run",
    "column_stats",
    "compare_bounds",
    "compute_stats",
    "conform",
    "consolidate",
    "data_schema",
    "decode_row",
    "encode_limits",
    "expand",
    "fit_budget",
    "foreign_nanos",
    "group_rows",
    "inspect_file",
    "key_stats",
    "may_overlap",
    "merge_runs",
    "needed_fields",
    "needed_types",
    "new_columns",
    "open_stream",
    "path_value",
    "present_fields",
    "rank_rows",
    "read_part",
    "sample_rows",
    "settle_runs",
    "snapshot_rows",
    "sort_indices",
    "sort_rows",
    "spill_runs",
    "wider_columns",
    "write_part",
    "write_parts",
]

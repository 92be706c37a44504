"""The durable state of a table: a value, the commands that change it, and its bytes."""

from instar.state.codec import decode_commit, decode_rollup, encode_commit, encode_rollup
from instar.state.commits import (
    Appended,
    Checkpointed,
    CommitRecord,
    Compacted,
    Configured,
    ConfigValue,
    Created,
    Dropped,
    Evolved,
    NewBatch,
    SinceAdvanced,
    Start,
    Step,
)
from instar.state.parts import Adopted, Batch, BatchHeader, ChunkRef, Part, Place, PlacedPart
from instar.state.retractions import Retraction, SheetRef
from instar.state.table_state import TableState, TokenRecord, Totals, apply, check_follows, rebase

__all__ = [
    "Adopted",
    "Appended",
    "Batch",
    "BatchHeader",
    "Checkpointed",
    "ChunkRef",
    "CommitRecord",
    "Compacted",
    "ConfigValue",
    "Configured",
    "Created",
    "Dropped",
    "Evolved",
    "NewBatch",
    "Part",
    "Place",
    "PlacedPart",
    "Retraction",
    "SheetRef",
    "SinceAdvanced",
    "Start",
    "Step",
    "TableState",
    "TokenRecord",
    "Totals",
    "apply",
    "check_follows",
    "decode_commit",
    "decode_rollup",
    "encode_commit",
    "encode_rollup",
    "rebase",
]

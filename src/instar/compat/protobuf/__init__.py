"""Protobuf: versions of messages, their differences, and the columns that records become.

What needs the protobuf library is not exported here, because it is an extra: `descriptors` and `compile`.
"""

from instar.compat.protobuf.compare import compare_protobuf
from instar.compat.protobuf.mapping import column_type, columns, tables
from instar.compat.protobuf.model import ProtobufVersion

__all__ = ["ProtobufVersion", "column_type", "columns", "compare_protobuf", "tables"]

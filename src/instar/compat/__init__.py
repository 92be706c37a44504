"""The compatibility check: what differs between two versions of a schema, and what that breaks."""

from instar.compat.avro import AvroVersion, parse_avro
from instar.compat.columns import ColumnsVersion
from instar.compat.json_schema import JsonSchemaVersion, parse_json_schema
from instar.compat.judge import Answer, Judgements, Version, judge
from instar.compat.judgement import RULES_VERSION, Axis, Difference, Judgement, Level, Ruling
from instar.compat.load import load_version
from instar.compat.protobuf import ProtobufVersion

__all__ = [
    "RULES_VERSION",
    "Answer",
    "AvroVersion",
    "Axis",
    "ColumnsVersion",
    "Difference",
    "JsonSchemaVersion",
    "Judgement",
    "Judgements",
    "Level",
    "ProtobufVersion",
    "Ruling",
    "Version",
    "judge",
    "load_version",
    "parse_avro",
    "parse_json_schema",
]

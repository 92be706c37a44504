"""Blobs and consensus: the two services that a store keeps its durable state in."""

from instar.storage.backoff import pauses
from instar.storage.blob import Blob, Data, StoredObject, creates_twice, put_if_missing
from instar.storage.bloblog import BlobConsensus
from instar.storage.consensus import AppendResult, Consensus, MemoryConsensus, Versioned
from instar.storage.directory import DirectoryBlob
from instar.storage.frame import FORMAT_VERSION, decode_frame, encode_frame
from instar.storage.keys import check_key
from instar.storage.location import consensus_kind, open_blob, open_consensus
from instar.storage.objects import ObjectBlob

__all__ = [
    "FORMAT_VERSION",
    "AppendResult",
    "Blob",
    "BlobConsensus",
    "Consensus",
    "Data",
    "DirectoryBlob",
    "MemoryConsensus",
    "ObjectBlob",
    "StoredObject",
    "Versioned",
    "check_key",
    "consensus_kind",
    "creates_twice",
    "decode_frame",
    "encode_frame",
    "open_blob",
    "open_consensus",
    "pauses",
    "put_if_missing",
]

"""Blobs and consensus: the two services that a store keeps its durable state in."""

from instar.storage.blob import Blob, StoredObject
from instar.storage.bloblog import BlobConsensus
from instar.storage.consensus import Appended, Consensus, MemoryConsensus, Versioned
from instar.storage.directory import DirectoryBlob
from instar.storage.location import consensus_kind, open_blob, open_consensus
from instar.storage.objects import ObjectBlob

__all__ = [
    "Appended",
    "Blob",
    "BlobConsensus",
    "Consensus",
    "DirectoryBlob",
    "MemoryConsensus",
    "ObjectBlob",
    "StoredObject",
    "Versioned",
    "consensus_kind",
    "open_blob",
    "open_consensus",
]

"""How events become rows: what is stored is a function of the set of events, not of their order."""

from instar.lineage.ingest.record import ingest_event

__all__ = ["ingest_event"]

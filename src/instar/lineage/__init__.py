"""Lineage: OpenLineage events in a database, with every schema kept once. Nothing here knows about HTTP."""

from instar.lineage.database import Database, open_database
from instar.lineage.events import OpenLineageEvent, decode_event
from instar.lineage.ingest import ingest_event

__all__ = ["Database", "OpenLineageEvent", "decode_event", "ingest_event", "open_database"]

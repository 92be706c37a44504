"""Databases of both kinds."""

from tests.lineage import database, database_url
from tests.servers import postgres

__all__ = ["database", "database_url", "postgres"]

"""A service on databases of both kinds."""

from tests.lineage import database, database_url
from tests.servers import postgres
from tests.service import service

__all__ = ["database", "database_url", "postgres", "service"]

"""The endpoints: one module for each part of the API, each with a list of `Endpoint`."""

from instar.service.api.catalog import CATALOG
from instar.service.api.datasets import DATASETS
from instar.service.api.graph import GRAPH
from instar.service.api.jobs import JOBS
from instar.service.api.lineage import LINEAGE

__all__ = ["ENDPOINTS"]

ENDPOINTS = [*LINEAGE, *CATALOG, *DATASETS, *JOBS, *GRAPH]

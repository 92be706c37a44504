"""The lineage service: OpenLineage in, the Marquez API out, over HTTP."""

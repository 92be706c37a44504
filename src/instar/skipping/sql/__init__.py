"""The front end for filters written in Spark's SQL."""

from instar.skipping.sql.parse import parse_filter

__all__ = ["parse_filter"]

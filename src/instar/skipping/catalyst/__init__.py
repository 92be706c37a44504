"""The front end for Catalyst expressions, as Spark prints them in JSON."""

from instar.skipping.catalyst.parse import parse_catalyst

__all__ = ["parse_catalyst"]

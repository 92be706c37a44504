"""Telling OpenLineage what was written. Without a configuration, nothing is imported or started."""

from instar.reporting.run import Input, Output, reading_from, reported

__all__ = ["Input", "Output", "reading_from", "reported"]

"""Telling OpenLineage what was written. Without a configuration, nothing is imported or started."""

from instar.reporting.run import RunInput, RunOutput, reading_from, reported

__all__ = ["RunInput", "RunOutput", "reading_from", "reported"]

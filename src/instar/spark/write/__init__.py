"""Frames of Spark on their way into a table."""

"""Streams on Spark: a range of tables as one frame, writes to many tables at once, and jobs."""

"""Scans of tables that Spark's planner knows: DataSource V2, driven from Python.

`table.py` has how a scan is obtained. All of this runs on the driver; what goes to executors is Spark's own.
"""

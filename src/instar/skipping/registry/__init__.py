"""The registry: one row for each function that skipping understands."""

from instar.skipping.registry.row import Param, Row
from instar.skipping.registry.rows import BY_CLASS, BY_SQL, ROWS, SUBJECTS, load_row, render_call

__all__ = ["BY_CLASS", "BY_SQL", "ROWS", "SUBJECTS", "Param", "Row", "load_row", "render_call"]

"""Files of other formats, read and written in process: CSV, JSON lines, Parquet and Arrow.

Only what knows their names is exported here; what opens them is imported from its own module, and is slow.
"""

from instar.files.formats import Format, find_files, guess_format

__all__ = ["Format", "find_files", "guess_format"]

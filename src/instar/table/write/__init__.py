"""Writing to a table without an engine: storing parts in process, and committing what was stored."""

"""Reading a table without an engine: plans of snapshots and listens, filters, and rows in process."""

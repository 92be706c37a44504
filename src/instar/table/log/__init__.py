"""The log of a table: its entries, the state at its end, rollups, metadata of parts, leases."""

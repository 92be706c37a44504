"""Queries: each function takes a connection and returns a value for JSON."""

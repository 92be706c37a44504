"""Maintenance of a table while others read and write it."""

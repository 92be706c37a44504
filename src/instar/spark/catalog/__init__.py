"""A store as a catalog of Spark SQL: what its statements do to tables, and statements of our own."""

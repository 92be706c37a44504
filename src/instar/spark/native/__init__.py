"""Reading with Spark's own Parquet reader: our parts as its files, its filters as ours."""

"""The format `instar`: source and sink for batches and streams, run by Python workers."""

"""What tests, benchmarks and soaks share: real servers, processes to kill, and workloads.

Nothing here is a test, and nothing here needs pytest.
"""

"""Benchmarks: each is one command, and prints ratios that were measured in one run."""

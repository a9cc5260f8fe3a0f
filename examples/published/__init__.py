"""Benchmark mechanisms that others published, each with its source and its reference numbers."""

"""Benchmarks: each measures a part of the system beside a reference of the same run, and gives rows of one table."""

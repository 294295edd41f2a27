"""Benchmarks (`five bench`): one module for each measured part."""

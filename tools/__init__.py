"""Generators of the repository's files, run by ``make generate``. They are not installed."""

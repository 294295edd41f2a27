"""Generators of the repository's own files: ``make generate`` runs them. Nothing of this is installed."""

"""Advancing an anneal: the gradual introduction of a game change."""

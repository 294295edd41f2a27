"""Annealing a change into games, and the guard that watches it (Berner et al. 2019, appendix B)."""

"""Sweeps (`five sweep`): search for the best values of a preset's keys. A sampled configuration is a variant; Optuna
calls it a trial."""

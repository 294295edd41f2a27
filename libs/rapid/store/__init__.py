"""A run in Redis: its state, its events, its newest parameters."""

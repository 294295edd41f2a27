"""Spectator format: a game's visible state as numbers, in chunks of about four seconds, live and in files."""

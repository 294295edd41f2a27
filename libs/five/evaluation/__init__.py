"""Matches and ladders of archived versions and bots, played in this process without any service."""

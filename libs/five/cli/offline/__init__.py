"""Versions of a run that has ended, or goes on, loaded and played in this process: no service is needed."""

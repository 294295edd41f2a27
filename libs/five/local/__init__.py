"""Runs of this machine: their folder, processes, passwords and the client of their REST API."""

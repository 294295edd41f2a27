"""Rehearsals of surgery: a plan tried on a fork of a local run."""

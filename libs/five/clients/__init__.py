"""Typed clients of the services. They know arrays by name and shape, and no rules of any game."""

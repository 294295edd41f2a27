"""Packed agents: folders with a trained agent's weights, configuration, card, games and replay. They need no run."""

"""Metrics of an environment server."""

from rapid.telemetry.metrics import counter, gauge, histogram

GAMES = gauge("env", "open", "games", "Games in progress.")
GAME_STEPS = counter("env", "game_steps", "Timesteps of games.")
HERO_STEPS = counter("env", "hero_steps", "Timesteps of heroes, of both sides.")
STEP_SECONDS = histogram("env", "step", "seconds", "Time in the core of one request's timestep, over all its games.")


def count_steps(games: int, heroes: int, seconds: float) -> None:
    """Count one step of ``games`` games with ``heroes`` heroes each."""
    GAME_STEPS.inc(games)
    HERO_STEPS.inc(games * heroes)
    STEP_SECONDS.observe(seconds)

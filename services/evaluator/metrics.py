"""Metrics of the evaluator."""

import math
from collections.abc import Mapping
from typing import Any

from five.services.evaluator.matches import Pairing
from rapid.telemetry.metrics import counter, gauge, set_unknown

RATED = set_unknown(gauge("evaluator", "rated", "versions", "Version that was rated last, to which the ratings apply."))
RATING = set_unknown(gauge("evaluator", "trueskill", "rating", "Mean of the newest finished rating; random play is 0."))
SIGMA = set_unknown(gauge("evaluator", "trueskill_sigma", "rating", "Uncertainty of the newest finished rating."))
REFERENCES = gauge("evaluator", "reference", "versions", "Players with a frozen rating that others are rated against.")
DRAWS = set_unknown(gauge("evaluator", "draw", "ratio", "Share of draws between equal players, estimated for the "
                          "newest finished rating."))
GAMES = counter("evaluator", "played_games", "Games played, by opponent (a bot's name, version, or anchor for a game "
                "between two bots) and by outcome for the version under test: won, lost, drawn.",
                ("opponent", "outcome"))
DROPPED = counter("evaluator", "dropped_games", "Unfinished games without a result, by reason: epoch (the run's next "
                  "epoch began), lost (inference was lost). Rated games are played again.", ("reason",))
ABORTED = counter("evaluator", "aborted_games", "Assigned games that were lost repeatedly. Their rating is finished "
                  "without them and counts them as aborted.")
WIN_RATE = gauge("evaluator", "win", "ratio", "Win rate of the version rated last against each bot that it played; a "
                 "draw counts as half.", ("opponent",))
WIN_BOUND = gauge("evaluator", "win_bound", "ratio", "Ends of the win rate's 95 % interval.", ("opponent", "end"))
STATISTICS = gauge("evaluator", "hero", "statistic", "Statistics of a hero of the version rated last at the end of a "
                   "game, means over its games.", ("statistic",))
GAME_SECONDS = set_unknown(gauge("evaluator", "mean_game", "seconds", "Mean length of the games of the version rated "
                                 "last, in game time."))
OUTCOMES = {0.0: "lost", 0.5: "drawn", 1.0: "won"}
GUARD_GAMES = counter("evaluator", "guard_games", "Games of an anneal's guard, the newest version against the last one "
                      "before the change, by rule (old: without the change, new: with it) and by outcome for the "
                      "newest.", ("rule", "outcome"))
PAIRED = gauge("evaluator", "guard_paired", "games", "Games of the anneal's current attempt whose pair is complete.")

for _reason in ("epoch", "lost"):
    DROPPED.labels(_reason)


def count_guard_game(rule: str, score: float) -> None:
    """Count an ended guard game."""
    GUARD_GAMES.labels(rule, OUTCOMES[score]).inc()


def count_game(pairing: Pairing, score: float) -> None:
    """Count an ended rated game. Opponents that are versions share one series, because there are many."""
    opponent = "anchor" if pairing.agent.controller else pairing.opponent.name
    GAMES.labels("version" if pairing.opponent.version >= 0 else opponent, OUTCOMES[score]).inc()


def show_rating(record: Mapping[str, Any], references: int) -> None:
    """Set the gauges to a finished rating, as `services.evaluator.rating_loop` records it."""
    RATED.set(record["version"])
    RATING.set(record["mu"])
    SIGMA.set(record["sigma"])
    REFERENCES.set(references)
    DRAWS.set(record.get("draw_probability", math.nan))
    # Remove the win rates of bots that this version did not play: they belong to another version.
    WIN_RATE.clear()
    WIN_BOUND.clear()
    for name, share in record["win_rates"].items():
        WIN_RATE.labels(name).set(share)
        bounds = record.get("win_intervals", {}).get(name, (math.nan, math.nan))
        for end, bound in zip(("low", "high"), bounds, strict=True):
            WIN_BOUND.labels(name, end).set(bound)
    for name, value in record.get("statistics", {}).items():
        STATISTICS.labels(name).set(value)
    if "game_seconds" in record:
        GAME_SECONDS.set(record["game_seconds"])

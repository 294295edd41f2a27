"""Metrics of the evaluator."""

import math
from collections.abc import Mapping
from typing import Any

from five.services.evaluator.matches import Pairing
from rapid.telemetry.metrics import counter, gauge, set_unknown

RATED = set_unknown(gauge("evaluator", "rated", "versions", "Version that was rated last; the ratings beside are its."))
RATING = set_unknown(gauge("evaluator", "trueskill", "rating", "Mean of the newest finished rating; random play is 0."))
SIGMA = set_unknown(gauge("evaluator", "trueskill_sigma", "rating", "Uncertainty of the newest finished rating."))
REFERENCES = gauge("evaluator", "reference", "versions", "Players with a frozen rating that others are rated against.")
DRAWS = set_unknown(gauge("evaluator", "draw", "ratio", "Share of draws between equals, as estimated for the newest "
                      "finished rating."))
GAMES = counter("evaluator", "played_games", "Games played, by opponent (a bot's name, version, or anchor for a game "
                "between two bots) and by outcome for the version under test: won, lost, drawn.",
                ("opponent", "outcome"))
DROPPED = counter("evaluator", "dropped_games", "Games that ended early and count for nothing, by reason: epoch (the "
                  "run's next one began in the middle), lost (with inference). Rated ones are played again.",
                  ("reason",))
ABORTED = counter("evaluator", "aborted_games", "Assigned games that were lost again and again: their rating does "
                  "without them, and says so.")
WIN_RATE = gauge("evaluator", "win", "ratio", "Share of its games that the version rated last won against a bot, a "
                 "draw being half; of bots that it played.", ("opponent",))
WIN_BOUND = gauge("evaluator", "win_bound", "ratio", "Ends of the 95 % interval of that share.", ("opponent", "end"))
STATISTICS = gauge("evaluator", "hero", "statistic", "What a hero of the version rated last had at the end of a game: "
                   "mean over its games.", ("statistic",))
GAME_SECONDS = set_unknown(gauge("evaluator", "mean_game", "seconds", "Mean length of the games of the version rated "
                                 "last, in game time."))
OUTCOMES = {0.0: "lost", 0.5: "drawn", 1.0: "won"}


for _reason in ("epoch", "lost"):
    DROPPED.labels(_reason)


GUARD_GAMES = counter("evaluator", "guard_games", "Games of an anneal's guard, the newest version against the last one "
                      "before the change, by rule (old: the game as it was, new: with the change) and by outcome for "
                      "the newest.", ("rule", "outcome"))
PAIRED = gauge("evaluator", "guard_paired", "games", "Games of the anneal's present attempt whose pair is complete.")


def count_guard_game(rule: str, score: float, pairs: int) -> None:
    """Count an ended guard game; ``pairs`` are complete."""
    GUARD_GAMES.labels(rule, OUTCOMES[score]).inc()
    PAIRED.set(2 * pairs)


def count_game(pairing: Pairing, score: float) -> None:
    """Count an ended rated game. Opponents that are versions share one series: one for each would be too many."""
    opponent = "anchor" if pairing.agent.controller else pairing.opponent.name
    GAMES.labels("version" if pairing.opponent.version >= 0 else opponent, OUTCOMES[score]).inc()


def show_rating(record: Mapping[str, Any], references: int) -> None:
    """Set the gauges to a finished rating, as `services.evaluator.rating_loop` records it."""
    RATED.set(record["version"])
    RATING.set(record["mu"])
    SIGMA.set(record["sigma"])
    REFERENCES.set(references)
    DRAWS.set(record.get("draw_probability", math.nan))
    # A bot that this version did not play has no bar: another version's would stand beside its rating.
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

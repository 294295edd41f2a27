"""Metrics of a rollout process."""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

from dota.rewards import SIGNALS
from dota.vec_game import STATS
from five.services.rollout.group_progress import GroupProgress
from five.services.rollout.sender import Sender
from rapid.telemetry.metrics import counter, gauge, histogram

TEAM_STEPS = counter("rollout", "team_steps", "Team-steps played by a version.")
HERO_STEPS = counter("rollout", "hero_steps", "Hero-steps played by a version.")
GAMES = counter("rollout", "games", "Games that ended, by opponent (latest, past, or a bot's name) and by outcome for "
                "the side that learns: selfplay, won, lost, drawn, or cut by schedules.game_seconds.",
                ("opponent", "outcome"))
MIDDLE_GAMES = counter("rollout", "middle_games", "Games that began in the middle (schedules.middle_fraction) and "
                       "ended, by opponent and outcome as of five_rollout_games_total. No other metric of games counts "
                       "them.", ("opponent", "outcome"))
VARIANT_GAMES = counter("rollout", "variant_games", "Finished games while a change is annealed, by variant (old: "
                        "unchanged, new: changed) and by outcome for the learning side.", ("variant", "outcome"))
VARIANT_GAME_SECONDS = counter("rollout", "variant_game_seconds", "Game time of each variant of an anneal, summed; "
                               "divided by five_rollout_variant_games_total it is a game's mean length.", ("variant",))
VARIANT_STATISTICS = counter("rollout", "variant_hero_statistics", "As five_rollout_hero_statistics_total, for each "
                             "variant of an anneal.", ("variant", "statistic"))
WINNERS = counter("rollout", "decided_games", "Games that ended, by winner: radiant, dire, draw.", ("winner",))
GAME_LENGTHS = (30, 60, 120, 300, 600, 900, 1200, 1500, 1800, 2100, 2400, 3000, 3600, 5400, 7200)
GAME_SECONDS = histogram("rollout", "game", "seconds", "Length of games that ended, in game time.",
                         buckets=GAME_LENGTHS)
WALL_SECONDS = histogram("rollout", "game_wall", "seconds", "Wall time of finished games.", buckets=GAME_LENGTHS)
STATISTICS = counter("rollout", "hero_statistics", "What a hero that learns had at the end of a game (last hits, net "
                     "worth, ...): means over a game's heroes, summed over games. Divided by five_rollout_games_total "
                     "it is the mean of a game. dropped: what did not happen because a pool of the game was full; it "
                     "should stay 0.", ("statistic",))
GAINED = counter("rollout", "reward_gained", "Reward that a hero got in a game, by term and weighted, summed over "
                 "games in which the term's sum was positive.", ("term",))
LOST = counter("rollout", "reward_lost", "As five_rollout_reward_gained_total, of games in which the term's sum was "
               "negative, without its sign.", ("term",))
DROPPED = counter("rollout", "dropped_segments", "Segments dropped before learning, by reason: too_large (for a "
                  "message), epoch (the optimizer was in another fencing epoch), unacknowledged (the rollout was "
                  "assigned to other optimizers, and the previous one did not respond).", ("reason",))
SEGMENTS = counter("rollout", "segments", "Segments cut.")
RECOVERIES = counter("rollout", "recoveries", "Times recurrent states were lost and rebuilt by replay.")
ABANDONED = counter("rollout", "abandoned_games", "Games abandoned because their server or opponent was lost.")
UNASSIGNED = counter("rollout", "unassigned_games", "Games that became self-play because no opponent was available or "
                     "no past version was loaded yet.")
STAGE_SECONDS = counter("rollout", "stage_seconds", "Time of the groups by stage: waiting for learning or a pause, for "
                        "inference, for the games, and cutting segments.", ("stage",))
UNSENT = gauge("rollout", "unsent", "segments", "Segments that no optimizer has acknowledged yet.")
NEWEST = gauge("rollout", "newest", "versions", "Newest version in play.")

_COUNTERS = {"team_steps": TEAM_STEPS, "hero_steps": HERO_STEPS, "segments": SEGMENTS,
             "recoveries": RECOVERIES, "abandoned_games": ABANDONED}
DROP_REASONS = ("too_large", "epoch", "unacknowledged")
for _reason in DROP_REASONS:
    DROPPED.labels(_reason)
for _signal in SIGNALS:
    GAINED.labels(_signal)
    LOST.labels(_signal)
for _statistic in STATS:
    STATISTICS.labels(_statistic)
for _winner in ("radiant", "dire", "draw"):
    WINNERS.labels(_winner)
GAMES.labels("latest", "selfplay")
for _outcome in ("won", "lost", "drawn"):
    GAMES.labels("past", _outcome)

_STAGES = {"wait_seconds": "wait", "act_seconds": "inference", "step_seconds": "games", "cut_seconds": "segments"}


class RolloutMeter:
    """Updates the metrics page from the groups' progress and sums up recent rates for the heartbeat."""

    def __init__(self) -> None:
        self._shown = GroupProgress()
        self._reported = GroupProgress()
        self._reported_at = time.monotonic()
        self._unassigned = 0
        self._dropped = dict.fromkeys(DROP_REASONS, 0)

    def game(self, record: Mapping[str, Any]) -> None:
        """Count a finished game by its record (`GameRecord.finish`)."""
        opponent = record["opponent"]
        kind = opponent if isinstance(opponent, str) else "latest" if opponent < 0 else "past"
        if "start_seconds" in record:
            MIDDLE_GAMES.labels(kind, record["outcome"]).inc()
            return
        GAMES.labels(kind, record["outcome"]).inc()
        if record["winner"]:
            WINNERS.labels(record["winner"]).inc()
        GAME_SECONDS.observe(record["game_seconds"])
        WALL_SECONDS.observe(record["wall_seconds"])
        variant = record.get("variant")
        if variant:
            VARIANT_GAMES.labels(variant, record["outcome"]).inc()
            VARIANT_GAME_SECONDS.labels(variant).inc(max(record["game_seconds"], 0.0))
        for name, value in record["statistics"].items():
            if variant:
                VARIANT_STATISTICS.labels(variant, name).inc(max(value, 0.0))
            STATISTICS.labels(name).inc(max(value, 0.0))
        for name, value in record["rewards"].items():
            (GAINED if value >= 0 else LOST).labels(name).inc(abs(value))

    def show(self, progress: Sequence[GroupProgress], sender: Sender, unassigned: int) -> None:
        """Count the progress since the last call."""
        total = sum_progress(progress)
        for name, metric in _COUNTERS.items():
            metric.inc(getattr(total, name) - getattr(self._shown, name))
        for name, stage in _STAGES.items():
            STAGE_SECONDS.labels(stage).inc(max(getattr(total, name) - getattr(self._shown, name), 0.0))
        UNASSIGNED.inc(unassigned - self._unassigned)
        dropped = dict(zip(DROP_REASONS, (sender.too_large, sender.stale, sender.unacknowledged), strict=True))
        for reason, count in dropped.items():
            DROPPED.labels(reason).inc(count - self._dropped[reason])
        UNSENT.set(sender.unsent)
        NEWEST.set(total.newest_version)
        self._shown, self._unassigned, self._dropped = total, unassigned, dropped

    def recent(self, progress: Sequence[GroupProgress], sender: Sender) -> dict[str, Any]:
        """Return rates since the last call as JSON values; shares are of the groups' time."""
        total, before, now = sum_progress(progress), self._reported, time.monotonic()
        seconds = max(now - self._reported_at, 1e-3)
        self._reported, self._reported_at = total, now

        def share(name: str) -> float:
            spent: float = getattr(total, name) - getattr(before, name)
            return round(spent / seconds / max(len(progress), 1), 3)

        return {
            "steps/s": round((total.team_steps - before.team_steps) / seconds, 1),
            "hero_steps/s": round((total.hero_steps - before.hero_steps) / seconds, 1),
            "games": total.games, "unsent": sender.unsent, "version": total.newest_version,
            "inference_wait_share": share("act_seconds"), "game": share("step_seconds"),
            "waiting": share("wait_seconds"), "segments": share("cut_seconds"), "recoveries": total.recoveries,
            "throttled_seconds": round(sender.throttled.seconds / max(len(progress), 1), 3)}


def sum_progress(progress: Sequence[GroupProgress]) -> GroupProgress:
    """Return totals over the groups, with the newest version of any."""
    total = GroupProgress()
    for part in progress:
        for item in dataclasses.fields(GroupProgress):
            if item.name not in ("newest_version", "is_idle", "failure"):
                setattr(total, item.name, getattr(total, item.name) + getattr(part, item.name))
        total.newest_version = max(total.newest_version, part.newest_version)
    return total

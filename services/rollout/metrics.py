"""What a rollout shows on its metrics page."""

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

from rapid.telemetry.metrics import counter, gauge
from services.rollout.rollout import Progress
from services.rollout.sender import Sender

TEAM_STEPS = counter("rollout", "team_steps", "Team-steps that a version played.")
HERO_STEPS = counter("rollout", "hero_steps", "Hero-steps that a version played.")
GAMES = counter("rollout", "games", "Games that ended.")
SEGMENTS = counter("rollout", "segments", "Segments made.")
RECOVERIES = counter("rollout", "recoveries", "Times recurrent states were lost, and rebuilt from a sample's start.")
ABANDONED = counter("rollout", "abandoned_games", "Games given up because their server or their opponent was gone.")
UNASSIGNED = counter("rollout", "unassigned_games", "Games that became self-play because no opponent could be had.")
STAGE_SECONDS = counter("rollout", "stage_seconds", "Time of the groups by stage: waiting for learning or a pause, for "
                        "inference, for the games, and cutting segments.", ("stage",))
UNSENT = gauge("rollout", "unsent", "segments", "Segments that no optimizer has acknowledged yet.")
NEWEST = gauge("rollout", "newest", "versions", "Newest version that played.")

_COUNTERS = {"team_steps": TEAM_STEPS, "hero_steps": HERO_STEPS, "games": GAMES, "segments": SEGMENTS,
             "recoveries": RECOVERIES, "abandoned_games": ABANDONED}
_STAGES = {"wait_seconds": "wait", "act_seconds": "inference", "step_seconds": "games", "cut_seconds": "segments"}


class Meter:
    """Brings the page up to the groups' progress, and sums the last seconds up for the sign of life."""

    def __init__(self) -> None:
        self._shown = Progress()
        self._told = Progress()
        self._told_at = time.monotonic()
        self._unassigned = 0

    def show(self, progress: Sequence[Progress], sender: Sender, unassigned: int) -> None:
        """Counts what came since the last call."""
        total = summed(progress)
        for name, metric in _COUNTERS.items():
            metric.inc(getattr(total, name) - getattr(self._shown, name))
        for name, stage in _STAGES.items():
            STAGE_SECONDS.labels(stage).inc(max(getattr(total, name) - getattr(self._shown, name), 0.0))
        UNASSIGNED.inc(unassigned - self._unassigned)
        UNSENT.set(sender.unsent)
        NEWEST.set(total.newest_version)
        self._shown, self._unassigned = total, unassigned

    def recent(self, progress: Sequence[Progress], sender: Sender) -> dict[str, Any]:
        """Rates since the last call, JSON values; shares are of the groups' time."""
        total, before, now = summed(progress), self._told, time.monotonic()
        seconds = max(now - self._told_at, 1e-3)
        self._told, self._told_at = total, now

        def share(name: str) -> float:
            spent: float = getattr(total, name) - getattr(before, name)
            return round(spent / seconds / max(len(progress), 1), 3)

        return {
            "steps/s": round((total.team_steps - before.team_steps) / seconds, 1),
            "hero_steps/s": round((total.hero_steps - before.hero_steps) / seconds, 1),
            "games": total.games, "unsent": sender.unsent, "version": total.newest_version,
            "inference_wait_share": share("act_seconds"), "game": share("step_seconds"),
            "waiting": share("wait_seconds"), "segments": share("cut_seconds"), "recoveries": total.recoveries}


def summed(progress: Sequence[Progress]) -> Progress:
    """Totals over the groups; the newest version is the newest of any."""
    total = Progress()
    for part in progress:
        for item in dataclasses.fields(Progress):
            if item.name not in ("newest_version", "idle"):
                setattr(total, item.name, getattr(total, item.name) + getattr(part, item.name))
        total.newest_version = max(total.newest_version, part.newest_version)
    return total

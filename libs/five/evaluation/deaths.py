"""Deaths of heroes in a match: what killed the hero, who was near, and its health before."""

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from dota.events import Event, EventKind
from dota.vec_game import TEAMS, VecGame

NEARBY = 1400.0  # world units: a hero that close takes part in the fight or gets the experience
BEFORE_SECONDS = 8.0  # game time before a death from which the hero's health is taken
SAMPLE_SECONDS = 0.9  # game time between two samples of the heroes' health

Killer = Literal["hero", "tower", "creep", "neutral", "other"]
KILLERS: tuple[Killer, ...] = get_args(Killer)


class Death(NamedTuple):
    """Death of a hero.

    Attributes:
        of_first: whether the hero is one of the match's first contestant.
        seconds: game time.
        killer: kind of the unit that killed it; a hero's summons count as the hero.
        allies: other living heroes of its team within ``NEARBY``.
        enemies: living heroes of the other team within ``NEARBY``.
        health_before: share of full health in the oldest sample of the last ``BEFORE_SECONDS`` in which it lived.
        advance: 0 at its own fountain, 1 at the enemy's.
    """

    of_first: bool
    seconds: float
    killer: Killer
    allies: int
    enemies: int
    health_before: float
    advance: float


@dataclass
class DeathRecorder:
    """Collects the deaths of a match's games, as the ``on_step`` of `five.evaluation.match.play`."""

    deaths: list[Death] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._health: dict[int, deque[tuple[float, Mapping[int, float]]]] = {}  # by env slot: time, share by hero

    def __call__(self, games: VecGame, slot: int, first_side: int) -> None:
        """Read the timestep that a game has just played; the first contestant plays ``first_side``."""
        past = self._health.setdefault(slot, deque())
        time = float(games.game_time[slot])
        if past and past[-1][0] > time:  # a new game
            past.clear()
        while past and past[0][0] < time - BEFORE_SECONDS:
            past.popleft()
        died = [event for event in games.events(slot) if event.kind == EventKind.HERO_DEATH]
        if not died and past and time < past[-1][0] + SAMPLE_SECONDS:
            return
        units = games.spectate(slot)["units"]
        heroes = {unit["hero"]: unit for unit in units if unit["kind"] == "hero"}
        fountains = {unit["team"]: unit for unit in units if unit["kind"] == "fountain"}
        for event in died:
            self.deaths.append(_death(event, heroes, fountains, first_side, past))
        past.append((time, {hero: unit["hp"] / max(unit["max_hp"], 1.0) for hero, unit in heroes.items()}))


def _death(event: Event, heroes: Mapping[int, Mapping[str, Any]], fountains: Mapping[int, Mapping[str, Any]],
           first_side: int, past: Sequence[tuple[float, Mapping[int, float]]]) -> Death:
    dead = heroes[event.hero]
    near = [unit for hero, unit in heroes.items()
            if hero != event.hero and unit["alive"] and _distance(unit, dead) <= NEARBY]
    allies = sum(unit["team"] == event.team for unit in near)
    home, away = (_distance(dead, fountains[team]) for team in (event.team, TEAMS - 1 - event.team))
    # A hero that has just come back was dead, at no health, during some of the time before.
    earlier = next((shares[event.hero] for _, shares in past if shares[event.hero] > 0), 1.0)
    return Death(event.team == first_side, event.time, _killer(event), allies, len(near) - allies, earlier,
                 home / max(home + away, 1.0))


def _distance(a: Mapping[str, Any], b: Mapping[str, Any]) -> float:
    return math.hypot(a["x"] - b["x"], a["y"] - b["y"])


def _killer(event: Event) -> Killer:
    if event.other_hero >= 0:
        return "hero"
    for kind in ("tower", "creep", "neutral"):
        if kind in event.other_name.removeprefix("npc_dota_"):
            return kind
    return "other"


def summarise(deaths: Sequence[Death], games: int, heroes: int) -> dict[str, Any]:
    """Return a contestant's deaths for people and JSON.

    Args:
        deaths: of one contestant.
        games: number of games of the match.
        heroes: of a team.

    ``per_game`` is a hero's mean. ``killers`` are shares by kind. The other values are means of `Death`'s, None
    without a death.
    """
    counts = Counter(death.killer for death in deaths)

    def mean(name: str) -> float | None:
        return float(np.mean([getattr(death, name) for death in deaths])) if deaths else None

    return {"per_game": len(deaths) / max(games * heroes, 1),
            "killers": {kind: counts[kind] / len(deaths) for kind in KILLERS if counts[kind]},
            **{name: mean(name) for name in ("seconds", "allies", "enemies", "health_before", "advance")}}

"""Abilities and items that the heroes of a match use: what a policy has learned to use, and what it leaves unused."""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dota.events import EventKind
from dota.vec_game import VecGame

HERO = "npc_dota_hero_"
ITEM = "item_"


class Caster(NamedTuple):
    """A hero of one contestant. ``of_first``: of the match's first; ``hero``: its name without npc_dota_hero_."""

    of_first: bool
    hero: str


@dataclass
class CastRecorder:
    """Counts casts in a match's games, as the ``on_step`` of `five.evaluation.match.play`.

    ``casts`` has the number of casts by hero and name of the ability or item, ``games`` that of games by hero.
    """

    casts: Counter[tuple[Caster, str]] = field(default_factory=Counter)
    games: Counter[Caster] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._times: dict[int, float] = {}  # by env slot: game time of the last timestep

    def __call__(self, games: VecGame, slot: int, first_side: int) -> None:
        """Read the timestep that a game has just played; the first contestant plays ``first_side``."""
        time = float(games.game_time[slot])
        if time < self._times.get(slot, math.inf):  # a new game
            self.games.update(Caster(unit["team"] == first_side, unit["name"].removeprefix(HERO))
                              for unit in games.spectate(slot)["units"] if unit["kind"] == "hero")
        self._times[slot] = time
        for event in games.events(slot):
            if event.kind == EventKind.CAST and event.unit_name.startswith(HERO):
                self.casts[Caster(event.team == first_side, event.unit_name.removeprefix(HERO)), event.what] += 1

    def summarise(self, of_first: bool) -> dict[str, Any]:
        """Return one contestant's casts for people and JSON.

        ``abilities`` are by hero and ability: casts a game that the hero plays. ``items`` are a hero's uses a game by
        item, means over all heroes and games. Unused ones are left out.
        """
        games = {caster.hero: count for caster, count in self.games.items() if caster.of_first == of_first}
        abilities: dict[str, dict[str, float]] = {hero: {} for hero in sorted(games)}
        items: Counter[str] = Counter()
        for (caster, what), count in sorted(self.casts.items()):
            if caster.of_first != of_first:
                continue
            if what.startswith(ITEM):
                items[what.removeprefix(ITEM)] += count
            else:
                abilities[caster.hero][what] = count / games[caster.hero]
        return {"abilities": abilities, "items": {item: items[item] / sum(games.values()) for item in sorted(items)}}

"""Observations by field name and actions by name, for the tests of the game's numpy API."""

from typing import Any

import numpy as np
import numpy.typing as npt

from dota.config import GameConfig, ObservationConfig
from dota.spaces import ActionPart, Layout, TargetType
from dota.vec_game import VecGame

SMALL = ObservationConfig(allied_creeps=8, neutral_creeps=2, buildings=21, wards=1, pickups=6, hero_modifiers=4,
                          unit_modifiers=1)


def duel(seed: int = 1, hero: str = "nevermore", **changes: Any) -> GameConfig:
    """Return one hero a side in mid, from the horn on, with lane creeps only."""
    settings: dict[str, Any] = {
        "mode": "1v1_mid", "heroes_per_team": 1, "hero_pool": [hero], "start_seconds": 0.0, "neutrals": False,
        "roshan": False, "runes": False, "observation": SMALL}
    return GameConfig.model_validate(settings | changes)


def field(game: VecGame, block: str, name: str, index: int = 0, team: int = 0, hero: int = 0) -> npt.NDArray[Any]:
    """Return a field's values [instances, count] in a team's last observation."""
    return read(game.layout, game.obs, block, name, (index, team), hero)


def read(layout: Layout, obs: dict[str, npt.NDArray[Any]], block: str, name: str, lead: tuple[int, ...] = (),
         hero: int = 0) -> npt.NDArray[Any]:
    b = layout.blocks[block]
    f = b.field(name)
    row = obs[f.array][lead]
    if f.array.startswith("private"):
        row = row[hero]
    return row[b.span(f.array)].reshape(b.instances, b.width(f.array))[:, f.offset:f.offset + f.count]


def offered(game: VecGame, index: int = 0, team: int = 0, hero: int = 0) -> list[str]:
    """Return the names of a hero's available actions."""
    return [game.layout.actions[i].name for i in game.obs["available"][index, team, hero] if i]


def mask(game: VecGame, row: int, index: int = 0, team: int = 0, hero: int = 0) -> list[int]:
    """Return the unit slots set in a row of the target mask."""
    return [int(i) for i in np.flatnonzero(game.obs["target_mask"][index, team, hero, row])]


def choose(game: VecGame, action: str, index: int = 0, team: int = 0, hero: int = 0, unit: int = 0, x: int = 4,
           y: int = 4, delay: int = 0, into: npt.NDArray[np.int16] | None = None) -> npt.NDArray[np.int16]:
    """Return actions in which one hero takes the named action and the others do nothing (slot 0 is noop)."""
    names = offered(game, index, team, hero)
    if action not in names:
        raise AssertionError(f"{action} is not offered: {names}")
    array = np.zeros((game.games, 2, game.layout.heroes, len(ActionPart)), np.int16) if into is None else into
    array[index, team, hero] = [names.index(action), delay, unit, unit, x, y]
    return array


def hero_unit(game: VecGame, team: int = 0, hero: int = 0, index: int = 0) -> dict[str, Any]:
    """Return a hero's body in the spectator's view."""
    return next(u for u in game.spectate(index)["units"] if u["hero"] == team * 5 + hero)


def units(game: VecGame, kind: str, team: int, index: int = 0) -> list[dict[str, Any]]:
    return [u for u in game.spectate(index)["units"] if u["kind"] == kind and u["team"] == team]


def place(game: VecGame, unit: dict[str, Any], x: float, y: float, index: int = 0) -> None:
    game._core.place(index, unit["slot"], x, y)


def target_of(layout: Layout, name: str) -> TargetType:
    return next(a.target for a in layout.actions if a.name == name)


def enemy_slot(game: VecGame) -> int:
    """Return the first enemy hero's unit slot."""
    return game.layout.groups["enemy_heroes"].start


def steps(game: VecGame, n: int, actions: Any = None) -> None:
    """Play ``n`` timesteps."""
    for _ in range(n):
        game.step(actions)

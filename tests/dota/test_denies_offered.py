"""Own units are offered as targets of an attack exactly when the game lets them be denied."""

from typing import Any

import numpy as np
import pytest

from dota.config import GameConfig
from dota.spaces import MaskClass
from dota.vec_game import VecGame
from tests.dota.watching import SMALL, choose, duel, enemy_slot, hero_unit, mask, place, steps, units

LEVEL_XP = 8000.0  # every ability has a rank
STRIKE, HUNGER, MISSILE = "queenofpain_shadow_strike", "axe_battle_hunger", "gyrocopter_homing_missile"


def learned(game: VecGame, hero: int) -> None:
    game._core.give_xp(0, hero, LEVEL_XP)
    steps(game, 25)  # a rank each


def slot_of(game: VecGame, unit: dict[str, Any], team: int) -> int:
    """Return the unit's slot in the team's observation."""
    return int(np.flatnonzero(game.slot_units(0, team) == unit["slot"])[0])


def cast(game: VecGame, action: str, slot: int, team: int = 0) -> None:
    """Use the ability on the unit in a slot, and wait until it has arrived."""
    game._core.observe(0)
    game.step(choose(game, action, team=team, unit=slot))
    steps(game, 12)


@pytest.mark.parametrize(("share", "offers"), [(0.2, True), (0.3, False)])
def test_poisoned_hero_is_offered_below_a_quarter(share: float, offers: bool) -> None:
    game = VecGame(GameConfig(heroes_per_team=2, hero_pool=["queenofpain", "sven", "axe", "lion"], start_seconds=0,
                              neutrals=False, roshan=False, runes=False, observation=SMALL), 1, seed=1)
    game.reset(lineups=game.lineup([["queenofpain", "lion"], ["sven", "axe"]])[None])
    learned(game, 0)
    victim = hero_unit(game, 1, 0)
    for team, hero, x, y in ((0, 0, -700, -600), (1, 0, -450, -380), (1, 1, -300, -250)):
        place(game, hero_unit(game, team, hero), x, y)
    cast(game, STRIKE, enemy_slot(game))
    game._core.set_hp(0, victim["slot"], share * victim["max_hp"])
    game._core.observe(0)
    mine = game.layout.groups["allied_heroes"].start
    assert (mine in mask(game, MaskClass.ATTACK, team=1, hero=1)) is offers
    game._core.set_hp(0, hero_unit(game, 0)["slot"], 50.0)
    game._core.observe(0)
    assert mine not in mask(game, MaskClass.ATTACK, hero=1)  # not poisoned


@pytest.mark.parametrize("hungers", [False, True])
def test_hungry_creep_is_not_offered(hungers: bool) -> None:
    """Units under Battle Hunger cannot be denied."""
    game = VecGame(duel(hero="axe"), 1, seed=1)
    game.step()
    learned(game, 5)
    creep = units(game, "creep", 0)[0]
    place(game, hero_unit(game, 1), creep["x"] + 300, creep["y"])
    game._core.observe(0)
    if hungers:
        cast(game, HUNGER, slot_of(game, creep, 1), team=1)
    (creep,) = (u for u in units(game, "creep", 0) if u["slot"] == creep["slot"])
    place(game, hero_unit(game, 0), creep["x"] - 100, creep["y"])
    game._core.set_hp(0, creep["slot"], 0.4 * creep["max_hp"])
    game._core.observe(0)
    assert (slot_of(game, creep, 0) in mask(game, MaskClass.ATTACK)) is not hungers


def test_summon_is_not_offered() -> None:
    """A homing missile cannot be denied, however often it was hit."""
    game = VecGame(duel(hero="gyrocopter"), 1, seed=1)
    learned(game, 0)
    place(game, hero_unit(game, 0), -700, -600)
    place(game, hero_unit(game, 1), -450, -380)
    game._core.observe(0)
    game.step(choose(game, MISSILE, unit=enemy_slot(game)))
    steps(game, 6)
    (missile,) = units(game, "summon", 0)
    game._core.set_hp(0, missile["slot"], 0.3 * missile["max_hp"])
    game._core.observe(0)
    group = game.layout.groups["allied_creeps"]
    assert not set(mask(game, MaskClass.ATTACK)) & set(range(group.start, group.start + group.count))

"""Distractions that a scripted hero ignores during a fight."""

import numpy as np
import pytest

from dota.config import GameConfig, ObservationConfig
from dota.events import EventKind
from dota.vec_game import Controller, VecGame
from tests.dota.watching import choose, enemy_slot, hero_unit, offered, place

MID = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], start_seconds=-80, neutrals=False,
                 roshan=False, runes=False, observation=ObservationConfig(neutral_creeps=0, wards=0, couriers=0))
HERO, ENEMY = (-1500.0, -1300.0), (-1250.0, -1080.0)  # on the Radiant's side of mid, a tree within a walk


def scene(health: float, enemy_health: float) -> VecGame:
    """Return the strongest bot, hurt, with tangos, and an enemy in attack range. No creeps yet."""
    game = VecGame(MID, 1, seed=1)
    game.controllers[0, 0] = Controller.HARD
    for _ in range(15):
        game.step()
    hero, enemy = hero_unit(game, 0), hero_unit(game, 1)
    assert any(item.startswith("item_tango") for item in hero["items"])
    place(game, hero, *HERO)
    place(game, enemy, *ENEMY)
    game._core.set_hp(0, hero["slot"], health * hero["max_hp"])
    game._core.set_hp(0, enemy["slot"], enemy_health * enemy["max_hp"])
    game._core.observe(0)
    return game


def ate(game: VecGame, seconds: float, strikes: bool = False) -> bool:
    """Return whether it eats a tango in time or walks halfway to a tree, while the enemy stands still or attacks."""
    for _ in range(int(7.5 * seconds)):
        actions = np.zeros((1, 2, 1, 6), np.int16)
        if strikes and "attack" in offered(game, team=1):
            actions = choose(game, "attack", team=1, unit=enemy_slot(game))
        game.step(actions)
        if any(event.kind == EventKind.CAST and event.hero == 0 and event.what.startswith("item_tango")
               for event in game.events(0)):
            return True
    return False


def test_a_hurt_hero_eats_when_nobody_fights() -> None:
    """Control for the other tests: the tree is reachable and the bot walks to it."""
    game = scene(0.6, 1.0)
    place(game, hero_unit(game, 1), 5000.0, 4500.0)
    game._core.observe(0)
    assert ate(game, 6)


def test_an_enemy_who_can_be_killed_is_finished_first() -> None:
    game = scene(0.6, 0.2)
    enemy = hero_unit(game, 1)
    assert not ate(game, 2)
    assert not hero_unit(game, 1)["alive"] or hero_unit(game, 1)["hp"] < enemy["hp"] - 30


@pytest.mark.parametrize("health", [0.5, 0.7])
def test_nobody_walks_to_a_tree_from_an_enemy_who_strikes_him(health: float) -> None:
    assert not ate(scene(health, 1.0), 3, strikes=True)

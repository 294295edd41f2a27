"""Fights of scripted heroes: distractions that they ignore, and fights that they leave or do not join."""

import numpy as np
import pytest

from dota.config import GameConfig, ObservationConfig
from dota.events import EventKind
from dota.vec_game import Controller, VecGame
from tests.dota.watching import choose, enemy_slot, hero_unit, offered, place, steps, units

MID = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], start_seconds=-80, neutrals=False,
                 roshan=False, runes=False, observation=ObservationConfig(neutral_creeps=0, wards=0, couriers=0))
TEAMS = GameConfig(start_seconds=-60, neutrals=False, roshan=False, runes=False)
LINEUP = [["nevermore", "axe", "lion", "sven", "lich"], ["viper", "ursa", "lina", "sniper", "omniknight"]]
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


def teams() -> VecGame:
    """Return a game of five against five before the horn; the strongest bot plays the Radiant, the Dire stand still."""
    game = VecGame(TEAMS, 1, seed=1)
    game.reset_as(0, 1, game.lineup(LINEUP))
    game.controllers[0, 0] = Controller.HARD
    return game


def middle_tower(game: VecGame) -> tuple[float, float]:
    tower = next(u for u in units(game, "tower", team=0) if u["name"].endswith("tower1_mid"))
    return tower["x"], tower["y"]


def stand_before(game: VecGame, away: float, enemies: int) -> None:
    """Place enemies in a row on the enemies' side of the Radiant's middle tower."""
    x, y = middle_tower(game)
    for n in range(enemies):
        place(game, hero_unit(game, 1, n), x + away + 80.0 * n, y + away - 80.0 * n)
    game._core.observe(0)


@pytest.mark.parametrize(("enemies", "joins"), [(0, True), (1, True), (3, False)])
def test_nobody_teleports_alone_to_several_enemies(enemies: int, joins: bool) -> None:
    """The middle player teleports to its tower at once, unless more enemies stand there than it can fight."""
    game = teams()
    stand_before(game, 600.0, enemies)
    steps(game, int(7.5 * 5))
    hero, (x, y) = hero_unit(game, 0), middle_tower(game)
    assert (np.hypot(hero["x"] - x, hero["y"] - y) < 1000.0) == joins


@pytest.mark.parametrize(("enemies", "leaves"), [(0, False), (3, True)])
def test_enemies_just_seen_are_still_avoided(enemies: int, leaves: bool) -> None:
    """Three enemies come near and are out of sight at once: for two more seconds the hero walks away from its place."""
    game = teams()
    steps(game, int(7.5 * 12))
    x, y = middle_tower(game)
    place(game, hero_unit(game, 0), x, y - 200.0)
    stand_before(game, 300.0, enemies)
    steps(game, 3)
    for n in range(enemies):
        place(game, hero_unit(game, 1, n), 6000.0, 5500.0)
    game._core.observe(0)
    steps(game, 15)
    hero = hero_unit(game, 0)
    assert (np.hypot(hero["x"] - x, hero["y"] - y) > 600.0) == leaves

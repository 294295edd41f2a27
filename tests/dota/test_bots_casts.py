"""Every ability of every hero is cast by the strongest bot in its own games, in both patches."""

from typing import Any

import numpy as np
import pytest

from dota import registry
from dota.config import GameConfig
from dota.events import EventKind
from dota.vec_game import Controller, VecGame, Winner
from tests.dota.conftest import read_data

PATCHES = ("7.21d", "7.19")
DATA = {patch: read_data(patch) for patch in PATCHES}
PREFIX = "npc_dota_hero_"
HEROES = {patch: [hero.removeprefix(PREFIX) for hero in DATA[patch]["heroes"]["heroes"]] for patch in PATCHES}
XP = 9000.0  # of about level 14: every ability is learned
GOLD = 12000.0  # of the items up to Aghanim's Scepter, for heroes to whom it gives an ability
SECONDS = 900.0
MIDDLE, APART, BESIDE = (-500.0, -400.0), 700.0, 60.0  # between the teams, and between two heroes of one


def active(patch: str, hero: str) -> set[str]:
    """Return the hero's abilities that can be cast."""
    abilities = DATA[patch]["abilities"]["abilities"]
    return {name for name in DATA[patch]["heroes"]["heroes"][PREFIX + hero]["abilities"]
            if "passive" not in abilities[name]["behavior"]}


def needs_scepter(patch: str, hero: str) -> bool:
    abilities = DATA[patch]["abilities"]["abilities"]
    return any("granted_by" in abilities[name] for name in active(patch, hero))


@pytest.fixture(scope="module")
def unused() -> dict[tuple[str, str], set[str]]:
    """Play games of five against five, every hero in two; return the abilities that no one cast, by hero.

    Heroes begin with experience and face to face, so that fights come early. A game ends when all of its heroes have
    cast everything.
    """
    configs = [GameConfig(patch=patch, hero_pool=HEROES[patch], start_seconds=-1, neutrals=False, roshan=False,
                          runes=False) for patch in PATCHES]
    lineups = [(p, [heroes[(first + i) % len(heroes)] for i in range(10)])
               for p, heroes in enumerate(HEROES.values()) for first in range(0, 2 * len(heroes), 10)]
    vec = VecGame(configs[0], len(lineups), observations=False, others=configs[1:])
    ids = {name: i for i, name in enumerate(registry.load().heroes)}
    for game, (p, names) in enumerate(lineups):
        vec.reset_as(game, game, np.array([ids[name] for name in names], np.int16).reshape(2, 5), variant=p)
        for unit in vec.spectate(game)["units"]:
            if (hero := unit["hero"]) >= 0:
                ahead, beside = APART * (hero // 5 - 0.5), BESIDE * (hero % 5 - 2)
                vec._core.give_xp(game, hero, XP)
                if needs_scepter(PATCHES[p], names[hero]):
                    vec._core.give_gold(game, hero, GOLD)
                vec._core.place(game, unit["slot"], MIDDLE[0] + ahead + beside, MIDDLE[1] + ahead - beside)
    vec.controllers[:] = Controller.HARD
    left = {(patch, hero): active(patch, hero) for patch in PATCHES for hero in HEROES[patch]}
    open_games = range(len(lineups))
    while open_games:
        vec.step(which=open_games)
        for game in open_games:
            p, names = lineups[game]
            for event in vec.events(game):
                if event.kind == EventKind.CAST and event.hero >= 0:
                    left[PATCHES[p], names[event.hero]].discard(event.what)
        open_games = [game for game in open_games if vec.winner[game] == Winner.RUNNING
                      and vec.game_time[game] < SECONDS
                      and any(left[PATCHES[lineups[game][0]], name] for name in lineups[game][1])]
    return left


@pytest.mark.parametrize(("patch", "hero"), [(patch, hero) for patch in PATCHES for hero in HEROES[patch]])
def test_the_strongest_bot_casts_each_ability(unused: Any, patch: str, hero: str) -> None:
    assert not unused[patch, hero]

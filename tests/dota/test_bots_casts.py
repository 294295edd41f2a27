"""Every ability of every hero is cast by the strongest bot in its own games, in both patches."""

from typing import Any

import numpy as np
import pytest

from dota import registry
from dota.config import GameConfig
from dota.events import EventKind
from dota.vec_game import Controller, VecGame, Winner
from tests.dota.scenes.patches import PATCHES, read_data

DATA = {patch: read_data(patch) for patch in PATCHES}
PREFIX = "npc_dota_hero_"
HEROES = {patch: [hero.removeprefix(PREFIX) for hero in DATA[patch]["heroes"]["heroes"]] for patch in PATCHES}
XP = 9000.0  # of about level 14: every ability is learned
GOLD = 12000.0  # buys Aghanim's Scepter, for heroes that get an ability from it
ROUNDS, SECONDS = 30, 150.0  # of games, and of game time in each
MIDDLE, APART, BESIDE = (-500.0, -400.0), 700.0, 60.0  # between the teams, and between two heroes of one


def active(patch: str, hero: str) -> set[str]:
    """Return the hero's abilities that can be cast."""
    abilities = DATA[patch]["abilities"]["abilities"]
    return {name for name in DATA[patch]["heroes"]["heroes"][PREFIX + hero]["abilities"]
            if "passive" not in abilities[name]["behavior"]}


def needs_scepter(patch: str, hero: str) -> bool:
    abilities = DATA[patch]["abilities"]["abilities"]
    return any("granted_by" in abilities[name] for name in active(patch, hero))


class Games:
    """Games of five against five, every hero in two, and the abilities that no one has cast yet, by patch and hero."""

    def __init__(self) -> None:
        configs = [GameConfig(patch=patch, hero_pool=HEROES[patch], start_seconds=-1, neutrals=False, roshan=False,
                              runes=False) for patch in PATCHES]
        self.lineups: list[tuple[int, list[str]]] = []
        self.mix(0)
        self.vec = VecGame(configs[0], len(self.lineups), observations=False, others=configs[1:])
        self.left = {(patch, hero): active(patch, hero) for patch in PATCHES for hero in HEROES[patch]}

    def mix(self, played: int) -> None:
        """Make the lineups of a round: a hero has other mates and enemies in each, so that it is on the stronger side
        in some."""
        self.lineups = []
        for p, heroes in enumerate(HEROES.values()):
            order = [str(hero) for hero in np.random.default_rng(played).permutation(heroes)]
            self.lineups += [(p, [order[(first + i) % len(order)] for i in range(10)])
                             for first in range(0, 2 * len(order), 10)]

    def open(self) -> list[int]:
        """Return the games one of whose heroes has something left to cast."""
        return [game for game, (p, names) in enumerate(self.lineups)
                if any(self.left[PATCHES[p], name] for name in names)]

    def begin(self, game: int, seed: int) -> None:
        """Start a game: heroes have experience and stand face to face, so that they fight at once."""
        ids = {name: i for i, name in enumerate(registry.load().heroes)}
        p, names = self.lineups[game]
        self.vec.reset_as(game, seed, np.array([ids[name] for name in names], np.int16).reshape(2, 5), variant=p)
        for unit in self.vec.spectate(game)["units"]:
            if (hero := unit["hero"]) < 0:
                continue
            ahead, beside = APART * (hero // 5 - 0.5), BESIDE * (hero % 5 - 2)
            self.vec._core.place(game, unit["slot"], MIDDLE[0] + ahead + beside, MIDDLE[1] + ahead - beside)
            self.vec._core.give_xp(game, hero, XP)
            if needs_scepter(PATCHES[p], names[hero]):
                self.vec._core.give_gold(game, hero, GOLD)
        self.vec.controllers[game] = Controller.HARD

    def step(self, games: list[int]) -> None:
        self.vec.step(which=games)
        for game in games:
            p, names = self.lineups[game]
            for event in self.vec.events(game):
                if event.kind == EventKind.CAST and event.hero >= 0:
                    self.left[PATCHES[p], names[event.hero]].discard(event.what)


@pytest.fixture(scope="module")
def unused() -> dict[tuple[str, str], set[str]]:
    """Play until everything was cast, or so many rounds of games; return what is left."""
    games = Games()
    for played in range(ROUNDS):
        games.mix(played)
        going = games.open()
        for game in going:
            games.begin(game, seed=100 * played + game)
        while going := [game for game in games.open() if game in going and games.vec.winner[game] == Winner.RUNNING
                        and games.vec.game_time[game] < SECONDS]:
            games.step(going)
    return games.left


@pytest.mark.runs
@pytest.mark.parametrize(("patch", "hero"), [(patch, hero) for patch in PATCHES for hero in HEROES[patch]])
def test_the_strongest_bot_casts_each_ability(unused: Any, patch: str, hero: str) -> None:
    assert not unused[patch, hero]

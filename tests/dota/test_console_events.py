"""Console events of a timestep."""

import numpy as np

from dota.config import GameConfig, ObservationConfig
from dota.events import Event, EventKind
from dota.spectator.console_events import console_events
from dota.vec_game import Controller, VecGame, Winner

DUEL = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], start_seconds=-30, max_game_seconds=600,
                  neutrals=False, roshan=False, runes=False,
                  observation=ObservationConfig(neutral_creeps=0, buildings=3, wards=0, couriers=0))


def event(kind: EventKind, **fields: object) -> Event:
    return Event(frame=1, time=0.0, kind=kind, **{"team": 0, **fields})  # type: ignore[arg-type]


def test_a_death_names_only_the_credited_heroes() -> None:
    told = [event(EventKind.HERO_KILL, hero=1, other_hero=7), event(EventKind.HERO_KILL, hero=8, other_hero=2),
            event(EventKind.HERO_DEATH, hero=7, other_hero=1), event(EventKind.HERO_DEATH, hero=2),
            event(EventKind.HERO_DEATH, hero=3), event(EventKind.REINCARNATION, hero=4)]
    assert console_events(told) == [{"kind": "death", "hero": 7, "by": [1]}, {"kind": "death", "hero": 2, "by": [8]},
                                    {"kind": "death", "hero": 3, "by": []}]


def test_buildings_items_and_the_end_are_events() -> None:
    told = [event(EventKind.BUILDING_DEATH, team=1, unit_name="npc_dota_badguys_tower1_mid"),
            event(EventKind.BUILDING_DEATH, team=1, unit_name="npc_dota_badguys_filler"),
            event(EventKind.ROSHAN_DEATH, team=2), event(EventKind.BOUGHT, hero=5, what="item_boots"),
            event(EventKind.ASSEMBLED, hero=5, what="item_wraith_band"), event(EventKind.LEVEL_UP, hero=5),
            event(EventKind.WON, team=2)]
    assert [e["kind"] for e in console_events(told)] == ["building", "roshan", "item", "item", "end"]
    assert console_events(told)[0] == {"kind": "building", "unit": "npc_dota_badguys_tower1_mid", "team": 1}
    assert console_events(told)[-1] == {"kind": "end", "winner": 2}


def test_an_assembled_item_is_reported_once() -> None:
    """Every assembled item that a hero holds at the end has one event."""
    game = VecGame(DUEL, 1, seed=4, observations=False)
    game.controllers[:] = Controller.HARD
    told = console_events(game.events(0))
    while game.winner[0] == Winner.RUNNING:
        game.step()
        told += console_events(game.events(0))
    assert told[-1]["kind"] == "end" and told[-1]["winner"] == int(np.asarray(game.winner)[0]) - 1
    had = {(unit["hero"], item) for unit in game.spectate(0)["units"] if unit["hero"] >= 0
           for item in unit["items"] if item}
    named = {(e["hero"], e["item"]) for e in told if e["kind"] == "item"}
    assert had and had <= named

"""Casts of a match: counted by hero and by item for each contestant."""

from typing import Any

import pytest

from dota.events import Event, EventKind
from five.evaluation.bot_games import quick_game_config
from five.evaluation.casts import CastRecorder
from five.evaluation.match import Contestant, play

SNIPER, LION = "npc_dota_hero_sniper", "npc_dota_hero_lion"


class CastingHeroes:
    """Stand-in for a game of Sniper and Lion (Radiant) against Lion (Dire)."""

    def __init__(self) -> None:
        self.game_time = [0.5]
        self.new_events: list[Event] = []

    def events(self, slot: int) -> list[Event]:
        return self.new_events

    def spectate(self, slot: int) -> dict[str, Any]:
        return {"units": [{"kind": "hero", "team": team, "name": name}
                          for team, name in ((0, SNIPER), (0, LION), (1, LION))] + [
                              {"kind": "tower", "team": 0, "name": "npc_dota_goodguys_tower1_mid"}]}


def cast(team: int, unit: str, what: str) -> Event:
    return Event(3000, 100.0, EventKind.CAST, team, hero=team * 5, unit_name=unit, what=what)


def test_casts_are_means_over_the_games_of_the_hero() -> None:
    game: Any = CastingHeroes()
    recorder = CastRecorder()
    casts = [cast(0, SNIPER, "sniper_shrapnel"), cast(0, SNIPER, "item_tpscroll"), cast(0, LION, "item_tpscroll"),
             cast(1, LION, "lion_impale"), cast(1, "npc_dota_necronomicon_archer_1", "a_summons_ability"),
             Event(3000, 100.0, EventKind.HERO_DEATH, 0, hero=0, unit_name=SNIPER)]
    for first_side, started in ((0, [0.5, 1.0, 1.5]), (1, [0.5, 1.0])):  # two games, with sides swapped
        for game.game_time[0] in started:
            game.new_events = casts if game.game_time[0] == 1.0 else []
            recorder(game, 0, first_side)
    # The first contestant plays two heroes as Radiant, then one as Dire: three heroes' games.
    assert recorder.summarise(True) == {
        "abilities": {"lion": {"lion_impale": 0.5}, "sniper": {"sniper_shrapnel": 1.0}},
        "items": {"tpscroll": pytest.approx(2 / 3)}}
    assert recorder.summarise(False) == recorder.summarise(True)


def test_match_without_casts_has_none() -> None:
    assert CastRecorder().summarise(True) == {"abilities": {}, "items": {}}


def test_bots_of_a_match_use_what_they_have() -> None:
    recorder = CastRecorder()
    match = play(quick_game_config(), Contestant.bot("scripted-hard"), Contestant.bot("random"), pairs=3, seed=4,
                 concurrent=2, on_step=recorder)
    for first in (True, False):
        assert sum(games for caster, games in recorder.games.items() if caster.of_first == first) == len(match.games)
    assert recorder.summarise(True)["abilities"]["nevermore"]["nevermore_shadowraze1"] > 1

"""A client's GameConfig becomes a game of the simulator, or a refusal that says what is wrong."""

from typing import Any

import pytest

from dota.config import GameConfig, RandomisationConfig
from five.protos.valve import dotaservice_pb2 as pb
from five.run.config.dotaservice import DotaServiceConfig
from five.services.dotaservice.game_plan import GamePlan, game_plan
from tests.services.dotaservice_client import CONTROLLED, DEFAULT, IDLE, NEVERMORE, SNIPER, game_config

GAME = GameConfig(max_game_seconds=600, neutrals=False, randomisation=RandomisationConfig(stats=0.3))


def plan_of(message: pb.GameConfig, **settings: Any) -> GamePlan:
    return game_plan(message, GAME, DotaServiceConfig(**settings))


def test_dotaclients_picks_are_a_duel_in_the_middle() -> None:
    plan = plan_of(game_config())
    assert plan.lineup == [["nevermore"], ["nevermore"]] and plan.playing == (0, 5) and plan.ticks == 15
    assert plan.heroes == (NEVERMORE, *[SNIPER] * 4) * 2 and plan.controls == (CONTROLLED, *[IDLE] * 4) * 2
    assert plan.players(CONTROLLED) == [0, 5] and plan.players(CONTROLLED, 1) == [5] and plan.players(IDLE) == []
    assert plan.config.mode == "1v1_mid" and plan.config.heroes_per_team == 1


def test_rules_are_the_configurations_without_randomisation() -> None:
    config = plan_of(game_config()).config
    assert config.max_game_seconds == 600 and not config.neutrals
    assert config.randomisation == RandomisationConfig()


@pytest.mark.parametrize("mode", [pb.DOTA_GAMEMODE_AP, pb.DOTA_GAMEMODE_CM, pb.DOTA_GAMEMODE_ALL_DRAFT])
def test_drafted_modes_are_five_a_side(mode: pb.GameMode) -> None:
    heroes = [11, 35, 26, 5, 18, 47, 2, 43, 7, 72]
    plan = plan_of(game_config(mode, heroes, [CONTROLLED] * 5 + [DEFAULT] * 5))
    assert plan.config.mode == "5v5" and plan.playing == tuple(range(10))
    assert plan.lineup == [["nevermore", "sniper", "lion", "crystal_maiden", "sven"],
                           ["viper", "axe", "death_prophet", "earthshaker", "gyrocopter"]]
    assert plan.players(DEFAULT) == [5, 6, 7, 8, 9]


def test_several_heroes_may_play_in_the_middle() -> None:
    controls = [IDLE, CONTROLLED, IDLE, IDLE, IDLE, CONTROLLED, IDLE, IDLE, IDLE, IDLE]
    plan = plan_of(game_config(controls=controls))
    assert plan.lineup == [["nevermore", "sniper"]] * 2 and plan.playing == (0, 1, 5, 6)
    assert plan.players(IDLE) == [0, 6]


def test_a_game_of_idle_heroes_has_one_a_side() -> None:
    assert plan_of(game_config(controls=[IDLE] * 10)).playing == (0, 5)


def without(message: pb.GameConfig, count: int) -> pb.GameConfig:
    del message.hero_picks[10 - count:]
    return message


def changed(player: int, **values: Any) -> pb.GameConfig:
    message = game_config()
    for name, value in values.items():
        setattr(message.hero_picks[player], name, value)
    return message


@pytest.mark.parametrize(("message", "text"), [
    (game_config(ticks=0), r"ticks_per_observation 0: 1 to 900 are allowed"),
    (game_config(ticks=901), r"ticks_per_observation 901: 1 to 900"),
    (game_config(pb.DOTA_GAMEMODE_MO), r"game_mode DOTA_GAMEMODE_MO: allowed are DOTA_GAMEMODE_1V1MID \(21\)"),
    (pb.GameConfig(ticks_per_observation=15), "game_mode DOTA_GAMEMODE_MO"),
    (without(game_config(), 1), "hero_picks: 10 are needed, one for each player, not 9"),
    (without(game_config(), 10), "not 0"),
    (changed(5, hero_id=1), r"hero_picks\[5\]\.hero_id 1: not a hero of this server; it has 2 \(axe\)"),
    (changed(0, hero_id=-7), r"hero_picks\[0\]\.hero_id -7"),
    (changed(4, team_id=pb.TEAM_DIRE), r"hero_picks\[4\]\.team_id 3: the first five picks are Radiant's"),
    (changed(9, team_id=pb.TEAM_RADIANT), r"hero_picks\[9\]\.team_id 2"),
])
def test_what_cannot_be_played_is_refused(message: pb.GameConfig, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        plan_of(message)


def test_heroes_outside_the_pool_are_refused_where_they_play() -> None:
    settings = {"hero_pool": ["nevermore", "viper"]}
    assert plan_of(game_config(), **settings).lineup == [["nevermore"], ["nevermore"]], "idle snipers have no unit"
    with pytest.raises(ValueError, match=r"hero_picks\[1\]\.hero_id 35 \(sniper\): .* it has 11 \(nevermore\), 47"):
        plan_of(game_config(pb.DOTA_GAMEMODE_AP), **settings)


def test_the_last_port_must_exist() -> None:
    with pytest.raises(ValueError, match=r"games 3: the last game's port would be 65536"):
        DotaServiceConfig(port=65534, games=3)
    assert DotaServiceConfig(port=0, games=3).port == 0

"""A client's game: frames that come and go, handles, unknown names, choices, recorded frames."""

import functools
from typing import Any

import numpy as np
import pytest

from dota.client_state import ClientCommand, ClientGame
from dota.config import GameConfig
from dota.play import InteractiveGame
from dota.vec_game import Controller
from five.protos.valve.bot_world_state_pb2 import CMsgBotWorldState
from tests.dota.client_frames import frame
from tests.dota.client_round_trip import bot_handle
from tests.dota.recorded_states import NAMES, frames, recording
from tests.dota.small_games import TEAM
from tests.dota.watching import read

GAME = GameConfig(**{**TEAM.model_dump(), "start_seconds": -10, "max_game_seconds": 60})


@functools.cache
def played() -> list[bytes]:
    """Return the Radiant's frames of a game of bots."""
    game = InteractiveGame(GAME, 5)
    game.controllers[:] = Controller.SCRIPTED
    found = []
    for _ in range(300):
        found.append(game.world_state(0))
        game.step()
    return found


def changed(data: bytes, change: Any) -> bytes:
    message = CMsgBotWorldState.FromString(data)
    change(message)
    return message.SerializeToString()


def same(a: ClientGame, b: ClientGame) -> bool:
    return all(np.array_equal(a.obs[name], b.obs[name]) for name in a.obs)


def test_damaged_frames_change_nothing() -> None:
    clean, faulty = ClientGame(GAME), ClientGame(GAME)
    for data in played()[:40]:
        assert not clean.update(data)
        assert "cut off" in faulty.update(data[:-5]) and "cut off" in faulty.update(data[:len(data) // 3])
        assert not faulty.update(data)
        assert same(clean, faulty)
    assert faulty.counts["refused"] == 80 and faulty.counts["frames"] == 40


def test_game_joined_late_shows_the_present() -> None:
    whole, late = ClientGame(GAME), ClientGame(GAME)
    for data in played()[:200]:
        whole.update(data)
    assert not late.update(played()[199])
    for block, name in (("units", "position"), ("units", "max_hp"), ("heroes", "mana"), ("items", "location")):
        assert np.array_equal(read(whole.layout, whole.obs, block, name), read(late.layout, late.obs, block, name))
    assert late.unit_handles() == whole.unit_handles() and late.time == whole.time


def test_new_game_begins_anew() -> None:
    again, fresh = ClientGame(GAME), ClientGame(GAME)
    for data in played()[:150]:
        again.update(data)
    for data in played()[:20]:
        assert not again.update(data) and not fresh.update(data)
    assert same(again, fresh)


def test_missing_hero_stays_as_last_seen() -> None:
    game = ClientGame(GAME)
    for data in played()[:100]:
        game.update(data)
    hero = game.hero_handles()[0]
    before = read(game.layout, game.obs, "units", "position")[game.unit_handles().index(hero)].copy()

    def drop(message: CMsgBotWorldState) -> None:
        units = [u for u in message.units if u.handle != hero]
        del message.units[:]
        message.units.extend(units)

    for data in played()[100:105]:
        assert not game.update(changed(data, drop))
    assert game.hero_handles()[0] == hero
    assert np.array_equal(read(game.layout, game.obs, "units", "position")[game.unit_handles().index(hero)], before)


def test_handle_of_another_unit_is_another_unit() -> None:
    game = ClientGame(GAME)
    data = played()[-1]
    game.update(data)
    creep = next(u for u in CMsgBotWorldState.FromString(data).units
                 if u.unit_type == 3 and u.team_id == 2 and u.handle in game.unit_handles())

    def become_neutral(message: CMsgBotWorldState) -> None:
        for u in message.units:
            if u.handle == creep.handle:
                u.MergeFrom(CMsgBotWorldState.Unit(unit_type="JUNGLE_CREEP", team_id=4, health=77,
                                                   name="npc_dota_neutral_kobold"))

    row = game.unit_handles().index(creep.handle)
    assert read(game.layout, game.obs, "units", "mine")[row] == 1
    assert not game.update(changed(data, become_neutral))
    row = game.unit_handles().index(creep.handle)
    assert read(game.layout, game.obs, "units", "neutral")[row] == 1
    assert read(game.layout, game.obs, "units", "hp_history")[row] == pytest.approx(0.077, rel=1e-2)


def test_unknown_names_are_counted() -> None:
    game = ClientGame(GAME)

    def rename(message: CMsgBotWorldState) -> None:
        creep = next(u for u in message.units if u.unit_type == 3)
        creep.name = "npc_dota_creep_of_tomorrow"
        creep.modifiers.add(name="modifier_of_tomorrow", remaining_duration=3)
        creep.modifiers.add(name="modifier_fountain_glyph", remaining_duration=3)  # known, as the team's glyph
        message.units[0].items.add(ability_id=99999, slot=5)

    assert not game.update(changed(played()[-1], rename))
    names = game.counts["unknown_names"]
    assert names["unit npc_dota_creep_of_tomorrow"] == 1 and names["modifier modifier_of_tomorrow"] == 1
    assert names["item 99999"] == 1 and "modifier modifier_fountain_glyph" not in names


def test_choices_name_the_clients_units() -> None:
    game = ClientGame(GAME)
    for data in played():
        game.update(data)
    offered = {game.layout.actions[a].name: i for i, a in enumerate(game.obs["available"][0]) if a}
    mask = next(a.mask for a in game.layout.actions if a.name == "follow")
    follow = np.flatnonzero(game.obs["target_mask"][0, mask])[0]
    row = [offered["follow"], 2, int(follow), 0, 4, 4]
    chosen = game.choose(np.array([row] * game.layout.heroes, np.int16))[0]
    assert game.layout.actions[chosen.action].name == "follow" and chosen.delay == 2
    assert chosen.target == game.unit_handles()[follow] != 0 and chosen.teleport == 0
    game.update(played()[-1])
    assert read(game.layout, game.obs, "previous_action", "action")[0] == chosen.action
    game.remember([ClientCommand(1, 0, 0, 0, 0, 0)] * game.layout.heroes)


def test_handles_are_those_of_the_frames() -> None:
    game = ClientGame(GAME)
    game.update(played()[0])
    assert game.hero_handles() == [bot_handle(slot, 1) for slot in range(2)]
    listed = {u.handle for u in CMsgBotWorldState.FromString(played()[0]).units}
    assert {handle for handle in game.unit_handles() if handle} <= listed


def test_frame_before_the_heroes_is_refused() -> None:
    game = ClientGame(GAME)
    empty = changed(frame(), lambda message: message.ClearField("units"))
    assert game.update(empty) == "the frame has no heroes: the game has not begun"
    with pytest.raises(ValueError, match="no frame was taken"):
        game.choose(np.zeros((2, 6), np.int16))
    with pytest.raises(ValueError, match="actions must be int16"):
        game.choose(np.zeros((3, 6), np.int16))


@pytest.mark.parametrize("name", NAMES)
def test_recorded_frames_give_finite_observations(name: str) -> None:
    path = recording(name)
    if path is None:
        pytest.skip("FIVE_RECORDINGS names no folder with the recorded world states")
    game = ClientGame(GameConfig())
    refused = 0
    for data in frames(path):
        refused += bool(game.update(data))
        assert all(np.isfinite(game.obs[array]).all() for array in ("shared", "private"))
    assert refused < 100 and game.counts["frames"] > 4900 and game.counts["unknown_fields"] == 0
    assert (read(game.layout, game.obs, "heroes", "alive") > 0).any() and game.time > 1500

"""A team's world state is what the team sees, in Dota 2's own message (`libs/dota/core/play/world_state.hpp`)."""

from collections import Counter
from typing import Any

import pytest

from dota.config import GameConfig
from dota.events import EventKind
from dota.play import InteractiveGame, Order
from dota.vec_game import Controller
from five.protos.valve.bot_world_state_pb2 import CMsgBotWorldState
from tests.dota.playing import frames, place, played, unit
from tests.dota.small_games import TEAM
from tests.dota.watching import duel
from tests.dota.world_states import check_state, state_of, unit_of


def bots(config: GameConfig, seed: int = 4, controller: Controller = Controller.HARD) -> InteractiveGame:
    game = InteractiveGame(config, seed)
    game.controllers[:] = controller
    return game


def play_through(game: InteractiveGame, steps: int, every: int) -> Counter[str]:
    """Play on and compare the world states of every few timesteps with the game. Return how often each list had
    entries."""
    seen: Counter[str] = Counter()
    for step in range(steps):
        if game.winner:
            break
        game.step()
        if step % every:
            continue
        for team in range(2):
            told = check_state(game, team)
            seen.update(field.name for field, _ in told.ListFields())
            seen.update(field.name for u in told.units for field, _ in u.ListFields() if u.HasField("handle"))
    return seen


def test_states_of_two_against_two_are_what_each_team_sees() -> None:
    game = bots(TEAM.model_copy(update={"max_game_seconds": 600.0, "start_seconds": 0.0}))
    seen = play_through(game, 600, 20)
    for name in ("modifiers", "incoming_tracking_projectiles", "abilities", "items", "attack_target_handle",
                 "damage_events", "players"):
        assert seen[name] > 0, name


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("config", [GameConfig(max_game_seconds=1800.0), GameConfig(
    mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore", "sniper"])], ids=["5v5", "1v1"])
def test_states_of_whole_games_are_what_each_team_sees(config: GameConfig) -> None:
    seen = play_through(bots(config), 20_000, 40)
    for name in ("ability_events", "damage_events", "incoming_tracking_projectiles", "attack_target_handle"):
        assert seen[name] > 0, name
    if config.heroes_per_team == 5:
        for name in ("linear_projectiles", "tree_events", "avoidance_zones", "rune_infos", "incoming_teleports",
                     "couriers"):
            assert seen[name] > 0, name


def test_states_change_nothing_and_are_equal_in_equal_games() -> None:
    asked, again, unasked = (bots(TEAM, seed=7) for _ in range(3))
    for step in range(90):
        for game in (asked, again, unasked):
            game.step()
        if step % 5 == 0:
            assert [asked.world_state(t) for t in range(2)] == [again.world_state(t) for t in range(2)]
    assert asked.hash() == again.hash() == unasked.hash()


def visible(game: InteractiveGame, team: int) -> set[tuple[int, int]]:
    """Return slot and generation of the units that the team sees, and of its own."""
    return {(u["slot"], u["generation"]) for u in game.spectate()["units"]
            if u["team"] == team or (u["alive"] and u["seen_by"][team])}


def check_events(state: CMsgBotWorldState, known: set[tuple[int, int]]) -> None:
    """Check that the events name only units of a set."""
    named = [e.unit_handle for e in state.ability_events]
    named += [e.victim_unit_handle for e in state.damage_events]
    named += [e.attacker_unit_handle for e in state.damage_events if e.HasField("attacker_unit_handle")]
    for kill in (*state.courier_killed_events, *state.roshan_killed_events):
        named += [kill.killer_unit_handle] if kill.HasField("killer_unit_handle") else []
    assert {unit_of(handle) for handle in named} <= known
    for event in state.damage_events:
        assert event.HasField("attacker_unit_handle") or event.attacker_player_id < 0


def counted(game: InteractiveGame, steps: int, every: int) -> tuple[list[Counter[Any]], list[Counter[Any]]]:
    """Play timesteps; return each team's casts and kills as its world states and as its events have them."""
    told: list[Counter[Any]] = [Counter(), Counter()]
    known: list[Counter[Any]] = [Counter(), Counter()]
    met: list[set[tuple[int, int]]] = [set(), set()]  # since the last state
    for team in range(2):
        game.world_state(team)
    for step in range(steps):
        if game.frames_left == 0:
            game.begin()
        for _ in range(4):
            for team in range(2):
                met[team] |= visible(game, team)
            game.frame()
            for team in range(2):
                met[team] |= visible(game, team)
                for event in game.events(team):
                    if event.kind == EventKind.CAST and event.unit >= 0:
                        known[team]["cast", event.hero] += 1
                    elif event.kind in (EventKind.COURIER_DEATH, EventKind.ROSHAN_DEATH):
                        known[team][event.kind.name] += 1
        if step % every == every - 1:
            for team in range(2):
                state = state_of(game, team)
                check_events(state, met[team])
                met[team] = set()
                told[team].update(("cast", e.player_id) for e in state.ability_events)
                told[team].update(["COURIER_DEATH"] * len(state.courier_killed_events))
                told[team].update(["ROSHAN_DEATH"] * len(state.roshan_killed_events))
                again = state_of(game, team)
                assert not (again.ability_events or again.damage_events or again.tree_events)
    return told, known


def test_each_event_is_in_one_state_of_each_team() -> None:
    told, known = counted(bots(TEAM.model_copy(update={"max_game_seconds": 300.0, "start_seconds": 0.0})), 600, 6)
    assert told == known
    assert sum(told[0].values()) > 3


def test_damage_events_are_the_health_that_a_hero_lost() -> None:
    game = played()
    game.take(5, True)
    place(game, 5, -420.0, -400.0)
    frames(game, 8)
    game.world_state(0)
    game.order(5, Order("hold"))
    assert game.order(0, Order("attack", target=(unit(game, 5)["slot"], unit(game, 5)["generation"]))).ok
    before, lost, reported = unit(game, 5)["hp"], 0.0, 0
    for _ in range(120):
        frames(game, 1)
        now = unit(game, 5)["hp"]
        lost += max(before - now, 0.0)
        before = now
        for event in state_of(game, 0).damage_events:
            if event.victim_player_id == 0:
                continue
            assert (event.victim_player_id, event.attacker_player_id) == (5, 0)
            assert game.unit_of_bot_handle(event.attacker_unit_handle) == (
                unit(game, 0)["slot"], unit(game, 0)["generation"])
            reported += event.damage
    assert reported > 50 and reported == pytest.approx(lost, abs=5)


def test_an_attacks_animation_runs_with_time() -> None:
    game = played()
    game.take(5, True)
    place(game, 5, -420.0, -400.0)
    game.order(0, Order("attack", target=(unit(game, 5)["slot"], unit(game, 5)["generation"])))
    cycles, launched = [], []
    for _ in range(200):
        frames(game, 1)
        me = next(u for u in state_of(game, 0).units if u.player_id == 0)
        if me.anim_activity != 1503:
            continue
        cycles.append(me.anim_cycle)
        launched.append(me.last_attack_time)
    swings = [k for k in range(1, len(cycles)) if cycles[k] < cycles[k - 1]]
    assert len(swings) >= 2 and len(set(launched[swings[0]:])) >= 2
    first, last = swings[0], swings[1]
    pace = [b - a for a, b in zip(cycles[first:last], cycles[first + 1:last], strict=False)]
    assert all(step == pytest.approx(1 / (last - first), abs=0.01) for step in pace)
    assert cycles[first] < 0.05 and cycles[last - 1] > 0.93


def test_dead_hero_tower_and_creeps_are_listed() -> None:
    game = played()
    place(game, 0, 524.0, 400.0)  # within the reach of the enemy's tower
    alive = []
    for _ in range(300):
        game.step()
        told = state_of(game, 0)
        assert any(u.unit_type == 3 and u.team_id == 2 for u in told.units)
        assert any(u.name == "npc_dota_goodguys_tower1_mid" for u in told.units)
        me = next(u for u in told.units if u.player_id == 0)
        assert me.health_max > 0 and me.mana_max > 0 and me.is_alive == (me.health > 0)
        (player,) = (p for p in told.players if p.player_id == 0)
        assert (player.respawn_time > 0) == (not me.is_alive)
        alive.append(me.is_alive)
        if not me.is_alive:
            break
    assert alive[0] and not alive[-1]


def test_first_state_after_the_horn_has_lane_creeps() -> None:
    game = InteractiveGame(duel(start_seconds=-1.0), 1)
    before = after = 0
    for _ in range(60):
        frames(game, 1)
        for team in range(2):
            told = state_of(game, team)
            creeps = [u for u in told.units if u.unit_type == 3 and u.team_id == 2 + team]
            before += told.dota_time < 0
            after += told.dota_time > 0
            assert told.game_state == (4 if told.dota_time < 0 else 5)
            assert bool(creeps) >= (told.dota_time > 0)
    assert before and after


def test_handles_map_back_to_units() -> None:
    game = played()
    for told in state_of(game, 0).units:
        slot, generation = game.unit_of_bot_handle(told.handle) or (-1, -1)
        assert any((u["slot"], u["generation"]) == (slot, generation) for u in game.spectate()["units"])
    for handle in (-1, 0, 1023, 1 << 24, (1 << 24) - 1, 4294967295):
        assert game.unit_of_bot_handle(handle) is None
    ability = next(u for u in state_of(game, 0).units if u.player_id == 0).abilities[0].handle
    assert game.unit_of_bot_handle(ability) is None


def test_before_the_horn_towers_are_invulnerable_without_a_glyph() -> None:
    game = InteractiveGame(duel(start_seconds=-1.0), 1)
    for horn in (False, True):
        towers = [u for u in state_of(game, 0).units if "tower1" in u.name]
        assert towers and {u.is_invulnerable for u in towers} == {not horn}
        assert not any(m.name == "modifier_fountain_glyph" for tower in towers for m in tower.modifiers)
        frames(game, 40)


def test_glyph_is_a_modifier_of_towers() -> None:
    game = played()
    while not game.order(0, Order("glyph")).ok:
        game.step()
    frames(game, 2)
    towers = [u for u in state_of(game, 0).units if u.unit_type == 6]
    assert towers
    for tower in towers:
        (glyph,) = (m for m in tower.modifiers if m.name == "modifier_fountain_glyph")
        assert 0 < glyph.remaining_duration <= 7
    assert state_of(game, 0).glyph_cooldown > 0
    assert state_of(game, 1).glyph_cooldown_enemy > 0


def test_modifier_without_an_end_lasts_minus_one_second() -> None:
    game = played()  # a Shadow Fiend, who has his souls for good
    for team in range(2):
        hero = next(u for u in state_of(game, team).units if u.player_id == 5 * team)
        assert [m.remaining_duration for m in hero.modifiers if m.name == "stack_souls"] == [-1]


def test_players_without_a_hero_are_listed_on_request() -> None:
    game = InteractiveGame(duel(), 1)
    heroes = [p.hero_id for p in state_of(game, 0).players]
    told = CMsgBotWorldState.FromString(game.world_state(1, {0: 99, 2: 35, 9: 26}))
    assert [(p.player_id, p.team_id, p.hero_id, p.is_alive) for p in told.players] == [
        (0, 2, heroes[0], True), (2, 2, 35, True), (5, 3, heroes[1], True), (9, 3, 26, True)]
    assert [p.player_id for p in state_of(game, 1).players] == [0, 5]


@pytest.mark.parametrize("team", [-1, 2])
def test_another_team_is_refused(team: int) -> None:
    with pytest.raises(ValueError, match="team"):
        played().world_state(team)

"""A living hero that is missing from its team's world state gets a move order."""

from typing import Any

import pytest

from five.protos.valve.bot_world_state_pb2 import CMsgBotWorldState
from five.real_client.frames import Frame, read_frame
from five.real_client.missing_heroes import missing_players, with_moves


def frame(alive: set[int], units: set[int], illusions: tuple[int, ...] = ()) -> Frame:
    """Return Radiant's world state: players 0 to 4 are its own, 5 to 9 Dire's."""
    state = CMsgBotWorldState(team_id=2, game_time=1.0, dota_time=1.0, game_state=5)
    for player in range(10):
        state.players.add(player_id=player, team_id=2 + player // 5, is_alive=player in alive)
    for player in units:
        state.units.add(handle=player + 1, unit_type=CMsgBotWorldState.HERO, player_id=player)
    for player in illusions:
        state.units.add(handle=50, unit_type=CMsgBotWorldState.HERO, player_id=player, is_illusion=True)
    state.units.add(handle=60, unit_type=CMsgBotWorldState.COURIER, player_id=1)
    return read_frame(state.SerializeToString())


def move(player: int, kind: str = "DOTA_UNIT_ORDER_MOVE_TO_POSITION") -> dict[str, Any]:
    return {"actionType": kind, "player": player}


def test_own_living_heroes_without_a_unit_are_missing() -> None:
    everyone = set(range(10))
    assert missing_players(frame(everyone, {0, 2, 4})) == {1, 3}
    assert missing_players(frame(everyone - {1}, {0, 2, 4})) == {3}
    assert missing_players(frame(everyone, {0, 1, 2, 4}, illusions=(3,))) == {3}
    assert not missing_players(frame(everyone, {0, 1, 2, 3, 4}))


def test_a_cut_frame_tells_of_no_missing_hero() -> None:
    whole = frame(set(range(10)), {0, 1, 2, 3, 4})
    cut = read_frame(whole.payload[:-30], len(whole.payload))
    assert cut.lost_bytes > 0 and not missing_players(cut)


@pytest.mark.parametrize("orders", [[], [move(1, "DOTA_UNIT_ORDER_NONE")], [move(2)]])
def test_a_missing_hero_moves(orders: list[dict[str, Any]]) -> None:
    sent = with_moves(orders, {1})
    assert sent[:-1] == orders
    assert sent[-1] == {**move(1), "moveToLocation": {"location": {"x": 0.0, "y": 0.0, "z": 0.0}}}


def test_a_hero_that_moves_anyway_gets_no_other_order() -> None:
    orders = [move(1, "DOTA_UNIT_ORDER_ATTACK_MOVE"), move(3, "DOTA_UNIT_ORDER_STOP")]
    assert with_moves(orders, {1}) == orders and with_moves(orders, ()) == orders

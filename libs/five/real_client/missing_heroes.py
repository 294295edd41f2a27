"""Heroes that the client leaves out of a world state although they live.

A hero that has respawned and stands in the fountain is missing from its own team's units until it moves
(Passerby/dota2-env, client 6933 of September 2026), so a policy would neither see it nor order it.
"""

from collections.abc import Collection, Sequence

from google.protobuf.message import DecodeError

from five.protos.valve.bot_world_state_pb2 import CMsgBotWorldState
from five.real_client.action_files import Action
from five.real_client.frames import Frame

MOVES = frozenset({"DOTA_UNIT_ORDER_MOVE_TO_POSITION", "DOTA_UNIT_ORDER_MOVE_DIRECTLY",
                   "DOTA_UNIT_ORDER_MOVE_TO_TARGET", "DOTA_UNIT_ORDER_ATTACK_MOVE", "DOTA_UNIT_ORDER_ATTACK_TARGET"})


def missing_players(frame: Frame) -> frozenset[int]:
    """Return the team's players whose living hero is missing from the frame; none if the frame lacks bytes."""
    if frame.lost_bytes:
        return frozenset()
    try:
        state = CMsgBotWorldState.FromString(frame.payload)
    except DecodeError:
        return frozenset()
    alive = {player.player_id for player in state.players if player.team_id == frame.team and player.is_alive}
    return frozenset(alive - {unit.player_id for unit in state.units
                              if unit.unit_type == CMsgBotWorldState.HERO and not unit.is_illusion})


def with_moves(actions: Sequence[Action], missing: Collection[int]) -> list[Action]:
    """Return the actions and, for missing heroes without a move of their own, a move towards the map's centre."""
    moved = {action.get("player") for action in actions if action.get("actionType") in MOVES}
    return [*actions, *({"actionType": "DOTA_UNIT_ORDER_MOVE_TO_POSITION", "player": player,
                         "moveToLocation": {"location": {"x": 0.0, "y": 0.0, "z": 0.0}}}
                        for player in sorted(missing) if player not in moved)]

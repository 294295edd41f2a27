"""RPC servicer of dotaservice's protocol: one game of one port."""

from typing import Any

from dota.config import GameConfig
from five.protos.valve import dotaservice_pb2 as pb
from five.protos.valve import dotaservice_pb2_grpc
from five.run.config.dotaservice import DotaServiceConfig
from five.services.dotaservice import metrics
from five.services.dotaservice.game_plan import TEAM_PLAYERS, GamePlan, game_plan
from five.services.dotaservice.session import Session

MAX_ACTIONS = 640  # of one message: 64 for each hero
TEAM_IDS = (pb.TEAM_RADIANT, pb.TEAM_DIRE)
RADIANT_FIELD, DIRE_FIELD, STATE_FIELD = 2, 3, 3  # of InitialObservation and Observation


class DotaService(dotaservice_pb2_grpc.DotaServiceServicer):
    """Servicer of one game's clients, with the rules of ``game``. Responses are serialized messages."""

    def __init__(self, game: GameConfig, settings: DotaServiceConfig, session: Session) -> None:
        self._game = game
        self._settings = settings
        self._session = session

    async def reset(self, request: pb.GameConfig, context: Any) -> bytes:  # type: ignore[override]
        """End the previous game and start one."""
        plan = game_plan(request, self._game, self._settings)
        radiant, dire = await self._session.reset(plan)
        metrics.OBSERVATIONS.inc(2)
        metrics.STATE_BYTES.inc(len(radiant) + len(dire))
        return initial_observation(plan, radiant, dire)

    async def observe(self, request: pb.ObserveConfig, context: Any) -> bytes:  # type: ignore[override]
        """Advance the game to the next observation of a side, unless the other side has done so, and return it."""
        team = _team(request)
        status, state = await self._session.observe(team)
        if state:
            metrics.OBSERVATIONS.inc()
            metrics.STATE_BYTES.inc(len(state))
        head = pb.Observation(status=status, team_id=request.team_id).SerializeToString()
        return head + (_embedded(STATE_FIELD, state) if state else b"")

    async def act(self, request: pb.Actions, context: Any) -> pb.Empty:
        """Take a side's actions for its newest observation."""
        team, given = _team(request), request.actions
        if len(given.actions) > MAX_ACTIONS:
            raise ValueError(f"actions: {len(given.actions)} in one message, at most {MAX_ACTIONS} are allowed")
        await self._session.act(team, given.dota_time if given.HasField("dota_time") else None, list(given.actions))
        return pb.Empty()


def initial_observation(plan: GamePlan, radiant: bytes, dire: bytes) -> bytes:
    """Return a serialized InitialObservation with the states of both sides and the ten players."""
    players = [pb.Player(id=player, team_id=TEAM_IDS[player // TEAM_PLAYERS], is_bot=True, hero=hero)
               for player, hero in enumerate(plan.heroes)]
    head = pb.InitialObservation(status=pb.OK, players=players).SerializeToString()
    return head + _embedded(RADIANT_FIELD, radiant) + _embedded(DIRE_FIELD, dire)


def _embedded(field: int, message: bytes) -> bytes:
    """Return a serialized message as a field of another one: tag (length-delimited), length, bytes."""
    length, size = bytearray(), len(message)
    while size >= 0x80:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes((field << 3 | 2, *length, size)) + message


def _team(request: pb.ObserveConfig | pb.Actions) -> int:
    if not request.HasField("team_id"):  # absent or an unknown number, which protobuf would read as Radiant's
        raise ValueError(f"team_id: {pb.TEAM_RADIANT} (Radiant) or {pb.TEAM_DIRE} (Dire) is needed")
    return TEAM_IDS.index(request.team_id)

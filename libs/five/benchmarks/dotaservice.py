"""Observations a second of processor time through the server of dotaservice's protocol, with a client that reads and
acts for both sides. The client does not decode the states."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import grpc.aio

from dota.valve_ids import TEAMS
from five.benchmarks.results import BenchmarkRow, machine, row
from five.protos.valve import dotaservice_pb2 as pb
from five.protos.valve.bot_world_state_pb2 import CMsgBotWorldState
from five.run.config import RunConfig
from five.run.config.dotaservice import DotaServiceConfig
from five.services.dotaservice.game_plan import game_plan
from five.services.dotaservice.lockstep_game import LockstepGame
from five.services.dotaservice.server import start_server
from rapid.rpc.channel import Channel

Action = CMsgBotWorldState.Action
HEROES = (11, 35, 26, 5, 18, 47, 2, 43, 7, 72)
CONTROLLED, IDLE = pb.HERO_CONTROL_MODE_CONTROLLED, pb.HERO_CONTROL_MODE_IDLE
TARGETS = {"1v1": 100.0, "5v5": 30.0}  # observations a second and core that a trainer needs (docs/dotaservice.md)


@dataclass(frozen=True)
class DotaserviceWorkload:
    """Workload of the benchmark ``dotaservice``: the measured part of the game time, and the ticks of a step."""

    from_seconds: float = 60.0
    until_seconds: float = 300.0
    ticks: int = 15


def request(mode: pb.GameMode, ticks: int) -> pb.GameConfig:
    """Return a game in which the client controls all heroes."""
    solo = mode == pb.DOTA_GAMEMODE_1V1MID
    return pb.GameConfig(ticks_per_observation=ticks, game_mode=mode, hero_picks=[
        pb.HeroPick(team_id=pb.TEAM_RADIANT if p < 5 else pb.TEAM_DIRE, hero_id=HEROES[p],
                    control_mode=IDLE if solo and p % 5 else CONTROLLED) for p in range(len(HEROES))])


def fight(players: Sequence[int]) -> bytes:
    """Return serialized Actions that send heroes to the middle of the map, where they fight."""
    team = pb.TEAM_RADIANT if players[0] < 5 else pb.TEAM_DIRE
    center = Action.AttackMove(location=CMsgBotWorldState.Vector(x=0, y=0))
    return pb.Actions(team_id=team, actions=CMsgBotWorldState.Actions(actions=[
        Action(player=p, actionType=Action.DOTA_UNIT_ORDER_ATTACK_MOVE, attackMove=center) for p in players])
        ).SerializeToString()


def measure(size: DotaserviceWorkload = DotaserviceWorkload()) -> list[BenchmarkRow]:
    """Return the rows ``dotaservice.1v1`` and ``dotaservice.5v5``; the reference is what a trainer needs."""
    conditions = machine(ticks=size.ticks, from_seconds=size.from_seconds, until_seconds=size.until_seconds)
    found = []
    for name, mode in (("1v1", pb.DOTA_GAMEMODE_1V1MID), ("5v5", pb.DOTA_GAMEMODE_AP)):
        rate, state_bytes = asyncio.run(_served(size, mode))
        found.append(row(f"dotaservice.{name}", rate, "observations/s and core", TARGETS[name],
                         {**conditions, "state_bytes": round(state_bytes)}))
        found.append(row(f"dotaservice.{name}.game", _alone(size, mode), "observations/s and core", None, conditions))
    return found


async def _served(size: DotaserviceWorkload, mode: pb.GameMode) -> tuple[float, float]:
    """Return observations a second of processor time and the mean size of a state, through gRPC."""
    config = RunConfig.model_validate({"game": {"start_seconds": 0.0, "kills_to_win": 0}, "services": {
        "dotaservice": {"port": 0}}})
    server = await start_server(config)
    plan = game_plan(request(mode, size.ticks), config.game, config.services.dotaservice)
    actions = [fight(plan.players(CONTROLLED, team)) for team in range(len(TEAMS))]
    requests = [pb.ObserveConfig(team_id=team).SerializeToString() for team in (pb.TEAM_RADIANT, pb.TEAM_DIRE)]
    channel = Channel(f"127.0.0.1:{server.ports[0]}", config.rpc, None)
    try:
        reset, observe, act = (_call(channel.grpc, name) for name in ("reset", "observe", "act"))
        await reset(request(mode, size.ticks).SerializeToString())

        async def play(seconds: float) -> tuple[int, int]:
            observed = received = 0
            for _ in range(round(seconds * 30 / size.ticks)):
                for team in range(len(TEAMS)):
                    answer = await observe(requests[team])
                    await act(actions[team])
                    observed, received = observed + 1, received + len(answer)
            return observed, received

        await play(size.from_seconds)
        began = time.process_time()
        observed, received = await play(size.until_seconds - size.from_seconds)
        spent = time.process_time() - began
    finally:
        await channel.close()
        await server.stop(0)
    return observed / spent, received / observed


def _call(channel: grpc.aio.Channel, name: str) -> Any:
    """Return a method of the service that takes and returns bytes."""
    return channel.unary_unary(f"/DotaService/{name}", request_serializer=bytes, response_deserializer=bytes)


def _alone(size: DotaserviceWorkload, mode: pb.GameMode) -> float:
    """Return observations a second of processor time of the same game in this process."""
    settings = DotaServiceConfig()
    config = RunConfig.model_validate({"game": {"start_seconds": 0.0, "kills_to_win": 0}})
    plan = game_plan(request(mode, size.ticks), config.game, settings)
    game = LockstepGame(plan, 1, settings)
    actions = [pb.Actions.FromString(fight(plan.players(CONTROLLED, team))).actions.actions
               for team in range(len(TEAMS))]

    def play(seconds: float) -> int:
        observed = 0
        for _ in range(round(seconds * 30 / size.ticks)):
            for team in range(len(TEAMS)):
                game.act(team, None, actions[team])
            game.advance()
            observed += sum(bool(game.state(team)) for team in range(len(TEAMS)))
        return observed

    play(size.from_seconds)
    began = time.process_time()
    observed = play(size.until_seconds - size.from_seconds)
    return observed / (time.process_time() - began)

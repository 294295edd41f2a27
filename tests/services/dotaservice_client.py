"""A client of dotaservice's protocol for tests, written after the protocol's description: it reads the fields that
dotaclient reads (TimZaman/dotaclient 8615b90, agent.py) and plays by the same loop."""

from collections.abc import Callable, Sequence
from typing import Any

import grpc.aio

from five.protos.valve import dotaservice_pb2 as pb
from five.protos.valve import dotaservice_pb2_grpc
from five.protos.valve.bot_world_state_pb2 import CMsgBotWorldState

Action, State, Unit = CMsgBotWorldState.Action, CMsgBotWorldState, CMsgBotWorldState.Unit
IDLE, DEFAULT, CONTROLLED = (pb.HERO_CONTROL_MODE_IDLE, pb.HERO_CONTROL_MODE_DEFAULT, pb.HERO_CONTROL_MODE_CONTROLLED)
NEVERMORE, SNIPER = 11, 35
RADIANT, DIRE = pb.TEAM_RADIANT, pb.TEAM_DIRE
SOLO = [CONTROLLED, *[IDLE] * 4] * 2
# Fields that dotaclient reads, by message.
FIELDS: dict[str, tuple[str, ...]] = {
    "state": ("dota_time",),
    "players": ("player_id", "kills", "deaths", "team_id"),
    "units": ("handle", "unit_type", "name", "team_id", "level", "is_alive", "player_id", "facing", "health",
              "health_max", "mana", "mana_max", "anim_activity", "attack_range", "is_attack_immune", "is_invulnerable"),
    "location": ("x", "y", "z"),
    "own hero": ("xp_needed_to_level", "last_hits", "denies"),
    "abilities": ("slot", "level", "cooldown_remaining", "is_activated", "is_in_ability_phase", "is_channeling",
                  "is_fully_castable"),
    "projectiles": ("is_attack",),  # and caster_handle, if the side sees the caster
}


def game_config(mode: pb.GameMode = pb.DOTA_GAMEMODE_1V1MID, heroes: Sequence[int] = (NEVERMORE, *[SNIPER] * 4) * 2,
                controls: Sequence[pb.HeroControlMode] = SOLO, ticks: int = 15) -> pb.GameConfig:
    """Return dotaclient's request for a game, or another one."""
    picks = [pb.HeroPick(team_id=RADIANT if player < 5 else DIRE, hero_id=hero, control_mode=control)
             for player, (hero, control) in enumerate(zip(heroes, controls, strict=True))]
    return pb.GameConfig(game_id="trial", host_timescale=10, ticks_per_observation=ticks,
                         host_mode=pb.HOST_MODE_DEDICATED, game_mode=mode, hero_picks=picks)


def hero_of(state: State, player: int) -> Unit:
    """Return the player's hero as dotaclient finds it. Raises ValueError if the state lacks it."""
    for unit in state.units:
        if unit.unit_type == State.HERO and unit.player_id == player:
            return unit
    raise ValueError(f"hero {player} is not in the state at {state.dota_time}")


def mid_tower(state: State, team: int) -> Unit:
    """Return a side's outermost tower of the middle lane. Raises ValueError if the state lacks it."""
    for unit in state.units:
        if unit.unit_type == State.TOWER and unit.team_id == team and "tower1_mid" in unit.name:
            return unit
    raise ValueError(f"the tower of team {team} is not in the state at {state.dota_time}")


def check_fields(state: State, player: int) -> None:
    """Assert that a state has every field that dotaclient reads of it, with usable values."""
    def present(message: Any, kind: str) -> None:
        missing = [name for name in FIELDS[kind] if not message.HasField(name)]
        assert not missing, f"{kind} without {missing} at {state.dota_time}"

    present(state, "state")
    team = RADIANT if player < 5 else DIRE
    assert [entry.player_id for entry in state.players] == list(range(10))
    for entry in state.players:
        present(entry, "players")
    for unit in state.units:
        present(unit, "units")
        present(unit.location, "location")
        assert 0 < unit.handle < 1 << 24, "dotaclient keeps handles in float32"
        for projectile in unit.incoming_tracking_projectiles:
            present(projectile, "projectiles")
    own = hero_of(state, player)
    present(own, "own hero")
    assert own.health_max > 0 and own.mana_max > 0 and own.team_id == team
    assert [a.slot for a in own.abilities][:3] == [0, 1, 2]
    for ability in own.abilities:
        present(ability, "abilities")
    mid_tower(state, team)


def answer(state: State, *actions: Action) -> CMsgBotWorldState.Actions:
    """Return actions for a state."""
    return CMsgBotWorldState.Actions(dota_time=state.dota_time, actions=actions)


def move(player: int, x: float, y: float) -> Action:
    """Return dotaclient's move."""
    return Action(actionType=Action.DOTA_UNIT_ORDER_MOVE_DIRECTLY, player=player, actionDelay=0,
                  moveDirectly=Action.MoveToLocation(location=State.Vector(x=x, y=y, z=0)))


def attack(player: int, handle: int) -> Action:
    """Return dotaclient's attack."""
    return Action(actionType=Action.DOTA_UNIT_ORDER_ATTACK_TARGET, player=player, actionDelay=0,
                  attackTarget=Action.AttackTarget(target=handle, once=True))


Policy = Callable[[State, int], list[Action]]


class Client:
    """Client of one port."""

    def __init__(self, port: int) -> None:
        self.channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
        self.stub = dotaservice_pb2_grpc.DotaServiceStub(self.channel)

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.channel.close()

    async def observe(self, team: pb.Team = RADIANT) -> pb.Observation:
        return await self.stub.observe(pb.ObserveConfig(team_id=team), timeout=60)

    async def act(self, actions: CMsgBotWorldState.Actions, team: pb.Team = RADIANT) -> None:
        await self.stub.act(pb.Actions(actions=actions, team_id=team), timeout=60)

    async def reset(self, config: pb.GameConfig) -> pb.InitialObservation:
        return await self.stub.reset(config, timeout=60)

    async def play(self, config: pb.GameConfig, policies: dict[int, Policy], seconds: float = 600) -> pb.Status:
        """Play a game by dotaclient's loop until a status other than OK or a game time; return the last status.

        ``policies``: by player id. Checks every observation.
        """
        first = await self.reset(config)
        previous = {RADIANT: first.world_state_radiant, DIRE: first.world_state_dire}
        creeps_seen = set()
        dota_time = -1e9
        while dota_time < seconds:
            for team in (RADIANT, DIRE):
                seen = await self.observe(team)
                if seen.status != pb.OK:
                    assert not seen.HasField("world_state")
                    return seen.status
                state = seen.world_state
                assert seen.team_id == team and state.team_id == team
                assert state.dota_time > previous[team].dota_time
                dota_time = state.dota_time
                actions = []
                for player, policy in policies.items():
                    if (player < 5) == (team == RADIANT):
                        check_fields(state, player)
                        if state.dota_time > 0 and player not in creeps_seen:
                            assert any(u.unit_type == State.LANE_CREEP and u.team_id == team for u in state.units)
                            creeps_seen.add(player)
                        actions += policy(state, player)
                await self.act(answer(state, *actions), team)
                previous[team] = state
        return pb.OK

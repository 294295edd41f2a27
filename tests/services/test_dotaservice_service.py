"""dotaservice's protocol over gRPC, with a client that reads and acts as dotaclient does: whole games of both sides."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from five.protos.valve import dotaservice_pb2 as pb
from five.run.config import RunConfig
from five.services.dotaservice.server import DotaServiceServer, start_server
from five.services.dotaservice.service import MAX_ACTIONS
from tests.services.dotaservice_client import (
    DIRE,
    NEVERMORE,
    RADIANT,
    SNIPER,
    Action,
    Client,
    CMsgBotWorldState,
    State,
    answer,
    attack,
    check_fields,
    game_config,
    hero_of,
    move,
)

GAME = {"start_seconds": -5.0, "neutrals": False, "runes": False, "roshan": False, "max_game_seconds": 600.0}
TOWERS = {RADIANT: (-1544.0, -1408.0), DIRE: (524.0, 652.0)}  # of the middle lane; the enemy's is in fog


@asynccontextmanager
async def serving(game: dict[str, Any] | None = None, **settings: Any) -> AsyncIterator[DotaServiceServer]:
    """Start a server on free ports."""
    server = await start_server(RunConfig.model_validate({
        "game": GAME | (game or {}), "services": {"dotaservice": {"port": 0, "lockstep_seconds": 0.2} | settings}}))
    try:
        yield server
    finally:
        await server.stop(0)


def dive(state: State, player: int) -> list[Action]:
    """Walk under the enemy's tower and stay there, which loses the game in two deaths."""
    return [move(player, *TOWERS[DIRE if player < 5 else RADIANT])]


def fight(state: State, player: int) -> list[Action]:
    """Learn, and attack what is near in the middle lane, as dotaclient's policy may."""
    own = hero_of(state, player)
    raze = Action(actionType=Action.DOTA_UNIT_ORDER_TRAIN_ABILITY, player=player,
                  trainAbility=Action.TrainAbility(ability="nevermore_shadowraze1"))
    enemies = [u for u in state.units if u.team_id == 5 - own.team_id and u.is_alive and not u.is_invulnerable
               and u.unit_type in (State.HERO, State.LANE_CREEP)]
    for unit in sorted(enemies, key=lambda u: (u.location.x - own.location.x) ** 2
                       + (u.location.y - own.location.y) ** 2):
        return [raze, attack(player, unit.handle)]
    return [raze, move(player, -300.0 if player < 5 else 300.0, -300.0 if player < 5 else 300.0)]


@pytest.mark.parametrize(("winner", "policies"), [
    (pb.RADIANT_WIN, {0: fight, 5: dive}), (pb.DIRE_WIN, {0: dive, 5: fight})])
async def test_a_client_plays_a_whole_game_of_both_sides(winner: pb.Status, policies: dict[int, Any]) -> None:
    async with serving() as server, Client(server.ports[0]) as client:
        assert await client.play(game_config(), policies) == winner
        for team in (RADIANT, DIRE):
            after = await client.observe(team)
            assert after.status == winner and after.team_id == team and not after.HasField("world_state")
        await client.act(CMsgBotWorldState.Actions(actions=[move(0, 0, 0)]))
        first = await client.reset(game_config())
        assert first.status == pb.OK and first.world_state_dire.dota_time == pytest.approx(-5, abs=0.01)
        assert (await client.observe()).status == pb.OK, "another game begins"


async def test_the_first_observation_names_ten_players() -> None:
    async with serving() as server, Client(server.ports[0]) as client:
        first = await client.reset(game_config())
    assert [(p.id, p.team_id, p.is_bot, p.hero) for p in first.players] == [
        (player, RADIANT if player < 5 else DIRE, True, NEVERMORE if player % 5 == 0 else SNIPER)
        for player in range(10)]
    for state, team, player in ((first.world_state_radiant, RADIANT, 0), (first.world_state_dire, DIRE, 5)):
        assert state.team_id == team and state.game_state == 4
        check_fields(state, player)
        assert [(p.player_id, p.team_id, p.hero_id, p.is_alive) for p in state.players] == [
            (p.id, p.team_id, p.hero, True) for p in first.players]
        heroes = [u.player_id for u in state.units if u.unit_type == State.HERO]
        assert heroes == [player], "idle picks have no unit, and the enemy is in fog"


async def test_dead_heroes_stay_in_their_sides_state() -> None:
    async with serving() as server, Client(server.ports[0]) as client:
        await client.reset(game_config())
        for _ in range(600):
            state = (await client.observe(DIRE)).world_state
            if not (own := hero_of(state, 5)).is_alive:
                assert own.health == 0 and own.health_max > 0 and own.mana_max > 0
                break
            await client.act(answer(state, *dive(state, 5)), DIRE)
        else:
            raise AssertionError("the hero never died")
        seen = (await client.observe(RADIANT)).world_state
        assert 5 not in [u.player_id for u in seen.units if u.unit_type == State.HERO], "a dead enemy is not seen"


async def test_five_heroes_of_a_side_play() -> None:
    heroes = (11, 35, 26, 5, 18, 47, 2, 43, 7, 72)
    async with serving({"max_game_seconds": 10.0}) as server, Client(server.ports[0]) as client:
        def walk(state: State, player: int) -> list[Action]:
            assert len([u for u in state.units if u.unit_type == State.HERO and u.player_id // 5 == player // 5]) == 5
            return [move(player, 0.0, 0.0)]

        everyone = game_config(pb.DOTA_GAMEMODE_AP, heroes, [pb.HERO_CONTROL_MODE_CONTROLLED] * 10)
        status = await client.play(everyone, dict.fromkeys(range(10), walk))
    assert status == pb.RESOURCE_EXHAUSTED, "the time limit has no winner"


async def test_bots_play_for_a_client_that_only_watches() -> None:
    async with serving({"max_game_seconds": 60.0}) as server, Client(server.ports[0]) as client:
        watched = game_config(controls=[pb.HERO_CONTROL_MODE_DEFAULT, *[pb.HERO_CONTROL_MODE_IDLE] * 4] * 2, ticks=60)
        await client.reset(watched)
        positions = []
        while (seen := await client.observe()).status == pb.OK:
            positions.append(hero_of(seen.world_state, 0).location.x)
        assert seen.status == pb.RESOURCE_EXHAUSTED and max(positions) - min(positions) > 3000


async def test_each_game_has_a_port() -> None:
    async with serving(games=3, threads=2) as server:
        assert len(set(server.ports)) == 3

        async def play(port: int, steps: int) -> float:
            async with Client(port) as client:
                await client.reset(game_config())
                for _ in range(steps):
                    state = (await client.observe()).world_state
                    await client.act(answer(state))
                return float(state.dota_time)

        times = await asyncio.gather(*(play(port, steps) for port, steps in zip(server.ports, (2, 6, 4), strict=True)))
        assert times == pytest.approx([-4.0, -2.0, -3.0], abs=0.02)


async def refused(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    return error.value.code(), error.value.details() or ""


async def test_bad_messages_are_refused_and_end_no_game() -> None:
    async with serving() as server, Client(server.ports[0]) as client:
        code, text = await refused(client.observe())
        assert code is grpc.StatusCode.FAILED_PRECONDITION and "call reset first" in text
        await client.reset(game_config())
        code, text = await refused(client.reset(game_config(heroes=(1, *[SNIPER] * 4) * 2)))
        assert code is grpc.StatusCode.INVALID_ARGUMENT and "hero_picks[0].hero_id 1: not a hero of this server" in text
        for call in (client.stub.observe(pb.ObserveConfig()), client.stub.act(pb.Actions())):
            code, text = await refused(call)
            assert code is grpc.StatusCode.INVALID_ARGUMENT and "team_id: 2 (Radiant) or 3 (Dire) is needed" in text
        many = CMsgBotWorldState.Actions(actions=[move(0, 0, 0)] * (MAX_ACTIONS + 1))
        code, text = await refused(client.act(many))
        assert code is grpc.StatusCode.INVALID_ARGUMENT and f"at most {MAX_ACTIONS} are allowed" in text
        large = CMsgBotWorldState.Actions(extraData="x" * (2 << 20))
        assert (await refused(client.act(large)))[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
        raw = client.channel.unary_unary("/DotaService/act", request_serializer=bytes)
        assert (await refused(raw(b"\xff\xff\xff\x0a")))[0] in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN)
        assert (await client.observe()).status == pb.OK, "the game goes on"


async def test_a_client_that_disconnects_may_come_back() -> None:
    async with serving() as server:
        async with Client(server.ports[0]) as client:
            await client.reset(game_config())
            call = asyncio.create_task(client.observe())
            await asyncio.sleep(0.01)
            call.cancel()
        async with Client(server.ports[0]) as client:
            assert (await client.observe()).status == pb.OK
            await client.reset(game_config())
            assert (await client.observe()).status == pb.OK


async def test_a_deadline_loses_no_state() -> None:
    async with serving() as server, Client(server.ports[0]) as client:
        await client.reset(game_config(ticks=900))
        late = client.stub.observe(pb.ObserveConfig(team_id=RADIANT), timeout=0.001)
        assert (await refused(late))[0] is grpc.StatusCode.DEADLINE_EXCEEDED
        assert (await client.observe()).world_state.dota_time <= 55.1, "one step of 30 seconds, or two"


def resident() -> int:
    """Return the process's resident memory in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def test_memory_does_not_grow_with_games() -> None:
    async with serving() as server, Client(server.ports[0]) as client:
        async def play() -> None:
            await client.reset(game_config())
            for _ in range(3):
                state = (await client.observe()).world_state
                await client.act(answer(state, *[move(0, 0, 0)] * 50))

        for _ in range(10):
            await play()
        before = resident()
        for _ in range(40):
            await play()
        assert resident() - before < 40 << 20

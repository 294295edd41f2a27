"""The environment service over gRPC against the same games in this process."""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import numpy as np
import pytest

from dota.config import GameConfig, ObservationConfig
from dota.rewards import SIGNALS
from dota.spaces import Layout
from dota.spectator.camera import Camera
from dota.vec_game import PACKED, STATS, Controller, VecGame
from five.clients.environment import EnvironmentClient
from five.protos.v1 import env_pb2, env_pb2_grpc
from five.services.dota_env.service import EnvService
from five.services.rollout.environment import LocalEnvironment, RemoteEnvironment
from five.services.rollout.step_buffer import StepBuffer
from rapid.config import RpcConfig
from rapid.rpc.errors import CallFailed
from rapid.rpc.server import RpcServer, serve
from tests.waiting import eventually_async

GAME = GameConfig(
    mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], max_game_seconds=60, start_seconds=0, neutrals=False,
    roshan=False, runes=False, observation=ObservationConfig(
        allied_creeps=4, neutral_creeps=0, buildings=2, wards=0, couriers=0, hero_modifiers=2, unit_modifiers=0,
        pickups=0, minimap=2, nearby_map=2, passability=2))
LAYOUT = Layout(GAME)
RPC = RpcConfig(require_token=False, deadline_seconds=20, backoff_seconds=0.02, max_backoff_seconds=0.1)
SEED = 11


class Server:
    def __init__(self, **limits: Any) -> None:
        bounds = {"threads": 2, "max_games": 8, "max_streams": 4, "idle_seconds": 30.0} | limits
        self.servicer = EnvService(GAME, **bounds)
        self.rpc: RpcServer | None = None
        self.address = ""

    async def __aenter__(self) -> "Server":
        self.rpc = await serve("127.0.0.1:0", [(env_pb2_grpc.add_EnvServiceServicer_to_server, self.servicer)], RPC)
        self.address = f"127.0.0.1:{self.rpc.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        if self.rpc is not None:
            rpc, self.rpc = self.rpc, None
            await rpc.stop(0)

    def client(self, layout: str = LAYOUT.hash, epoch: int = 1, packed: bool = False) -> EnvironmentClient:
        return EnvironmentClient(self.address, RPC, 1, layout, epoch=epoch, packed=packed)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server() as s:
        yield s


@functools.cache
def snapshot(runes: bool = False) -> bytes:
    """Return the snapshot of a game of bots after 40 steps."""
    games = VecGame(GAME.model_copy(update={"runes": runes}), 1, 5, observations=False)
    games.controllers[:] = Controller.SCRIPTED
    for _ in range(40):
        games.step()
    return games.snapshot(0)


def random_actions(rng: np.random.Generator, games: int) -> np.ndarray:
    return rng.integers(0, 9, (games, 2, 1, 6)).astype(np.int16)


async def test_remote_games_equal_local_games(server: Server) -> None:
    here = VecGame(GAME, 3, SEED)
    async with server.client() as there:
        first = await there.open(3, SEED, GAME.model_dump_json(), threads=2)
        assert first.statistic_names == STATS
        rng = np.random.default_rng(0)
        for i in range(25):
            actions = random_actions(rng, 3)
            which = np.array([0, 1, 2] if i % 3 else [2, 0], np.int32)
            here.step(actions, which)
            shown = await there.step(which, actions[which])
            for name, array in here.obs.items():
                np.testing.assert_array_equal(shown.observations[name], array[which], err_msg=name)
            np.testing.assert_array_equal(shown.signals, here.signals[which])
            np.testing.assert_array_equal(shown.statistics, here.stats[which])
            np.testing.assert_array_equal(shown.game_time, here.game_time[which])
            assert shown.winners.tolist() == [0] * len(which) and shown.step_us > 0


async def test_reset_sets_controllers(server: Server) -> None:
    here = VecGame(GAME, 2, SEED)
    here.controllers[1] = (0, 1)
    here.reset([1])
    async with server.client() as there:
        await there.open(2, SEED)
        shown = await there.reset(np.array([1], np.int32), np.array([[0, 1]], np.uint8))
        np.testing.assert_array_equal(shown.observations["shared"], here.obs["shared"][[1]])
        actions = np.zeros((2, 2, 1, 6), np.int16)
        for _ in range(40):  # the random bot walks away, the other hero stays
            here.step(actions)
            shown = await there.step(np.arange(2, dtype=np.int32), actions)
        np.testing.assert_array_equal(shown.observations["shared"], here.obs["shared"])


@pytest.mark.parametrize("packed", [False, True])
async def test_rollout_sees_equal_local_and_remote_games(server: Server, packed: bool) -> None:
    remote = RemoteEnvironment(lambda: server.client(packed=packed), 3, SEED, GAME.model_dump_json(), 1)
    local = LocalEnvironment(VecGame(GAME, 3, SEED, observations="packed" if packed else True))
    everyone, controllers = np.arange(3, dtype=np.int32), np.zeros((3, 2), np.uint8)
    there, here = (StepBuffer(LAYOUT.array_specs(), 1, 3, 1, len(SIGNALS), PACKED if packed else ()).observation(0)
                   for _ in range(2))
    rng = np.random.default_rng(3)
    await remote.reset(everyone, controllers, there)
    await local.reset(everyone, controllers, here)
    for _ in range(10):
        actions = random_actions(rng, 3)
        a, b = await asyncio.gather(remote.step(actions, there), local.step(actions, here))
        for name in here:
            np.testing.assert_array_equal(there[name], here[name], err_msg=name)
        np.testing.assert_array_equal(a.signals, b.signals)
        np.testing.assert_array_equal(a.winners, b.winners)
    # Two env slots with other configurations.
    rules = [GAME.model_copy(update={"patch": "7.19"}), None, GAME.model_copy(update={"start_seconds": -20.0})]
    await remote.reset(everyone, controllers, there, rules)
    await local.reset(everyone, controllers, here, rules)
    for _ in range(10):
        actions = random_actions(rng, 3)
        a, b = await asyncio.gather(remote.step(actions, there), local.step(actions, here))
        for name in here:
            np.testing.assert_array_equal(there[name], here[name], err_msg=name)
        np.testing.assert_array_equal(a.game_time, b.game_time)
    np.testing.assert_allclose(a.game_time, [4 / 3, 4 / 3, -20 + 4 / 3], atol=0.05)
    # Without variants an env slot returns to the stream's configuration.
    await remote.reset(everyone, controllers, there)
    await local.reset(everyone, controllers, here)
    for name in here:
        np.testing.assert_array_equal(there[name], here[name], err_msg=name)
    assert remote.statistic_names == local.statistic_names
    await remote.close()
    await local.close()


@pytest.mark.parametrize("packed", [False, True])
async def test_remote_branch_equals_local_branch(server: Server, packed: bool) -> None:
    remote = RemoteEnvironment(lambda: server.client(packed=packed), 2, SEED, GAME.model_dump_json(), 1)
    local = LocalEnvironment(VecGame(GAME, 2, SEED, observations="packed" if packed else True))
    there, here = (StepBuffer(LAYOUT.array_specs(), 1, 2, 1, len(SIGNALS), PACKED if packed else ()).observation(0)
                   for _ in range(2))
    rng = np.random.default_rng(3)
    await remote.reset(np.arange(2, dtype=np.int32), np.array([[0, 0], [0, 2]], np.uint8), there)
    await local.reset(np.arange(2, dtype=np.int32), np.array([[0, 0], [0, 2]], np.uint8), here)
    lineups = await remote.branch(1, snapshot(), 7, 0.5, there), await local.branch(1, snapshot(), 7, 0.5, here)
    assert lineups[0].shape == (2, 1) and np.array_equal(lineups[0], lineups[1])
    for name in here:
        np.testing.assert_array_equal(there[name], here[name], err_msg=name)
    for _ in range(10):
        actions = random_actions(rng, 2)
        a, b = await asyncio.gather(remote.step(actions, there), local.step(actions, here))
        for name in here:
            np.testing.assert_array_equal(there[name], here[name], err_msg=name)
        np.testing.assert_array_equal(a.signals, b.signals)
        np.testing.assert_array_equal(a.game_time, b.game_time)
    np.testing.assert_allclose(a.game_time, [10 * 4 / 30, 50 * 4 / 30], atol=0.05)
    await remote.close()
    await local.close()


def _changed(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


@pytest.mark.parametrize(("make", "says"), [
    (lambda: b"", "0 bytes"),
    (lambda: _changed(snapshot(), 8), "another build"),
    (lambda: _changed(snapshot(), len(snapshot()) // 2), "checksum"),
    (lambda: snapshot() + bytes(1), "expected"),
    (lambda: snapshot(runes=True), "other settings"),
    (lambda: snapshot() * 10, "limit"),
], ids=["empty", "build", "damaged", "long", "settings", "large"])
async def test_server_that_refuses_a_snapshot_is_lost(server: Server, make: Callable[[], bytes], says: str) -> None:
    remote = RemoteEnvironment(server.client, 2, SEED, GAME.model_dump_json(), 1)
    everyone, controllers, out = np.arange(2, dtype=np.int32), np.zeros((2, 2), np.uint8), LAYOUT.allocate(2, 2)
    await remote.reset(everyone, controllers, out)
    with pytest.raises(ConnectionError, match=says):
        await remote.branch(0, make(), 7, 1.0, out)
    assert remote.server == ""
    await remote.reset(everyone, controllers, out)
    await remote.branch(0, snapshot(), 7, 1.0, out)
    await remote.close()


async def test_lost_games_are_opened_again() -> None:
    first = await Server().__aenter__()
    servers = [first]
    remote = RemoteEnvironment(lambda: servers[-1].client(), 2, SEED, "", 1)
    everyone, out = np.arange(2, dtype=np.int32), LAYOUT.allocate(2, 2)
    controllers, actions = np.zeros((2, 2), np.uint8), np.zeros((2, 2, 1, 6), np.int16)
    await remote.reset(everyone, controllers, out)
    await first.stop()
    with pytest.raises(ConnectionError):
        await remote.step(actions, out)
    with pytest.raises(ConnectionError, match="reset"):
        await remote.step(actions, out)
    async with Server() as second:
        servers.append(second)
        await remote.reset(everyone, controllers, out)
        await remote.step(actions, out)
        await remote.close()


async def test_remote_layout_mismatch_names_both_layouts(server: Server) -> None:
    async with server.client(layout="feedfacefeedface") as there:
        with pytest.raises(CallFailed, match=f"feedfacefeedface.*{LAYOUT.hash}") as failure:
            await there.open(1, 0)
        assert failure.value.code is grpc.StatusCode.FAILED_PRECONDITION


@pytest.mark.parametrize(("config", "says"), [
    ('{"heroes_per_team": 7}', "heroes_per_team"),
    ('{"no_such_key": 1}', "no_such_key"),
    ("{", "game_config"),
    (GAME.model_copy(update={"hero_pool": ["no_such_hero"]}).model_dump_json(), "no_such_hero"),
])
async def test_invalid_game_configuration_is_refused(server: Server, config: str, says: str) -> None:
    async with server.client() as there:
        with pytest.raises(CallFailed, match=says) as failure:
            await there.open(1, 0, config)
        assert failure.value.code is grpc.StatusCode.INVALID_ARGUMENT
    assert server.servicer.games == 0


def _step(places: list[int], **changes: Any) -> env_pb2.PlayRequest:
    step = env_pb2.StepGames(games=np.array(places, np.int32).tobytes(),
                             actions=np.zeros((len(places), 2, 1, 6), np.int16).tobytes())
    for name, value in changes.items():
        setattr(step, name, value)
    return env_pb2.PlayRequest(step=step)


def _reset(variant: int, *configs: str) -> env_pb2.PlayRequest:
    return env_pb2.PlayRequest(reset=env_pb2.ResetGames(
        games=np.array([0], np.int32).tobytes(), controllers=bytes(2), variants=bytes([variant]), game_configs=configs))


def _branch(game: int = 0, building_health: float = 1.0, data: bytes = b"") -> env_pb2.PlayRequest:
    return env_pb2.PlayRequest(branch=env_pb2.BranchGame(
        game=game, snapshot=data, seed=7, building_health=building_health))


CREATE = env_pb2.PlayRequest(create=env_pb2.CreateGames(games=2, layout_hash=LAYOUT.hash, epoch=1))


@pytest.mark.parametrize(("requests", "says"), [
    ([_step([0])], "the first request must create"),
    ([CREATE, CREATE], "exist already"),
    ([CREATE, _step([2])], "env slots must be 0 to 1"),
    ([CREATE, _step([-1])], "env slots must be 0 to 1"),
    ([CREATE, _step([1, 1])], "twice"),
    ([CREATE, _step([])], "at least one env slot"),
    ([CREATE, _step([0], actions=b"123")], "actions"),
    ([CREATE, _step([0], games=b"123")], "games"),
    ([CREATE, env_pb2.PlayRequest()], "an empty request"),
    ([CREATE, env_pb2.PlayRequest(reset=env_pb2.ResetGames(
        games=np.array([0], np.int32).tobytes(), controllers=bytes([0, 99])))], "99 is not a controller"),
    ([CREATE, _reset(1)], "not one of the 0 configurations"),
    ([CREATE, _reset(2, GAME.model_dump_json())], "not one of the 1 configurations"),
    ([CREATE, _reset(1, "{}x")], "game_config"),
    ([CREATE, _reset(1, '{"hero_pool": ["nobody"], "heroes_per_team": 1}')], "layout"),
    ([CREATE, _reset(1, *[GAME.model_dump_json()] * 9)], "at most 8"),
    ([_branch()], "the first request must create"),
    ([CREATE, _branch(game=2)], "env slots must be 0 to 1"),
    ([CREATE, _branch(game=-1)], "env slots must be 0 to 1"),
    ([CREATE, _branch(building_health=0.0)], "building_health 0"),
    ([CREATE, _branch(building_health=1.5)], "building_health 1.5"),
    ([CREATE, _branch(building_health=float("nan"))], "building_health nan"),
    ([CREATE, _branch(data=b"no snapshot")], "snapshot"),
    ([env_pb2.PlayRequest(create=env_pb2.CreateGames(games=0, layout_hash=LAYOUT.hash, epoch=1))], "at least one"),
])
async def test_malformed_request_ends_only_its_stream(server: Server, requests: list[Any], says: str) -> None:
    async with server.client() as other:
        await other.open(1, SEED)
        async with grpc.aio.insecure_channel(server.address) as channel:
            call = env_pb2_grpc.EnvServiceStub(channel).Play(iter(requests))
            with pytest.raises(grpc.aio.AioRpcError, match=says) as failure:
                for _ in range(len(requests)):
                    await call.read()
            assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        await other.step(np.zeros(1, np.int32), np.zeros((1, 2, 1, 6), np.int16))
    await eventually_async(lambda: server.servicer.games == 0)


async def test_games_and_streams_are_limited() -> None:
    async with Server(max_games=3, max_streams=2) as server, server.client() as a:
        await a.open(2, 0)
        async with server.client() as b:
            with pytest.raises(CallFailed, match="2 of 3 exist; raise services.dota_env.max_games") as failure:
                await b.open(2, 0)
            assert failure.value.code is grpc.StatusCode.UNAVAILABLE
        async with server.client() as b:
            with pytest.raises(CallFailed, match="at most 3 are allowed; raise services.dota_env.max_games") as failure:
                await b.open(4, 0)
            assert failure.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        async with server.client() as b, server.client() as c:
            await b.open(1, 0)
            with pytest.raises(CallFailed, match="max_streams") as failure:
                await c.open(1, 0)
            assert failure.value.code is grpc.StatusCode.UNAVAILABLE


async def test_rollout_waits_for_a_full_server() -> None:
    """It retries, at any of the servers, and does not end."""
    async with Server(max_games=3) as server, server.client() as other:
        await other.open(2, 0)
        remote = RemoteEnvironment(server.client, 2, SEED, GAME.model_dump_json(), 1)
        everyone, controllers, out = np.arange(2, dtype=np.int32), np.zeros((2, 2), np.uint8), LAYOUT.allocate(2, 2)
        with pytest.raises(ConnectionError, match="2 of 3 exist"):
            await remote.reset(everyone, controllers, out)
        await other.close()
        await eventually_async(lambda: server.servicer.games == 0)
        await remote.reset(everyone, controllers, out)
        await remote.close()


async def test_silent_stream_ends_with_its_games() -> None:
    async with Server(idle_seconds=0.1) as server, server.client() as there:
        await there.open(2, 0)
        await eventually_async(lambda: server.servicer.games == 0)
        with pytest.raises(CallFailed, match="silent"):
            await there.step(np.zeros(1, np.int32), np.zeros((1, 2, 1, 6), np.int16))


async def test_watched_games_are_equal_local_and_remote(server: Server) -> None:
    remote = RemoteEnvironment(server.client, 3, SEED, GAME.model_dump_json(), 1)
    local = LocalEnvironment(VecGame(GAME, 3, SEED))
    everyone, controllers = np.arange(3, dtype=np.int32), np.zeros((3, 2), np.uint8)
    there, here = LAYOUT.allocate(3, 2), LAYOUT.allocate(3, 2)
    made: dict[str, list[bytes]] = {"remote": [], "local": []}
    cameras = {name: Camera(GAME, {}, lambda chunk, facts, to=to: to.append(chunk))  # type: ignore[misc]
               for name, to in made.items()}
    rng = np.random.default_rng(3)
    await remote.reset(everyone, controllers, there)
    await local.reset(everyone, controllers, here)
    assert not remote.capture(1, cameras["remote"]) and remote.slot_units(1, 0) is None
    remote.watch([1])
    local.watch([1])
    for _ in range(12):
        actions = random_actions(rng, 3)
        await asyncio.gather(remote.step(actions, there), local.step(actions, here))
        assert remote.capture(1, cameras["remote"]) and local.capture(1, cameras["local"])
        assert not remote.capture(2, cameras["remote"])
        for side in (0, 1):
            units = local.slot_units(1, side)
            assert units is not None and units.max() >= 0
            np.testing.assert_array_equal(units, remote.slot_units(1, side))
    for camera in cameras.values():
        camera.end()
    assert made["remote"] == made["local"] != []
    await remote.close()
    await local.close()


async def test_watched_games_are_limited(server: Server) -> None:
    async with server.client() as there:
        await there.open(2, SEED)
        with pytest.raises(CallFailed, match="env slots must be 0 to 1"):
            await there.step(np.arange(2, dtype=np.int32), np.zeros((2, 2, 1, 6), np.int16), [5])

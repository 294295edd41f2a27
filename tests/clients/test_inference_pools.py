"""Two pools of inference servers behind one client."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from five.clients import inference_pools as inference_pools_module
from five.clients.inference import NEWEST, REPLAY, RESET, RESTORE, WANT_STATE, InferenceClient, ModelInfo
from five.clients.inference_pools import InferencePools, PastServers, inference_pools, owner_server
from rapid.config import RpcConfig
from rapid.rpc.errors import CallFailed, StatusCode
from rapid.rpc.resolve import ServerAddress
from tests.clients.name_service import Names
from tests.clients.test_inference import ADD_INFERENCE, LAYOUT, CountingInference
from tests.rapid.conftest import SECRET, at

PAST_ADDRESSES = ["10.0.0.1:50051", "10.0.0.2:50051"]
SESSIONS = np.array([11, 21, 12, 22], np.int64)
POLICIES = np.array([NEWEST, 3, NEWEST, 4], np.int64)


class Pools:
    def __init__(self, newest: CountingInference, past: CountingInference, client: InferencePools, server: Any) -> None:
        self.newest, self.past, self.client, self.past_server = newest, past, client, server

    async def act(self, flags: Any, **more: Any) -> Any:
        return await self.client.act(SESSIONS, POLICIES, np.broadcast_to(np.asarray(flags, np.uint8), 4),
                                     {"x": np.zeros((4, 3), np.float16)}, **more)


@pytest.fixture
async def pools(start_server: Any, rpc_config: RpcConfig) -> AsyncIterator[Pools]:
    newest, past = CountingInference(9), CountingInference(3)
    one, two = await start_server(ADD_INFERENCE, newest), await start_server(ADD_INFERENCE, past)
    async with inference_pools(connecting(rpc_config), [at(one)], [at(two)]) as client:
        yield Pools(newest, past, client, two)


def connecting(rpc_config: RpcConfig) -> Any:
    config = rpc_config.model_copy(update={"reconnect_seconds": 1.5})
    return lambda addresses, name: InferenceClient(addresses, config, LAYOUT, SECRET, name=name, epoch=1)


async def test_sessions_use_their_versions_server(pools: Pools) -> None:
    result = await pools.act(RESET)
    assert (sorted(pools.newest.counts), sorted(pools.past.counts)) == ([11, 12], [21, 22])
    assert result.versions.tolist() == [9, 3, 9, 3] and result.unknown_sessions.size == 0
    assert result.actions.shape == (4, 2, 6) and result.values[:, 0].tolist() == [1, 1, 1, 1]
    pools.past.counts[22] = 7
    result = await pools.act([0, WANT_STATE, WANT_STATE, WANT_STATE])
    assert result.values[:, 0].tolist() == [2, 2, 2, 8]
    assert result.states["count"].tolist() == [1, 1, 7]
    result = await pools.act([WANT_STATE, 0, 0, 0])
    assert result.states["count"].tolist() == [2]
    assert not any(len(rows) for rows in (await pools.act(0)).states.values())
    assert (await pools.client.model()).newest_version == 9


async def test_states_and_replayed_actions_follow_their_sessions(pools: Pools) -> None:
    replayed = np.arange(3 * 2 * 6, dtype=np.int16).reshape(3, 2, 6)
    result = await pools.act([RESTORE, RESTORE | REPLAY, RESET | REPLAY, RESTORE | REPLAY],
                             states={"count": np.array([10, 20, 40], np.float32)}, replayed_actions=replayed)
    assert result.values[:, 0].tolist() == [11, 21, 1, 41]
    assert pools.newest.requests[0].replayed_actions == replayed[1:2].tobytes()
    assert pools.past.requests[0].replayed_actions == replayed[[0, 2]].tobytes()


async def test_loss_of_one_pool_makes_stepped_sessions_unknown(pools: Pools) -> None:
    await pools.act(RESET)
    pools.past.counts.pop(21)
    result = await pools.act([0, 0, RESET, 0])
    # 11 was stepped and 22 was not; 12 has RESET and is repeated.
    assert sorted(result.unknown_sessions.tolist()) == [11, 21]
    assert result.actions.size == 0


async def test_request_for_one_pool_ignores_the_other(pools: Pools) -> None:
    await pools.act(RESET)
    await pools.past_server.stop(0)
    some = np.array([0, 2])
    result = await pools.client.act(SESSIONS[some], POLICIES[some], np.zeros(2, np.uint8),
                                    {"x": np.zeros((2, 3), np.float16)})
    assert result.values[:, 0].tolist() == [2, 2]
    with pytest.raises(CallFailed):
        await pools.act(RESET)


async def test_a_pool_that_does_not_respond_is_noticed(pools: Pools) -> None:
    assert await pools.client.responds()
    await pools.past_server.stop(0)
    assert not await pools.client.responds()


def test_rendezvous_hashing_is_stable() -> None:
    servers = [f"10.0.0.{i}:50051" for i in range(8)]
    before = {v: owner_server(v, servers) for v in range(4000)}
    assert before == {v: owner_server(v, servers[::-1]) for v in range(4000)}
    held = [list(before.values()).count(server) for server in servers]
    assert 400 < min(held) and max(held) < 600
    after = {v: owner_server(v, servers[:3] + servers[4:]) for v in range(4000)}
    assert all(after[v] == before[v] for v in range(4000) if before[v] != servers[3])
    assert servers[3] not in after.values()


async def test_past_versions_use_their_own_servers(start_server: Any, rpc_config: RpcConfig) -> None:
    served = [CountingInference(9), CountingInference(1), CountingInference(2)]
    newest, *others = [await start_server(ADD_INFERENCE, one) for one in served]
    addresses = [at(server) for server in others]
    async with inference_pools(connecting(rpc_config), [at(newest)], addresses) as client:
        # Ports differ by run, and with them the owners of versions: take three versions of each owner.
        of_each = [[v for v in range(1000) if owner_server(v, addresses) == one][:3] for one in addresses]
        versions = np.array([NEWEST, *of_each[0], *of_each[1], NEWEST], np.int64)
        sessions = np.arange(8)
        result = await client.act(sessions, versions, np.full(8, RESET | WANT_STATE, np.uint8),
                                  {"x": np.zeros((8, 3), np.float16)})
        expected = [9 if v == NEWEST else 1 + addresses.index(owner_server(int(v), addresses)) for v in versions]
        assert result.versions.tolist() == expected and len(set(expected)) == 3
        # A lost server: its versions move to the other, and repeated requests go there.
        await others[0].stop(0)
        with pytest.raises(CallFailed):
            await client.act(sessions, versions, np.full(8, RESET, np.uint8), {"x": np.zeros((8, 3), np.float16)})
        result = await client.act(sessions, versions, np.full(8, RESET, np.uint8), {"x": np.zeros((8, 3), np.float16)})
        assert result.versions.tolist() == [9 if v == NEWEST else 2 for v in versions]


async def test_lost_past_server_is_left_soon(start_server: Any, rpc_config: RpcConfig, monkeypatch: pytest.MonkeyPatch
                                             ) -> None:
    """A client of one server would wait for it for rpc.reconnect_seconds, and all games of its group with it."""
    monkeypatch.setattr(inference_pools_module, "MOVE_SECONDS", 0.2)
    config = rpc_config.model_copy(update={"reconnect_seconds": 600.0})
    past = await start_server(ADD_INFERENCE, CountingInference(1))
    addresses = [at(past), "127.0.0.1:1"]
    lost = next(v for v in range(1000) if owner_server(v, addresses) == addresses[1])

    def connect(addresses: Sequence[str], name: str) -> InferenceClient:
        return InferenceClient(addresses, config, LAYOUT, SECRET, name=name, epoch=1)

    async with inference_pools(connect, ["127.0.0.1:1"], addresses) as client:
        request = (np.array([1], np.int64), np.array([lost]), np.array([RESET], np.uint8),
                   {"x": np.zeros((1, 3), np.float16)})
        async with asyncio.timeout(60):
            with pytest.raises(CallFailed):
                await client.act(*request)
            assert (await client.act(*request)).versions.tolist() == [1]


async def test_single_server_gets_one_request(start_server: Any, rpc_config: RpcConfig) -> None:
    served = CountingInference(9)
    server = await start_server(ADD_INFERENCE, served)
    async with inference_pools(connecting(rpc_config), [at(server)], []) as client:
        await client.act(SESSIONS, POLICIES, np.full(4, RESET, np.uint8), {"x": np.zeros((4, 3), np.float16)})
        assert len(served.requests) == 1
        assert await client.want(1) and not await client.want(7)  # it reports 0 and 1 as resident


async def test_wanted_version_is_requested_from_its_owner(pools: Pools) -> None:
    assert await pools.client.want(1)
    await pools.past_server.stop(0)
    assert not await pools.client.want(1)


async def test_new_servers_are_found_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["10.0.0.1:50051"]
    gate = asyncio.Event()
    gate.set()

    async def look_up(addresses: Any, previous: Any) -> list[ServerAddress]:
        await gate.wait()
        return [ServerAddress(name) for name in names]

    monkeypatch.setattr(inference_pools_module, "resolve_servers", look_up)
    monkeypatch.setattr(inference_pools_module, "REFRESH_SECONDS", 0.0)
    servers = PastServers(["inference:50051"], lambda target: None)  # type: ignore[arg-type, return-value]
    assert await servers.resolve() == 1 and servers.owner(3) == names[0]
    gate.clear()
    names.append("10.0.0.2:50051")
    assert await servers.resolve() == 1  # the resolution is in progress
    gate.set()
    await asyncio.sleep(0.01)
    assert await servers.resolve() == 2
    assert {servers.owner(v) for v in range(50)} == set(names)
    await servers.close()


async def test_servers_stay_while_their_name_is_unresolved(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference_pools_module, "REFRESH_SECONDS", 0.0)
    servers = PastServers(["five-inference:50051", "127.0.0.9:50051"],
                          lambda target: None)  # type: ignore[arg-type, return-value]

    async def owners() -> set[str]:
        await servers.resolve()
        if servers._refreshing is not None:
            await servers._refreshing
        return {servers.owner(version) for version in range(200)}

    assert await owners() == {"five-inference:50051", "127.0.0.9:50051"}, "dialling it reports the error"
    names.addresses = ["10.0.0.1", "10.0.0.2"]
    resolved = {"10.0.0.1:50051", "10.0.0.2:50051", "127.0.0.9:50051"}
    assert await owners() == resolved
    names.addresses = []
    assert await owners() == await owners() == resolved
    names.addresses = ["10.0.0.2"]
    assert await owners() == {"10.0.0.2:50051", "127.0.0.9:50051"}
    await servers.close()


class PastServer:
    """Client of a server that responds while its address is not in ``dead``, and has every version."""

    dead: ClassVar[set[str]] = set()

    def __init__(self, target: ServerAddress) -> None:
        self._address = target.address

    async def model(self, wanted: Sequence[int] = ()) -> ModelInfo:
        if self._address in self.dead:
            raise CallFailed(StatusCode.UNAVAILABLE, self._address, "GetModel", "no server responds")
        return ModelInfo("run", 9, LAYOUT, "schema", tuple(wanted), 1)

    async def close(self) -> None:
        pass


@pytest.fixture
def past_servers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Two servers, of which the first does not respond; lost ones are asked again at once."""
    monkeypatch.setattr(inference_pools_module, "REFRESH_SECONDS", 0.0)
    monkeypatch.setattr(inference_pools_module, "AWAY_SECONDS", 0.0)
    monkeypatch.setattr(PastServer, "dead", {PAST_ADDRESSES[0]})
    return PastServers(PAST_ADDRESSES, PastServer)  # type: ignore[arg-type]


async def test_lost_server_is_skipped_until_it_responds(past_servers: PastServers) -> None:
    async def owners() -> set[str]:
        await past_servers.resolve()
        if past_servers._refreshing is not None:
            await past_servers._refreshing
        return {past_servers.owner(version) for version in range(50)}

    assert await owners() == set(PAST_ADDRESSES)
    past_servers.mark_lost(PAST_ADDRESSES[0])
    assert await owners() == await owners() == {PAST_ADDRESSES[1]}
    PastServer.dead.clear()
    assert await owners() == set(PAST_ADDRESSES)
    await past_servers.close()


async def test_wanted_version_leaves_a_lost_server(past_servers: PastServers) -> None:
    client = InferencePools(PastServer(ServerAddress("newest")), past_servers)  # type: ignore[arg-type]
    version = next(v for v in range(100) if owner_server(v, PAST_ADDRESSES) == PAST_ADDRESSES[0])
    assert not await client.want(version)
    assert await client.want(version), "the next call asks the other server"
    await client.close()


async def test_request_survives_the_removal_of_its_server(pools: Pools) -> None:
    """The names are resolved again while the request begins."""
    await pools.client._past.resolve()

    async def remove() -> None:
        pools.client._past._servers = {"127.0.0.1:1": ServerAddress("127.0.0.1:1")}

    removing = asyncio.create_task(remove())
    result = await pools.act(RESET)
    assert removing.done() and result.versions.tolist() == [9, 3, 9, 3]


async def test_unused_stream_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Client:
        def __init__(self, target: ServerAddress) -> None:
            self.target, self.closed = target.address, False

        async def close(self) -> None:
            self.closed = True

    monkeypatch.setattr(inference_pools_module, "REFRESH_SECONDS", 0.0)
    servers: Any = PastServers(["10.0.0.1:50051", "10.0.0.2:50051"], Client)  # type: ignore[arg-type]
    assert await servers.resolve() == 2
    left, asked = servers.client("10.0.0.1:50051"), servers.client("10.0.0.2:50051")
    for _ in range(2):
        assert not left.closed
        for server in servers._last_used:
            servers._last_used[server] -= 0.6 * inference_pools_module.IDLE_SECONDS
        assert servers.client("10.0.0.2:50051") is asked
        await servers.resolve()
        await asyncio.sleep(0.01)
    assert left.closed and not asked.closed
    assert servers.client("10.0.0.1:50051") is not left
    await servers.close()

"""Names with many servers: streams spread over all of them, and follow changes."""


import numpy as np
import pytest

from five.clients.environment import EnvironmentClient
from five.clients.inference import RESET, RESTORE, InferenceClient
from rapid.config import RpcConfig, TlsConfig
from rapid.rpc.access import Audience
from rapid.rpc.channel import channel_options
from rapid.rpc.resolve import ServerAddress, resolve_servers
from rapid.rpc.server import RpcServer, serve
from tests.clients.name_service import Names
from tests.clients.test_environment import ADD_ENV, CountingGames
from tests.clients.test_environment import LAYOUT as GAMES_LAYOUT
from tests.clients.test_inference import ADD_INFERENCE, LAYOUT, CountingInference, step
from tests.rapid.conftest import SECRET, known_callers


async def test_name_resolves_to_all_servers_in_order(names: Names) -> None:
    names.addresses = ["10.0.0.9", "10.0.0.10", "10.0.0.9"]
    found = [ServerAddress("10.0.0.10:50051", "five-inference"), ServerAddress("10.0.0.9:50051", "five-inference")]
    assert await resolve_servers(["five-inference:50051"]) == found
    assert await resolve_servers(["10.0.0.1:1", "five-inference:50051"]) == [ServerAddress("10.0.0.1:1"), *found]
    names.addresses = ["fd00::2", "10.0.0.9", "fd00::1"]
    assert [t.address for t in await resolve_servers(["five-inference:1"])] == ["[fd00::1]:1", "[fd00::2]:1"]


@pytest.mark.parametrize("address", ["127.0.0.1:5", "localhost:5", "[::1]:5", "unix:/run/x.sock", "dns:///five:5",
                                     "five-inference:50051", "five-inference"])
async def test_literal_and_unresolvable_addresses_stay(names: Names, address: str) -> None:
    assert await resolve_servers([address]) == [ServerAddress(address)]


async def test_unresolvable_name_keeps_its_servers(names: Names) -> None:
    names.addresses = ["10.0.0.1"]
    addresses = ["five-inference:1", "five-inference:2", "127.0.0.1:1"]
    previous = await resolve_servers(addresses)
    names.addresses = []
    assert await resolve_servers(addresses, previous) == previous
    assert await resolve_servers(addresses[1:], previous) == previous[1:]
    names.addresses = ["10.0.0.2"]
    assert [t.address for t in await resolve_servers(addresses, previous)] == ["10.0.0.2:1", "10.0.0.2:2",
                                                                               "127.0.0.1:1"]


def test_certificate_is_checked_against_the_name() -> None:
    def expected(tls: TlsConfig, name: str) -> object:
        return dict(channel_options(RpcConfig(tls=tls), name)).get("grpc.ssl_target_name_override")

    assert expected(TlsConfig(), "five-inference") == "five-inference"
    assert expected(TlsConfig(server_name="configured"), "five-inference") == "configured"
    assert expected(TlsConfig(), "") is None


class Servers:
    """Inference servers at one port of several loopback addresses, like pods behind a headless Service."""

    def __init__(self, config: RpcConfig) -> None:
        self._config = config
        self._port = 0
        self.started: dict[str, RpcServer] = {}
        self.policies: dict[str, CountingInference] = {}

    async def start(self, host: str) -> None:
        self.policies[host] = CountingInference(len(self.policies))
        server = await serve(f"{host}:{self._port}", [(ADD_INFERENCE, self.policies[host])], self._config,
                             known_callers(Audience.INFERENCE))
        self._port, self.started[host] = server.port, server

    @property
    def address(self) -> str:
        return f"five-inference:{self._port}"

    async def stop(self) -> None:
        for server in self.started.values():
            await server.stop(0)


async def test_streams_spread_over_the_servers_of_a_name(names: Names, rpc_config: RpcConfig) -> None:
    servers = Servers(rpc_config)
    names.addresses = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    for host in names.addresses:
        await servers.start(host)
    clients = [InferenceClient([servers.address], rpc_config, LAYOUT, SECRET, first=i, epoch=1) for i in range(6)]
    for i, client in enumerate(clients):
        assert (await step(client, [i], RESET)).versions.tolist() == [i % 3]
    assert [len(policy.counts) for policy in servers.policies.values()] == [2, 2, 2]
    # One server is lost: only its streams move to the others.
    await servers.started["127.0.0.2"].stop(0)
    names.addresses.remove("127.0.0.2")
    assert (await step(clients[0], [0])).values[0, 0] == 2
    assert (await step(clients[1], [1])).unknown_sessions.tolist() == [1]
    assert (await step(clients[1], [1], RESET)).versions[0] in (0, 2)
    for client in clients:
        await client.close()
    await servers.stop()


async def test_expired_stream_moves_to_a_new_server(names: Names, rpc_config: RpcConfig) -> None:
    config = rpc_config.model_copy(update={"stream_max_seconds": 0.001})
    servers = Servers(config)
    names.addresses = ["127.0.0.1"]
    await servers.start("127.0.0.1")
    moving = InferenceClient([servers.address], config, LAYOUT, SECRET, first=1, moves=True, epoch=1)
    staying = InferenceClient([servers.address], config, LAYOUT, SECRET, first=1, epoch=1)
    for client, session in ((moving, 1), (staying, 2)):
        await step(client, [session], RESET)
        assert (await step(client, [session])).values[0, 0] == 2 and client.connections == 1
    await servers.start("127.0.0.2")
    names.addresses = ["127.0.0.1", "127.0.0.2"]
    # Its states are on the old server and are rebuilt as after a loss. The stream does not move meanwhile.
    assert (await step(moving, [1])).unknown_sessions.tolist() == [1]
    names.addresses = ["127.0.0.1"]
    assert (await step(moving, [1], RESTORE, states={"count": np.array([2], np.float32)})).versions.tolist() == [1]
    assert (await step(staying, [2])).values[0, 0] == 3 and staying.connections == 1
    for client in (moving, staying):
        await client.close()
    await servers.stop()


async def test_stream_stays_while_its_name_is_unresolved(names: Names, rpc_config: RpcConfig) -> None:
    config = rpc_config.model_copy(update={"stream_max_seconds": 0.001})
    servers = Servers(config)
    names.addresses = ["127.0.0.1"]
    await servers.start("127.0.0.1")
    client = InferenceClient([servers.address], config, LAYOUT, SECRET, moves=True, epoch=1)
    await step(client, [1], RESET)
    names.addresses = []
    assert (await step(client, [1])).values[0, 0] == 2 and client.connections == 1
    await client.close()
    await servers.stop()


async def test_stream_moves_can_be_disabled(names: Names, rpc_config: RpcConfig) -> None:
    config = rpc_config.model_copy(update={"stream_max_seconds": 0})
    servers = Servers(config)
    names.addresses = ["127.0.0.1"]
    await servers.start("127.0.0.1")
    client = InferenceClient([servers.address], config, LAYOUT, SECRET, first=1, moves=True, epoch=1)
    await step(client, [1], RESET)
    await servers.start("127.0.0.2")
    names.addresses = ["127.0.0.1", "127.0.0.2"]
    assert (await step(client, [1])).values[0, 0] == 2 and client.connections == 1
    await client.close()
    await servers.stop()


async def test_games_open_on_any_server_of_a_name(names: Names, rpc_config: RpcConfig) -> None:
    server = await serve("127.0.0.3:0", [(ADD_ENV, CountingGames())], rpc_config,
                         known_callers(Audience.DOTA_ENV))
    names.addresses = ["127.0.0.3"]
    async with EnvironmentClient(f"five-inference:{server.port}", rpc_config, 2, GAMES_LAYOUT, SECRET,
                                 epoch=1) as games:
        assert (await games.open(4, seed=1)).observations["count"].shape == (4, 2)
    await server.stop(0)

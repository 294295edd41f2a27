"""The forward pass of a GPU behind the batcher gives the CPU's results."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from five.agent.compute import apply_compute_config
from five.agent.config import ComputeConfig
from five.agent.model.policy import Policy
from five.agent.model.recurrent_state import state_specs
from five.clients import wire
from five.clients.inference import (
    GREEDY,
    NEWEST,
    REPLAY,
    RESET,
    RESTORE,
    WANT_POLICY_DEBUG,
    WANT_STATE,
    InferenceClient,
)
from five.protos.v1 import inference_pb2_grpc
from five.services.inference import device as device_module
from five.services.inference.batcher import Batcher, BatcherOptions
from five.services.inference.device import DeviceForward, forward_on
from five.services.inference.forward import HostForward, VersionRows
from five.services.inference.graphs import CannotCapture, Graphs
from five.services.inference.loading import PolicyLoader
from five.services.inference.models import Models, ResidentVersion
from five.services.inference.requests import Reply, Request
from five.services.inference.service import InferenceService
from five.services.inference.sessions import SessionTable
from rapid.config import RpcConfig
from rapid.rpc.server import serve
from tests.agent.model_cases import SMALL, layout, random_arrays

LAYOUT = layout(5)
SPECS = state_specs(LAYOUT, SMALL)
DTYPES = {name: dtype for name, (_, dtype) in LAYOUT.array_specs().items()}
CUDA = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
apply_compute_config(ComputeConfig())
DEVICES = [torch.device("cpu"), pytest.param(torch.device("cuda"), marks=CUDA)]


class Stored:
    """In-memory store of versions with distinct parameters."""

    def __init__(self) -> None:
        self.versions = {0: self._made(0), 1: self._made(1)}

    @staticmethod
    def _made(seed: int) -> dict[str, Any]:
        torch.manual_seed(seed)
        return {name: tensor.numpy().copy() for name, tensor in Policy(LAYOUT, SMALL).state_dict().items()}

    def publish(self, version: int) -> None:
        self.versions[version] = self._made(version)

    def head(self) -> int:
        return max(self.versions)

    def digests(self, versions: Any) -> dict[int, str]:
        return dict.fromkeys(versions, "")

    def fetch(self, version: int) -> tuple[dict[str, Any], dict[str, Any]]:
        return self.versions[version], {"layout": LAYOUT.hash}


class Server:
    """Batcher with these versions: on the host if ``device`` is None, otherwise as on a GPU."""

    def __init__(self, stored: Stored, device: torch.device | None, graphed: bool = True, broken: bool = False) -> None:
        there = device or torch.device("cpu")
        loader = PolicyLoader(LAYOUT, SMALL, there)
        self.models = Models(stored, loader, past_bytes=1 << 30, poll_seconds=60)
        self.table = SessionTable(SPECS, there, 1000, 60.0)

        def graphs() -> Graphs:
            if broken and there.type == "cpu":
                raise CannotCapture("RuntimeError: operation not permitted when stream is capturing")
            # An operation that is not dense makes the host wait, which a capture does not allow.
            return Graphs(loader.create() if broken else loader.create_dense(), LAYOUT.array_specs(), SPECS, 16,
                          there, 1)

        forward = HostForward(self.table, 0) if device is None else DeviceForward(
            self.table, there, 0, DTYPES, graphs if graphed else None)
        self.batcher = Batcher(self.models, self.table, BatcherOptions(max_batch=16, queue_delay_seconds=0.0),
                               forward=forward)
        self.models.refresh()
        self.batcher.start()

    def ask(self, sessions: list[int], seed: int, flags: int | list[int] = 0, policy: int | list[int] = NEWEST,
            packed: bool = False, **more: Any) -> Reply:
        n = len(sessions)
        arrays: dict[str, Any] = random_arrays(LAYOUT, n, seed=seed)
        if packed and self.batcher.takes_packed:
            arrays |= {name: wire.pack(arrays[name]) for name in ("shared", "private")}
        return self.batcher.submit(Request(
            sessions, np.broadcast_to(np.array(policy, np.int64), n).copy(),
            np.broadcast_to(np.array(flags, np.uint8), n).copy(), arrays, **more)).result(60)

    def close(self) -> None:
        self.batcher.close()
        self.models.close()


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> torch.device:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def stored() -> Stored:
    return Stored()


@pytest.fixture(params=[True, False], ids=["graphs", "kernel by kernel"])
def servers(request: pytest.FixtureRequest, device: torch.device, stored: Stored) -> Iterator[tuple[Server, Server]]:
    made = Server(stored, None), Server(stored, device, request.param)
    yield made
    for server in made:
        server.close()


def require_same(one: Reply, other: Reply, drawn: bool = False) -> None:
    """Compare results, except those that depend on sampling if ``drawn``."""
    assert one.versions.tolist() == other.versions.tolist() and one.unknown == other.unknown
    np.testing.assert_allclose(other.values, one.values, atol=1e-4)
    for name in ("states", "auxiliary"):
        ours, theirs = getattr(one, name), getattr(other, name)
        assert ours.keys() == theirs.keys()
        for key in ours:
            if not (drawn and key == "target_embedding"):
                np.testing.assert_allclose(theirs[key], ours[key], atol=1e-4)
    assert one.policy_debug.keys() == other.policy_debug.keys()
    assert one.actions.shape == other.actions.shape and other.actions.dtype == np.int16
    if not drawn:
        assert np.array_equal(one.actions, other.actions)
        np.testing.assert_allclose(other.log_probabilities, one.log_probabilities, atol=1e-4)
        for key, shown in one.policy_debug.items():
            np.testing.assert_allclose(other.policy_debug[key], shown, atol=1e-2)


def test_greedy_games_equal_those_of_the_cpu(servers: tuple[Server, Server]) -> None:
    for step in range(4):
        flags = GREEDY | (RESET if step == 0 else 0) | (WANT_STATE if step % 2 else 0)
        replies = [server.ask([7, 3, 5], step, [flags, flags | WANT_POLICY_DEBUG, flags], packed=step > 1)
                   for server in servers]
        require_same(*replies)
    assert replies[0].states and replies[0].policy_debug


def test_policy_debug_equals_that_of_the_cpu(servers: tuple[Server, Server]) -> None:
    """Each session takes one step, because sampled actions change the next. The third batch has one version."""
    for step, batch in enumerate(([1, 2, 3, 4, 5], [6, 7], [8])):
        versions = [NEWEST, 0, 1, 0, NEWEST][:len(batch)]
        replies = [server.ask(batch, step, RESET | WANT_STATE | WANT_POLICY_DEBUG, versions) for server in servers]
        require_same(*replies, drawn=True)
        shown = replies[1].policy_debug["choice"].astype(np.float32)
        chosen = np.take_along_axis(shown, replies[1].actions[..., :1].astype(int), -1)
        assert (chosen > 0).all() and (replies[1].log_probabilities <= np.log(chosen[..., 0]) + 1e-2).all()


def test_new_version_plays_from_the_next_batch(servers: tuple[Server, Server], stored: Stored) -> None:
    before = [server.ask([1], 0, RESET) for server in servers]
    stored.publish(2)
    for server in servers:
        server.models.refresh()
    after = [server.ask([1], 0, RESET) for server in servers]
    require_same(*before, drawn=True)
    require_same(*after, drawn=True)
    assert after[1].versions.tolist() == [2]
    assert not np.allclose(before[1].values, after[1].values)


def test_returned_state_restores_the_session_elsewhere(servers: tuple[Server, Server]) -> None:
    host, there = servers
    there.ask([1, 2], 0, RESET)
    reply = there.ask([1, 2], 1, WANT_STATE)
    given = np.zeros((2, LAYOUT.heroes, 6), np.int16)
    flags = RESTORE | REPLAY | WANT_STATE
    replies = [server.ask([8, 9], 1, flags, states=reply.states, replayed=given) for server in (host, there)]
    require_same(*replies)
    assert (replies[1].actions[..., 0] == 0).all()
    np.testing.assert_allclose(replies[1].states["h"], reply.states["h"])
    np.testing.assert_allclose(replies[1].values, reply.values, atol=1e-4)


def test_failed_capture_is_logged_once_and_batches_still_run(
        device: torch.device, stored: Stored, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        server = Server(stored, device, broken=True)
        assert server.ask([1], 0, RESET).versions.tolist() == [1]
        server.ask([1], 1)
    server.close()
    said = [record.getMessage() for record in caplog.records if "CUDA graphs" in record.getMessage()]
    assert len(said) == 1 and "capturing" in said[0] and "compute.cuda_graphs=false" in said[0]


def test_threads_receive_their_own_results(device: torch.device, stored: Stored) -> None:
    """Requests are staged on the submitting threads while batches run."""
    server, host = Server(stored, device), Server(stored, None)
    expected = {i: host.ask([i], i, RESET | GREEDY) for i in range(24)}
    wrong: list[int] = []

    def play(i: int) -> None:
        for _ in range(5):
            reply = server.ask([i], i, RESET | GREEDY, packed=i % 2 == 0)
            if not np.allclose(reply.values, expected[i].values, atol=1e-4):
                wrong.append(i)

    threads = [threading.Thread(target=play, args=(i,)) for i in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    server.close()
    host.close()
    assert wrong == []


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_host_waits_only_for_the_results(stored: Stored) -> None:
    """PyTorch raises at any synchronisation: a new game, a later step, two versions in a batch, states and debug
    outputs."""
    device = torch.device("cuda")
    loader = PolicyLoader(LAYOUT, SMALL, device)
    versions = []
    for number in (0, 1):
        policy = loader.create()
        loader.load(policy, stored.versions[number], {})
        versions.append(ResidentVersion(number, "", policy, 1.0))
    table = SessionTable(SPECS, device, 100, 60.0)
    forward = DeviceForward(table, device, 0, DTYPES, lambda: Graphs(
        loader.create_dense(), LAYOUT.array_specs(), SPECS, 16, device, 1))
    before = torch.cuda.current_stream()
    forward.prepare(lambda: None)
    want = np.array([True, False, True, False, True])
    parts = [(0, np.array([0, 2, 4])), (1, np.array([1, 3]))]

    def step() -> list[Any]:
        requests = [Request([1, 2, 3], np.zeros(3, np.int64), np.zeros(3, np.uint8), random_arrays(LAYOUT, 3)),
                    Request([4, 5], np.zeros(2, np.int64), np.zeros(2, np.uint8), random_arrays(LAYOUT, 2))]
        for request in requests:
            request.observations = {**request.observations, "shared": wire.pack(request.observations["shared"])}
            forward.stage(request)
        slots = table.find([1, 2, 3, 4, 5])
        table.open([1, 2, 3, 4, 5], slots)
        batch = forward.join(requests)
        return [forward.launch(versions[number], batch, VersionRows.of(rows, slots, want, want, False, None))
                for number, rows in parts]

    try:
        for results in step():
            results()
        torch.cuda.set_sync_debug_mode("error")
        launched = step()
        torch.cuda.set_sync_debug_mode("default")
        assert [results()["values"].shape for results in launched] == [(3, LAYOUT.heroes), (2, LAYOUT.heroes)]
    finally:
        torch.cuda.set_sync_debug_mode("default")
        torch.cuda.set_stream(before)


def test_graphs_run_the_sampled_batches_that_fit(device: torch.device, stored: Stored) -> None:
    """Larger batches, greedy ones and those with given actions run kernel by kernel."""
    runs: list[int] = []

    class Recording(Graphs):
        def run(self, count: int) -> Any:
            runs.append(count)
            return super().run(count)

    loader, table = PolicyLoader(LAYOUT, SMALL, device), SessionTable(SPECS, device, 100, 60.0)
    forward = DeviceForward(table, device, 0, DTYPES, lambda: Recording(
        loader.create_dense(), LAYOUT.array_specs(), SPECS, 2, device, 1))
    forward.prepare(lambda: None)
    policy = loader.create()
    loader.load(policy, stored.versions[0], {})
    served = ResidentVersion(0, "", policy, 1.0)

    def launch(rows: int, greedy: bool = False, replayed: Any = None) -> None:
        sessions = list(range(rows))
        slots = table.find(sessions)
        table.open(sessions, slots)
        request = Request(sessions, np.zeros(rows, np.int64), np.zeros(rows, np.uint8), random_arrays(LAYOUT, rows))
        forward.stage(request)
        none = np.zeros(rows, np.bool_)
        part = VersionRows.of(None, slots, none, none, greedy, replayed)
        assert forward.launch(served, forward.join([request]), part)()["values"].shape == (rows, LAYOUT.heroes)

    for rows in (1, 2, 3):
        launch(rows)
    launch(1, greedy=True)
    launch(1, replayed=np.zeros((1, LAYOUT.heroes, 6), np.int16))
    assert runs == [1, 2] and forward.packed


def test_cpu_evaluates_arrays_as_they_arrive() -> None:
    table = SessionTable(SPECS, torch.device("cpu"), 100, 60.0)
    forward = forward_on(torch.device("cpu"), table, 0, LAYOUT.array_specs(), SPECS, 16, None)
    assert isinstance(forward, HostForward) and not forward.packed


def test_gpu_server_gets_graphs_with_their_own_random_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither can be created without a CUDA device, so only their arguments are recorded."""
    monkeypatch.setattr(device_module, "DeviceForward", lambda *arguments: arguments)
    monkeypatch.setattr(device_module, "Graphs", lambda *arguments: arguments)
    cuda, table, policy = torch.device("cuda"), SessionTable(SPECS, torch.device("cpu"), 100, 60.0), object()
    specs = LAYOUT.array_specs()
    made: Any = forward_on(cuda, table, 5, specs, SPECS, 16, lambda: policy)
    *arguments, create = made
    assert arguments == [table, cuda, 5, DTYPES]
    *arguments, seed = create()
    assert arguments == [policy, specs, SPECS, 16, cuda]
    assert seed != 5, "graphs and single passes would sample the same actions"
    made = forward_on(cuda, table, 5, specs, SPECS, 16, None)
    assert made[-1] is None


async def test_through_the_service(device: torch.device, stored: Stored) -> None:
    """Sparse observations go to the device as received; malformed ones are refused."""
    server, host = Server(stored, device), Server(stored, None)
    servicer = InferenceService("test", "schema", LAYOUT.hash, LAYOUT.array_specs(), SPECS, LAYOUT.heroes,
                                server.models, server.batcher, epoch=1, read_ahead=1 << 20)
    rpc = RpcConfig(require_token=False)
    running = await serve("127.0.0.1:0", [(inference_pb2_grpc.add_InferenceServiceServicer_to_server, servicer)], rpc)
    client = InferenceClient([f"127.0.0.1:{running.port}"], rpc, LAYOUT.hash, sparse=("shared", "private"), epoch=1)
    try:
        for step in range(2):
            flags = GREEDY | WANT_STATE | (RESET if step == 0 else 0)
            got = await client.act(np.array([4, 5]), np.full(2, NEWEST), np.full(2, flags, np.uint8),
                                   random_arrays(LAYOUT, 2, seed=step))
            here = host.ask([4, 5], step, flags)
            assert np.array_equal(got.actions, here.actions)
            np.testing.assert_allclose(got.values, here.values, atol=1e-4)
            np.testing.assert_allclose(got.states["c"], here.states["c"], atol=1e-4)
    finally:
        await client.close()
        await running.stop(0)
        await asyncio.to_thread(server.close)
        await asyncio.to_thread(host.close)

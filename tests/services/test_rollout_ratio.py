"""Real game, policy and server: the optimizer receives what was played."""

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from dota.config import GameConfig, ObservationConfig, RewardConfig
from dota.rewards import SIGNALS
from dota.spaces import Layout
from dota.vec_game import VecGame
from five.agent.config import LearnerConfig, ModelConfig
from five.agent.model.policy import Policy
from five.agent.model.recurrent_state import state_specs
from five.agent.schedules import Hyperparameters
from five.clients.inference import InferenceClient
from five.protos.v1 import inference_pb2_grpc
from five.services.inference.batcher import Batcher, BatcherOptions
from five.services.inference.forward import HostForward
from five.services.inference.loading import PolicyLoader
from five.services.inference.models import Models
from five.services.inference.service import InferenceService
from five.services.inference.sessions import SessionTable
from five.services.rollout.env_slots import EnvSlots
from five.services.rollout.environment import LocalEnvironment
from five.services.rollout.game_group import GameGroup, ring_capacity
from five.services.rollout.group_dependencies import GroupDependencies
from five.services.rollout.matchmaking import Matchmaker
from five.services.rollout.segment_builder import ScheduleValues, SegmentBuilder
from five.services.rollout.step_buffer import StepBuffer
from rapid.rpc.server import serve
from tests.agent.plain_samples import split_segment
from tests.services.inference_server import QUICK
from tests.services.test_rollout import Opponents, SegmentSink

GAME = GameConfig(
    mode="1v1_mid", heroes_per_team=2, hero_pool=["nevermore", "sniper"], max_game_seconds=8, start_seconds=-2,
    neutrals=False, roshan=False, runes=False, observation=ObservationConfig(
        allied_creeps=4, neutral_creeps=0, buildings=2, wards=0, couriers=0, hero_modifiers=2, unit_modifiers=0,
        pickups=0, minimap=2, nearby_map=4, passability=2))
LAYOUT = Layout(GAME)
MODEL = ModelConfig(
    lstm=24, lstm_input=24, key=8, unit_hidden=12, unit=12, set_hidden=8, set=8, unit_embedding=4,
    animation_embedding=4, modifier_embedding=4, ability_embedding=4, item_embedding=4, pickup_embedding=4,
    build_embedding=4, area_embedding=4, conv_filters=4, auxiliary_hidden=8)
UNROLL, SAMPLES, STEPS = 8, 2, 90
LEARNING = LearnerConfig(lstm_unroll_length=UNROLL, samples_per_segment=SAMPLES)
SPECS = state_specs(LAYOUT, MODEL)


class Stored:
    """A store with one version, of a policy whose heads are not near uniform."""

    def __init__(self) -> None:
        torch.manual_seed(5)
        self.policy = Policy(LAYOUT, MODEL).eval()
        with torch.no_grad():
            for parameter in self.policy.heads.parameters():
                parameter.mul_(8)
        self.tensors = {name: tensor.numpy().copy() for name, tensor in self.policy.state_dict().items()}

    def head(self) -> int:
        return 0

    def digests(self, versions: Sequence[int]) -> dict[int, str]:
        return dict.fromkeys(versions, "")

    def fetch(self, version: int) -> tuple[dict[str, Any], dict[str, Any]]:
        return self.tensors, {"layout": LAYOUT.hash}


class Server:
    def __init__(self, stored: Stored, seed: int) -> None:
        device = torch.device("cpu")
        self.models = Models(stored, PolicyLoader(LAYOUT, MODEL, device), past_bytes=1, poll_seconds=60)
        table = SessionTable(SPECS, device, 100, 60.0)
        self.batcher = Batcher(self.models, table, BatcherOptions(), forward=HostForward(table, seed))
        self.servicer = InferenceService("test", "schema", LAYOUT.hash, LAYOUT.array_specs(), SPECS, LAYOUT.heroes,
                                         self.models, self.batcher, epoch=1, read_ahead=1 << 20)

    async def start(self) -> str:
        self.models.refresh()
        self.batcher.start()
        add = inference_pb2_grpc.add_InferenceServiceServicer_to_server
        self.rpc = await serve("127.0.0.1:0", [(add, self.servicer)], QUICK)
        return f"127.0.0.1:{self.rpc.port}"

    async def stop(self) -> None:
        await self.rpc.stop(0)
        await asyncio.to_thread(self.batcher.close)


class ServerRestartGate(SegmentSink):
    """Gate of a number of steps that stops a server in between, and the sink of its segments."""

    is_paused = False

    def __init__(self, server: Server) -> None:
        self.segments = []
        self.left = STEPS
        self.server = server

    @property
    def is_stopping(self) -> bool:
        return self.left <= 0

    async def wait_until_active(self) -> None:
        raise AssertionError("it is never closed")

    async def wait_for_capacity(self) -> None:
        self.left -= 1
        if self.left == STEPS - 21:
            await self.server.stop()


async def test_learner_reproduces_behaviour_outputs() -> None:
    """The probability ratio of age-0 data is 1, also after a server was lost within a sample."""
    torch.set_num_threads(1)
    stored = Stored()
    servers = [Server(stored, 1), Server(stored, 2)]
    addresses = [await server.start() for server in servers]
    sink, rng = ServerRestartGate(servers[0]), np.random.default_rng(0)
    buffer = StepBuffer(LAYOUT.array_specs(), ring_capacity(UNROLL, SAMPLES), 3, LAYOUT.heroes, len(SIGNALS))
    matchmaker = Matchmaker(Opponents(), ["scripted"], rng)
    matchmaker.start()
    client = InferenceClient(addresses, QUICK, LAYOUT.hash, sparse=("shared", "private"), epoch=1)
    games = VecGame(GAME, 3, 4)
    environment = LocalEnvironment(games)
    group = GameGroup(
        GroupDependencies(environment, client, matchmaker, sink, sink,  # type: ignore[arg-type]
                          lambda version, std: ScheduleValues(0.5, 20.0, 1.0),
                          lambda version: Hyperparameters(0.0, 0.0, 0.5, 20.0)),
        buffer, EnvSlots(3, UNROLL, SAMPLES, SPECS, rng),
        SegmentBuilder(LAYOUT, LEARNING, RewardConfig(), buffer, 4 / 30, games.building_slots()))
    try:
        await asyncio.wait_for(group.play(), 60)
    finally:
        await matchmaker.close()
        await client.close()
        await servers[1].stop()
    assert group.progress.recoveries >= 1 and group.progress.games == 3

    checked = 0
    for segment in sink.segments:
        for sample in split_segment(segment.arrays, segment.samples):
            def tensor(array: Any, time: bool = True) -> torch.Tensor:
                return torch.from_numpy(array[:, None] if time else array[None])

            observations = {name: tensor(sample[name]) for name in LAYOUT.array_specs()}
            state = {name: tensor(sample[f"state/{name}"], False) for name in SPECS}
            with torch.no_grad():
                again = stored.policy.unroll(observations, tensor(sample["actions"]), state, tensor(sample["resets"]))
            counts = sample["mask"] > 0
            np.testing.assert_allclose(again.logp[:, 0].numpy()[counts], sample["behaviour_logp"][counts], atol=2e-4)
            np.testing.assert_allclose(again.values[:, 0].numpy()[counts], sample["behaviour_values"][counts],
                                       atol=2e-4)
            checked += int(counts.sum())
    assert checked > 3 * 2 * 2 * (STEPS - 2 * UNROLL * SAMPLES)
    spread = np.concatenate([s.arrays["behaviour_logp"][s.arrays["mask"] > 0] for s in sink.segments])
    assert spread.std() > 0.3  # the probabilities differ enough for a mix-up to show

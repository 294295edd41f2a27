"""The rollout service: plays games and sends their segments to the optimizers."""

import asyncio
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from dota import packing
from dota.rewards import SIGNALS
from dota.spaces import Layout
from dota.vec_game import PACKED, STATS, VecGame
from five.agent.model.recurrent_state import state_specs
from five.clients.environment import EnvironmentClient
from five.clients.experience import ExperienceClient
from five.clients.inference import InferenceClient
from five.clients.inference_pools import InferencePools, inference_pools
from five.clients.opponents import OpponentsClient
from five.run.config import RunConfig
from five.run.effective import overlay
from five.run.load import load
from five.services.rollout.bot_games import BotGames
from five.services.rollout.env_slots import EnvSlots
from five.services.rollout.environment import Environment, LocalEnvironment, RemoteEnvironment, connect_in_turn
from five.services.rollout.game_group import GameGroup, ring_capacity
from five.services.rollout.game_log import GameLog
from five.services.rollout.group_dependencies import GroupDependencies
from five.services.rollout.live_broadcast import LiveBroadcast
from five.services.rollout.matchmaking import Matchmaker
from five.services.rollout.metrics import RolloutMeter
from five.services.rollout.middle_games import SnapshotRing
from five.services.rollout.optimizer_assignment import OptimizerAssignment
from five.services.rollout.past_opponent import PastOpponent
from five.services.rollout.rollout_service import RolloutService
from five.services.rollout.run_control import RunControl
from five.services.rollout.segment_builder import SegmentBuilder
from five.services.rollout.sender import SPARSE, Sender, delta_encoded_arrays
from five.services.rollout.step_buffer import StepBuffer
from rapid import codec
from rapid.live_source import LiveSource
from rapid.service import Service, start
from rapid.store.live_channel import LiveChannel
from rapid.store.ordinals import Ordinals
from rapid.store.series import Series


class RolloutBuilder:
    """Builds the parts of one rollout process from its configuration."""

    def __init__(self, service: Service[RunConfig]) -> None:
        config, settings = service.config, service.config.services.rollout
        self._service = service
        self._layout = Layout(config.game)
        self._process_hash = zlib.crc32(service.id.encode())
        # A restarted process must not repeat its games. All processes share one counter, because a run may reuse a
        # pod's name.
        starts = service.state.count("rollout_starts")
        self._seeds = np.random.SeedSequence([config.seed, settings.seed, self._process_hash, starts])
        self._zstd = settings.encoding.endswith("zstd")
        # The games pack what is sent packed, here or in the environment service.
        self._sparse = SPARSE if settings.encoding.startswith("sparse") else ()

    def service(self) -> RolloutService:
        """Build the process's main loop."""
        service, config, settings = self._service, self._service.config, self._service.config.services.rollout
        control, meter, groups = RunControl(service), RolloutMeter(), list[GameGroup]()
        game_log = GameLog(Series(service.state.redis, config.name, config.store.series_records))
        sender = Sender(self._experience_client, settings.max_unsent_segments)
        assignment = OptimizerAssignment(Ordinals(service.state.redis, config.name, "rollout"), service.id,
                                         config.services.optimizer.optimizers, settings.optimizers_per_process)
        opponents = OpponentsClient([config.services.opponents.address], config.rpc, config.name, service.caller_secret,
                                    epoch=service.epoch)
        matchmaker = Matchmaker(opponents, settings.scripted_bots,
                                np.random.default_rng(self._seeds.spawn(1)[0]))
        snapshots = None if settings.environment == "remote" and not settings.snapshot_bots else SnapshotRing(
            settings.snapshots, settings.snapshot_interval_seconds, np.random.default_rng(self._seeds),
            of_bots=bool(settings.snapshot_bots))
        bot_games = None if snapshots is None or not snapshots.of_bots else BotGames(
            config.game, settings.snapshot_bots, snapshots, int(self._seeds.spawn(1)[0].generate_state(1)[0]))
        inference = [self._inference_pools(group) for group in range(settings.groups)]

        def live_games() -> list[dict[str, Any]]:
            return [game for group in groups for game in group.live_games()]

        live = LiveSource(LiveChannel(service.state.redis, config.name), f"rollout/{service.id}", live_games)

        def on_game(record: dict[str, Any]) -> None:
            game_log.put(record)
            meter.game(record)

        async def make_group(index: int, games: int) -> GameGroup:
            dependencies = GroupDependencies(
                await self._environment(index, games), inference[index], matchmaker, sender, control,
                control.schedule_values, control.hyperparameters, on_game, control.anneal.assign, snapshots,
                LiveBroadcast(live, config.name, config.game, config.rewards, STATS),
                PastOpponent(inference[index].want, settings.games_per_past_opponent or games))
            return self._group(dependencies, games)

        return RolloutService(service, control, sender, assignment, matchmaker, opponents, inference, game_log, meter,
                              live, groups, make_group, bot_games)

    def _experience_client(self, rank: int) -> ExperienceClient:
        """Build the client of one optimizer; each has a window of its own."""
        service, config = self._service, self._service.config
        return ExperienceClient(
            [config.services.optimizer.address(rank)], config.rpc, self._layout.hash, config.name,
            f"rollout-{service.id}", service.caller_secret, config.services.rollout.in_flight_segments, self._sparse,
            self._zstd, epoch=service.epoch, changes=delta_encoded_arrays(self._layout),
            period=config.learning.lstm_unroll_length)

    def _inference_pools(self, group: int) -> InferencePools:
        service, config = self._service, self._service.config

        def connect(addresses: Sequence[str], name: str) -> InferenceClient:
            return InferenceClient(addresses, config.rpc, self._layout.hash, service.caller_secret, self._sparse,
                                   self._zstd, first=self._process_hash + group, moves=True, name=name,
                                   epoch=service.epoch)

        pools = config.services.inference
        return inference_pools(connect, pools.addresses, pools.past_addresses)

    def _group(self, dependencies: GroupDependencies, games: int) -> GameGroup:
        config, layout = self._service.config, self._layout
        unroll, samples = config.learning.lstm_unroll_length, config.learning.samples_per_segment
        steps = StepBuffer(layout.array_specs(), ring_capacity(unroll, samples), games, layout.heroes, len(SIGNALS),
                           PACKED if self._sparse else ())
        # Session ids come from the system's random source, not from a seed: no two processes may share one.
        slots = EnvSlots(games, unroll, samples, state_specs(layout, config.model), np.random.default_rng())
        segments = SegmentBuilder(layout, config.learning, config.rewards, steps, config.game.timestep_seconds,
                                  VecGame(config.game, 1, observations=False).building_slots())
        return GameGroup(dependencies, steps, slots, segments)

    async def _environment(self, index: int, games: int) -> Environment:
        service, config, settings = self._service, self._service.config, self._service.config.services.rollout
        seed = int(self._seeds.spawn(1)[0].generate_state(1, np.uint64)[0])
        if settings.environment == "local":
            return LocalEnvironment(await asyncio.to_thread(
                VecGame, config.game, games, seed, settings.game_threads,
                observations="packed" if self._sparse else True))

        def connect(address: str) -> EnvironmentClient:
            return EnvironmentClient(address, config.rpc, self._layout.heroes, self._layout.hash, service.caller_secret,
                                     epoch=service.epoch, packed=bool(self._sparse))

        in_turn = connect_in_turn(connect, config.services.dota_env.addresses, self._process_hash + index)
        return RemoteEnvironment(in_turn, games, seed, config.game.model_dump_json(), settings.game_threads)


async def run(service: Service[RunConfig]) -> None:
    """Play until the process drains."""
    await RolloutBuilder(service).service().run()


def main() -> None:
    """Run the service."""
    codec.register(packing.pack_f16, packing.unpacked_f16, packing.pack_changes)
    # For inference on CPUs. Inference on a GPU must not wait for the end of a rollout's time slice.
    with start("rollout", load, overlay=overlay,
               long_time_slices=lambda config: config.services.inference.device == "cpu") as service:
        service.critical_tasks.run(run(service))


if __name__ == "__main__":
    main()

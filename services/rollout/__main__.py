"""The rollout service: plays games and sends what it saw."""

import asyncio
import logging
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import redis

from dota import packing
from dota.rewards import SIGNALS
from dota.spaces import Layout
from dota.vec_game import PACKED, STATS, VecGame
from five.agent.model.recurrent_state import state_specs
from five.agent.schedules import hyperparameters_at, load_schedules
from five.clients.environment import EnvironmentClient
from five.clients.experience import ExperienceClient
from five.clients.inference import InferenceClient
from five.clients.inference_pools import inference_pools
from five.clients.opponents import OpponentsClient
from five.run.config import RunConfig
from five.run.effective import overlay
from five.run.load import load
from five.services.rollout.anneal_assignment import AnnealAssignment
from five.services.rollout.env_slots import EnvSlots
from five.services.rollout.environment import Environment, LocalEnvironment, RemoteEnvironment
from five.services.rollout.game_group import GameGroup, GroupDependencies, ring_capacity, spread
from five.services.rollout.live_broadcast import LiveBroadcast
from five.services.rollout.matchmaking import Matchmaker
from five.services.rollout.metrics import RolloutMeter
from five.services.rollout.past_opponent import PastOpponent
from five.services.rollout.segment_builder import Rates, SegmentBuilder
from five.services.rollout.sender import SPARSE, Sender, changing, optimizers_of
from five.services.rollout.step_buffer import StepBuffer
from rapid import codec
from rapid.live_source import LiveSource
from rapid.rpc.errors import CallFailed
from rapid.service import Service, start
from rapid.store.anneal import AnnealStore
from rapid.store.live_channel import LiveChannel
from rapid.store.series import Series

log = logging.getLogger("five.services.rollout")


class Control:
    """When the groups may play, and the scheduled values they play by."""

    def __init__(self, service: Service[RunConfig]) -> None:
        self._service = service
        self._schedules = service.config.schedules
        self._anneals = AnnealStore(service.state)
        self.annealing = AnnealAssignment(service.config.game)

    @property
    def stopping(self) -> bool:
        return self._service.lifecycle.draining

    @property
    def closed(self) -> bool:
        return not self._service.lifecycle.active and not self.stopping

    async def open(self) -> None:
        await self._service.lifecycle.wait_active()

    def rates(self, version: int, reward_std: float) -> Rates:
        """Values at a version; ``reward_std`` is the one that came with it."""
        now = hyperparameters_at(self._schedules, max(version, 0))
        return Rates(now.team_spirit, now.gae_horizon_seconds, max(reward_std, 1e-6))

    async def follow(self) -> None:
        """Takes over schedules and the anneal, which are changed while the run goes on."""
        while True:
            try:
                changed = await asyncio.to_thread(self._service.state.schedules)
                if changed is not None:
                    self._schedules = load_schedules(changed)
                self.annealing.take(await asyncio.to_thread(self._anneals.read))
            except (redis.RedisError, ValueError) as error:
                log.warning("the run's schedules or its anneal cannot be read, the last ones hold: %s", error)
            await asyncio.sleep(self._service.config.services.rollout.schedule_poll_seconds)


class GameLog:
    """Finished games on their way into the run's series."""

    def __init__(self, series: Series) -> None:
        self._series = series
        self._waiting: list[dict[str, Any]] = []

    def put(self, record: dict[str, Any]) -> None:
        """Takes a record; never blocks."""
        self._waiting.append(record)

    async def write(self) -> None:
        """Writes what has come, every second."""
        while True:
            await self.flush()
            await asyncio.sleep(1.0)

    async def flush(self) -> None:
        """Writes what has come, each game once: what was sent and not answered is sent again. What cannot be written
        waits for the next time, up to a bound."""
        records, self._waiting = self._waiting, []
        if not records:
            return
        try:
            await asyncio.to_thread(self._series.extend_once, "games", [(r["game"], r) for r in records])
        except redis.RedisError as error:
            log.warning("%d games could not be recorded yet: %s", len(records), error)
            self._waiting = (records + self._waiting)[-10_000:]


class Rollout:
    """All parts of one process, wired up."""

    def __init__(self, service: Service[RunConfig]) -> None:
        config, settings = service.config, service.config.services.rollout
        self._service = service
        self._layout = Layout(config.game)
        self._epoch = service.epoch
        self.control = Control(service)
        self.games = GameLog(Series(service.state.redis, config.name))
        self.meter = RolloutMeter()
        identity = zlib.crc32(service.id.encode())
        # A process that is started again plays other games than it has played before. All share one counter: pods'
        # names are many in the life of a run, and one that has been used before must not begin again.
        count = service.state.count("rollout_starts")
        self._seeds = np.random.SeedSequence([config.seed, settings.seed, identity, count])
        # Every optimizer has a window of its own; rollouts begin at different ones.
        optimizer = config.services.optimizer
        targets = [optimizer.address(rank)
                   for rank in optimizers_of(service.id, optimizer.optimizers, settings.optimizers_each)]
        name = f"rollout-{service.id}"
        zstd, sparse = settings.encoding.endswith("zstd"), SPARSE if settings.encoding.startswith("sparse") else ()
        # What is sent packed is packed by the games themselves, here or at the environment service, and never lies here
        # in full.
        self._packed = bool(sparse)
        self.sender = Sender(
            [ExperienceClient([target], config.rpc, self._layout.hash, config.name, name, service.token,
                              settings.in_flight_segments, sparse, zstd, epoch=self._epoch,
                              changes=changing(self._layout), period=config.learning.lstm_unroll_length)
             for target in targets],
            settings.max_unsent_segments)
        self._opponents = OpponentsClient([config.services.opponents.address], config.rpc, config.name, service.token,
                                          epoch=self._epoch)
        self.matchmaker = Matchmaker(self._opponents, settings.scripted_fraction, settings.scripted_bots,
                                     np.random.default_rng(self._seeds.spawn(1)[0]))
        pools = config.services.inference

        def connect(group: int) -> Callable[[Sequence[str], str], InferenceClient]:
            return lambda addresses, name: InferenceClient(
                addresses, config.rpc, self._layout.hash, service.token, sparse, zstd, first=identity + group,
                moves=True, name=name, epoch=self._epoch)

        self._inference = [inference_pools(connect(group), pools.addresses, pools.past_addresses)
                           for group in range(settings.groups)]
        self.groups: list[GameGroup] = []
        self.live = LiveSource(LiveChannel(service.state.redis, config.name), f"rollout/{service.id}", self._live_games)

    async def run(self) -> None:
        """Plays until the service drains, then sends what is whole. Raises what ended a group."""
        service, settings = self._service, self._service.config.services.rollout
        service.stats = self.stats
        service.not_ready = self.not_ready
        service.is_idle = self.quiet
        self.sender.start()
        self.matchmaker.start(service.critical_tasks)
        helpers = [service.critical_tasks.task(name, task) for name, task in (
            ("following schedules", self.control.follow()), ("the log of games", self.games.write()),
            ("metrics", self._show()), ("live games", self.live.run()))]
        drained = asyncio.create_task(service.lifecycle.wait_drained())
        playing = asyncio.create_task(self._play())
        await asyncio.wait({drained, playing}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({playing}, timeout=2.0)
        playing.cancel()
        for task in helpers:
            task.cancel()
        await asyncio.gather(playing, *helpers, return_exceptions=True)
        left = await self.sender.drain(settings.drain_seconds if service.lifecycle.draining else 0.0)
        if left:
            log.warning("%d segments were not sent", left)
        await self.games.flush()
        await self.matchmaker.close()
        await asyncio.gather(*(group.wiring.past.close() for group in self.groups if group.wiring.past is not None))
        await asyncio.gather(*(group.wiring.environment.close() for group in self.groups),
                             *(client.close() for client in self._inference), self._opponents.close())
        drained.cancel()
        if not playing.cancelled() and playing.exception() is not None:
            raise playing.exception()  # type: ignore[misc]

    async def _play(self) -> None:
        await self._first_version()
        if self.control.stopping:
            return
        settings = self._service.config.services.rollout
        for index, games in enumerate(spread(settings.games, settings.groups)):
            self.groups.append(await self._group(index, games))
        log.info("%d games in %d groups begin", settings.games, len(self.groups))
        await asyncio.gather(*(group.play() for group in self.groups))

    async def _first_version(self) -> None:
        """Waits until there is something to play with."""
        while not self.control.stopping:
            try:
                served = await self._inference[0].model()
                if served.newest_version >= 0 and served.epoch == self._epoch:
                    return
            except CallFailed as error:
                if not error.may_retry:
                    raise
            await asyncio.sleep(0.2)

    async def _group(self, index: int, games: int) -> GameGroup:
        config = self._service.config
        learning, layout = config.learning, self._layout
        unroll, samples = learning.lstm_unroll_length, learning.samples_per_segment
        specs = state_specs(layout, config.model)
        ring = StepBuffer(layout.array_specs(), ring_capacity(unroll, samples), games, layout.heroes, len(SIGNALS),
                        PACKED if self._packed else ())
        # Session ids are random from the system, never from a seed: no two processes may ever share one.
        streams = EnvSlots(games, unroll, samples, specs, np.random.default_rng())
        segments = SegmentBuilder(layout, learning, config.rewards, ring, config.game.timestep_seconds,
                            VecGame(config.game, 1, observations=False).building_slots())
        wiring = GroupDependencies(await self._environment(index, games), self._inference[index], self.matchmaker, self.sender,
                        self.control, self.control.rates, self._ended, self.control.annealing.draw,
                        LiveBroadcast(self.live, config.name, config.game, config.rewards, STATS),
                        PastOpponent(self._inference[index].want,
                                     config.services.rollout.games_per_past_opponent or games))
        return GameGroup(wiring, ring, streams, segments, unroll, samples)

    def _live_games(self) -> list[dict[str, Any]]:
        return [game for group in self.groups if group.wiring.broadcast for game in group.wiring.broadcast.games()]

    def _ended(self, record: dict[str, Any]) -> None:
        self.games.put(record)
        self.meter.game(record)

    async def _environment(self, index: int, games: int) -> Environment:
        config, settings = self._service.config, self._service.config.services.rollout
        seed = int(self._seeds.spawn(1)[0].generate_state(1, np.uint64)[0])
        if settings.environment == "local":
            return LocalEnvironment(await asyncio.to_thread(
                VecGame, config.game, games, seed, settings.game_threads,
                observations="packed" if self._packed else True))
        targets: Sequence[str] = config.services.dota_env.addresses
        target = targets[(zlib.crc32(self._service.id.encode()) + index) % len(targets)]

        def connect() -> EnvironmentClient:
            return EnvironmentClient(target, config.rpc, self._layout.heroes, self._layout.hash, self._service.token,
                                     epoch=self._epoch, packed=self._packed)

        return RemoteEnvironment(connect, games, seed, config.game.model_dump_json(), settings.game_threads)

    async def _show(self) -> None:
        while True:
            self.meter.show([group.progress for group in self.groups], self.sender, self.matchmaker.unassigned)
            await asyncio.sleep(1.0)

    def not_ready(self) -> str:
        """Why no games are played; '' when they are, or rest because the run does."""
        if not self.groups:
            return "inference has no version to play yet"
        if self._service.lifecycle.active and not any(group.progress.team_steps for group in self.groups):
            return "the first games have not begun"
        return ""

    def stats(self) -> dict[str, Any]:
        """For the heartbeat."""
        progress = [group.progress for group in self.groups]
        servers = {group.wiring.environment.server for group in self.groups} - {""}
        return {**self.meter.recent(progress, self.sender), "environments": sorted(servers)}

    def quiet(self) -> bool:
        """Whether the run is paused, every group rests with its segments ended, and each segment was acknowledged or
        dropped."""
        # In this order: a group leaves its rest before it looks whether the run is still paused.
        paused = not self._service.lifecycle.active
        return paused and all(group.progress.idle for group in self.groups) and self.sender.unsent == 0


async def run(service: Service[RunConfig]) -> None:
    await Rollout(service).run()


def main() -> None:
    codec.register(packing.pack_f16, packing.unpacked_f16, packing.pack_changes)
    with start("rollout", load, overlay=overlay) as service:
        service.critical_tasks.run(run(service))


if __name__ == "__main__":
    main()

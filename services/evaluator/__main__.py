"""The evaluator service."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import redis

from dota import packing
from dota.config import GameConfig, evaluation_game
from dota.vec_game import STATS, VecGame
from five.clients.inference import InferenceClient
from five.clients.inference_pools import InferencePools, inference_pools
from five.protos.v1 import evaluator_pb2_grpc
from five.run.config import RunConfig
from five.run.draft_tables import DraftTableStore
from five.run.effective import overlay
from five.run.load import load
from five.services.evaluator import metrics as page
from five.services.evaluator.cameras import Cameras
from five.services.evaluator.cpu_limit import CpuLimit
from five.services.evaluator.drafting import DraftReader
from five.services.evaluator.guard_loop import GuardLoop
from five.services.evaluator.match_progress import TABLE as MATCH_GAMES
from five.services.evaluator.matches import Matches, Pairing, PairingResult
from five.services.evaluator.rating_loop import RatingLoop, number
from five.services.evaluator.recording import (
    ReplayRecorder,
    SpectatorRecordings,
    StoredRecordings,
    remove_unfinished,
    tidy,
)
from five.services.evaluator.service import PLAYERS, EvaluatorService
from rapid import codec
from rapid.live_source import LiveSource
from rapid.rpc.errors import CallFailed
from rapid.rpc.fencing_epoch import is_stale_epoch
from rapid.rpc.server import port_of, serve
from rapid.service import Service, start
from rapid.store.anneal import AnnealStore
from rapid.store.errors import Corrupt
from rapid.store.lineage import current_line_filter
from rapid.store.live_channel import LiveChannel
from rapid.store.parameters import ParameterStore
from rapid.store.series import Series

log = logging.getLogger("five.services.evaluator")
SPARSE = ("shared", "private")
Listing = Callable[[], list[dict[str, Any]]]  # games in progress
SEED_OFFSET = 7_919_000  # distinguishes the seeds from those of training games


def newest_kept(parameters: ParameterStore, every: int) -> int | None:
    """Return the newest permanently archived version outside a warm-up. It can be loaded until its rating is final."""
    if every == 0:
        return None  # no version is archived
    return next((r.version for r in parameters.newest_records(every) if r.blob and not r.warming), None)


async def is_outage(error: CallFailed, client: InferencePools) -> bool:
    """Return whether games were lost because no server responds. A version that cannot be loaded is no outage, although
    its error may be retried as well."""
    return error.may_retry and not await client.responds()


async def rate(service: Service[RunConfig], loop: RatingLoop, guard: GuardLoop, client: InferencePools,
               game: GameConfig, playing: set[Matches], folder: Path, stored: StoredRecordings, source: LiveSource,
               listings: list[Listing]) -> None:
    """Rate versions and play the pairs of an anneal's guard until the service drains.

    Matches in progress are added to ``playing``; ``folder`` and ``stored`` receive a recording of each rated version.
    ``source`` broadcasts games live; the function that lists them is appended to ``listings``.
    """
    settings = service.config.services.evaluator
    games = VecGame(game, settings.games, service.config.seed + SEED_OFFSET, settings.threads)
    lifecycle = service.lifecycle

    cpu_limit = CpuLimit(settings.cpu_share)
    cameras = Cameras(games, service.config.name, service.config.rewards, source)
    listings.append(cameras.games)

    def limit_recordings() -> None:
        tidy(folder, stored, settings.keep_replays, settings.replay_days, settings.replay_mebibytes * 2**20)

    recorder = ReplayRecorder(games.record, games.hash, folder, SpectatorRecordings(cameras, stored, folder),
                              limit_recordings)
    try:
        await asyncio.to_thread(limit_recordings)
    except (OSError, Corrupt) as error:
        log.warning("old recordings are not removed yet: %s", error)
    rng = np.random.default_rng(service.config.seed)

    def show() -> None:
        last = loop.series.last("ratings")
        if last is not None:
            page.show_rating(last.values, len(loop.ladder.references))

    show()

    def next_pairing() -> Pairing | None:
        first = guard.next_pairing() if rng.random() < settings.guard_share else None
        return first or loop.next_pairing() or guard.next_pairing()

    def on_result(result: PairingResult) -> None:
        if guard.on_result(result):
            cameras.ended(result.slot)
            page.count_guard_game("old" if result.pairing.rules is None else "new", result.score, guard.played)
            return
        recorder.ended(result.slot)
        cameras.ended(result.slot)
        if loop.on_result(result):
            page.count_game(result.pairing, result.score)
        show()

    def delay() -> float:
        # The first rating is not limited, because the user of a new run waits for it.
        return cpu_limit.delay() if loop.ladder.last_rated is not None else 0.0

    while not lifecycle.draining:
        if not await lifecycle.wait_active():
            break
        matches = Matches(games, client, games.layout.heroes, cameras)
        playing.add(matches)

        def on_start(slot: int, matches: Matches = matches) -> None:
            pairing = matches.pairing(slot)
            if pairing is not None:
                cameras.began(slot, pairing, secrets.token_hex(16))
            if pairing is not None and pairing.game and not pairing.agent.controller:
                recorder.began(slot, pairing.agent.name)

        try:
            # While the service drains no game advances: the next epoch may have another game.
            await matches.play(next_pairing, on_result, lambda: not lifecycle.active or lifecycle.draining,
                               delay, on_start)
        except CallFailed as error:
            page.DROPPED.labels("epoch" if is_stale_epoch(error) else "lost").inc(matches.in_progress)
            if await is_outage(error, client):
                loop.requeue()
            else:
                page.ABORTED.inc(loop.drop())
            recorder.drop()
            cameras.drop()
            guard.drop()
            log.warning("a round of games was lost: %s", error)
        except redis.RedisError as error:
            page.DROPPED.labels("lost").inc(matches.in_progress)
            loop.requeue()
            recorder.drop()
            cameras.drop()
            guard.drop()
            log.warning("ratings cannot be stored, games will be played again: %s", error)
        finally:
            playing.discard(matches)
        await asyncio.sleep(1.0)


async def evaluate(service: Service[RunConfig]) -> None:
    config = service.config
    settings = config.services.evaluator
    game = evaluation_game(config.game)
    codec.register(packing.pack_f16, packing.unpacked_f16, packing.pack_changes)
    layout_hash = VecGame(game, 1, 0).layout.hash

    pools = config.services.inference

    def connect(addresses: Sequence[str], name: str) -> InferenceClient:
        return InferenceClient(addresses, config.rpc, layout_hash, service.caller_secret, SPARSE, name=name,
                               epoch=service.epoch)

    def client() -> InferencePools:
        return inference_pools(connect, pools.addresses, pools.past_addresses)

    playing: set[Matches] = set()

    def newest() -> int | None:
        return newest_kept(service.parameters, config.store.archive_every)

    def is_idle() -> bool:
        """Return whether the run is paused and every game is held between two steps."""
        return (not service.lifecycle.active and all(matches.is_idle for matches in tuple(playing))
                and drafter.is_idle)

    loop = RatingLoop(config.rating, service.state,
                      Series(service.state.redis, config.name, config.store.series_records),
                      {name: PLAYERS[name] for name in config.rating.anchors}, STATS, newest,
                      lambda version: service.parameters.pin(version, "rating reference"),
                      current_line_filter(service.state.lineage(), service.parameters.head()),
                      config.seed + SEED_OFFSET)
    folder = service.folder_for("replays", settings.replays)
    remove_unfinished(folder)
    stored = StoredRecordings(service.blobs, config.name)
    drafter = DraftReader(game, client(), DraftTableStore(service.blobs, config.name), settings.draft_line_ups,
                          lambda: -1 if loop.ladder.last_rated is None else number(loop.ladder.last_rated.player))
    anneals = AnnealStore(service.state)
    guard = GuardLoop(anneals.read, anneals.pairs(), newest, game)
    servicer = EvaluatorService(config.name, game, settings.threads, newest, client, loop,
                                folder, service.epoch,
                                lambda: not service.lifecycle.active, playing, stored, config.rewards,
                                service.state.table(MATCH_GAMES))
    address = service.listen_address(port_of(settings.address))
    server = await serve(address, [(evaluator_pb2_grpc.add_EvaluatorServiceServicer_to_server, servicer)], config.rpc,
                         service.callers)
    service.announce(server.port)
    service.report_with(lambda: "", is_idle=is_idle, stats=lambda: {
        "rating version": loop.version, "games": loop.games, "guard pairs": guard.played})
    listings: list[Listing] = []
    source = LiveSource(LiveChannel(service.state.redis, config.name), f"evaluator/{service.id}",
                        lambda: [entry for games in listings for entry in games()])
    rating = service.critical_tasks.task(
        "rating", rate(service, loop, guard, client(), game, playing, folder, stored, source, listings))
    live_games = service.critical_tasks.task("live-games", source.run())
    # This task ends at once if draft tables are disabled.
    drafts = service.critical_tasks.task("drafting", drafter.run(lambda: service.lifecycle.active,
                                                        lambda: service.lifecycle.draining), may_end=True)
    drained = asyncio.create_task(service.lifecycle.wait_drained())
    done, _ = await asyncio.wait({rating, drained}, return_when=asyncio.FIRST_COMPLETED)
    await server.stop(0.5)
    rating.cancel()
    live_games.cancel()
    drafts.cancel()
    for task in done:
        task.result()


def main() -> None:
    with start("evaluator", load, overlay=overlay) as service:
        service.critical_tasks.run(evaluate(service))


if __name__ == "__main__":
    main()

"""The evaluator service."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import redis

from dota import packing
from dota.config import GameConfig, evaluation_game
from dota.spaces import Layout
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
from five.services.evaluator.matches import Matches
from five.services.evaluator.rated_games import RatedGames
from five.services.evaluator.rating_loop import RatingLoop, number
from five.services.evaluator.recording import (
    ReplayRecorder,
    SpectatorRecordings,
    StoredRecordings,
    remove_unfinished,
    tidy,
)
from five.services.evaluator.service import PLAYERS, EvaluatorService
from five.services.evaluator.uploads import UploadQueue
from rapid import codec
from rapid.lifecycle import Lifecycle
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
UPLOAD_SECONDS = 5.0  # longest wait for uploads when the process ends


def newest_archived(parameters: ParameterStore, every: int) -> int | None:
    """Return the newest permanently archived version outside a warm-up. It can be loaded until its rating is final."""
    return next((r.version for r in parameters.newest_records(every) if r.blob and not r.warming), None)


async def is_outage(error: CallFailed, client: InferencePools) -> bool:
    """Return whether games were lost because no server responds. A version that cannot be loaded is no outage, although
    its error may be retried as well."""
    return error.may_retry and not await client.responds()


async def rate(service: Service[RunConfig], loop: RatingLoop, guard: GuardLoop, client: InferencePools,
               game: GameConfig, playing: set[Matches], folder: Path, stored: StoredRecordings, uploads: UploadQueue,
               source: LiveSource, listings: list[Listing]) -> None:
    """Rate versions and play the pairs of an anneal's guard until the service drains.

    Matches in progress are added to ``playing``; ``folder`` and ``stored`` receive a recording of each rated version,
    the latter through ``uploads``. ``source`` broadcasts games live; the function that lists them is appended to
    ``listings``.
    """
    settings = service.config.services.evaluator
    games = VecGame(game, settings.games, service.config.seed + SEED_OFFSET, settings.threads)
    lifecycle = service.lifecycle
    cameras = Cameras(games, service.config.name, service.config.rewards, source)
    listings.append(cameras.games)

    def limit_recordings() -> None:
        tidy(folder, stored, settings.keep_replays, settings.replay_days, settings.replay_mebibytes * 2**20)

    try:
        await asyncio.to_thread(limit_recordings)
    except (OSError, Corrupt) as error:
        log.warning("old recordings are not removed yet: %s", error)
    recorder = ReplayRecorder(games.record, games.hash, folder, SpectatorRecordings(cameras, stored, folder),
                              limit_recordings, uploads.submit)
    rated = RatedGames(loop, guard, cameras, recorder, CpuLimit(settings.cpu_share), settings.guard_share,
                       np.random.default_rng(service.config.seed))
    rated.show_rating()
    while not lifecycle.draining:
        if not await lifecycle.wait_active():
            break
        matches = Matches(games, client, games.layout.heroes, cameras)
        playing.add(matches)
        try:
            await play_round(matches, rated, lifecycle)
        except CallFailed as error:
            page.DROPPED.labels("epoch" if is_stale_epoch(error) else "lost").inc(matches.in_progress)
            if await is_outage(error, client):
                loop.requeue()
            else:
                page.ABORTED.inc(loop.drop())
            rated.drop()
            log.warning("a round of games was lost: %s", error)
        except redis.RedisError as error:
            page.DROPPED.labels("lost").inc(matches.in_progress)
            loop.requeue()
            rated.drop()
            log.warning("ratings cannot be stored, games will be played again: %s", error)
        finally:
            playing.discard(matches)
        await asyncio.sleep(1.0)


async def play_round(matches: Matches, rated: RatedGames, lifecycle: Lifecycle) -> None:
    """Play until no game is assigned. Raise CallFailed and redis.RedisError."""
    # While the service drains no game advances: the next epoch may have another game.
    await matches.play(rated.next_pairing, rated.on_result, lambda: not lifecycle.active or lifecycle.draining,
                       rated.delay, lambda slot: rated.on_start(slot, matches.pairing(slot)))


def create_client(service: Service[RunConfig], layout_hash: str) -> InferencePools:
    """Return a client of the run's inference servers."""
    config = service.config
    pools = config.services.inference

    def connect(addresses: Sequence[str], name: str) -> InferenceClient:
        return InferenceClient(addresses, config.rpc, layout_hash, service.caller_secret, SPARSE, name=name,
                               epoch=service.epoch)

    return inference_pools(connect, pools.addresses, pools.past_addresses)


async def evaluate(service: Service[RunConfig]) -> None:
    config = service.config
    settings = config.services.evaluator
    game = evaluation_game(config.game)
    codec.register(packing.pack_f16, packing.unpacked_f16, packing.pack_changes)
    client = partial(create_client, service, Layout(game).hash)
    playing: set[Matches] = set()

    def newest() -> int | None:
        return newest_archived(service.parameters, config.store.archive_every)

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
    stored, uploads = StoredRecordings(service.blobs, config.name), UploadQueue()
    drafter = DraftReader(game, client(), DraftTableStore(service.blobs, config.name), settings.draft_line_ups,
                          lambda: -1 if loop.ladder.last_rated is None else number(loop.ladder.last_rated.player),
                          uploads)
    anneals = AnnealStore(service.state)
    guard = GuardLoop(anneals.read, anneals.pairs(), newest, game)
    servicer = EvaluatorService(config.name, game, settings.threads, newest, client, loop,
                                folder, service.epoch,
                                lambda: not service.lifecycle.active, playing, stored, config.rewards,
                                service.state.table(MATCH_GAMES), uploads)
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
        "rating", rate(service, loop, guard, client(), game, playing, folder, stored, uploads, source, listings))
    live_games = service.critical_tasks.task("live-games", source.run())
    # This task ends at once if draft tables are disabled.
    drafts = service.critical_tasks.task(
        "drafting", drafter.run(lambda: service.lifecycle.active, lambda: service.lifecycle.draining), may_end=True)
    drained = asyncio.create_task(service.lifecycle.wait_drained())
    done, _ = await asyncio.wait({rating, drained}, return_when=asyncio.FIRST_COMPLETED)
    await server.stop(0.5)
    rating.cancel()
    live_games.cancel()
    drafts.cancel()
    await asyncio.to_thread(uploads.close, min(UPLOAD_SECONDS, service.lifecycle.remaining_seconds / 2))
    for task in done:
        task.result()


def main() -> None:
    with start("evaluator", load, overlay=overlay) as service:
        service.critical_tasks.run(evaluate(service))


if __name__ == "__main__":
    main()

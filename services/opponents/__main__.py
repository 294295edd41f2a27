"""The opponents service."""

import asyncio
import logging

import redis

from five.protos.v1 import opponents_pb2_grpc
from five.run.config import RunConfig
from five.run.effective import overlay
from five.run.load import load
from five.services.opponents.metrics import show_pool
from five.services.opponents.pool import Pool
from five.services.opponents.service import OpponentService
from rapid.rpc.server import port_of, serve
from rapid.service import Service, start
from rapid.store.archive import VersionRecord
from rapid.store.lineage import current_line_filter

log = logging.getLogger("five.services.opponents")


def joins(record: VersionRecord, keep_every: int) -> bool:
    """Whether a version may join the pool: it stays in the archive, and is not part of a warm-up."""
    return record.blob is not None and record.version % keep_every == 0 and not record.warming


async def follow(service: Service[RunConfig], pool: Pool) -> None:
    """Adds archived versions to the pool as they come out, also those that came out while this service was away.

    Only what stays in the archive can be loaded for as long as a past opponent may be drawn. Versions of a warm-up are
    clones of the one before it and do not join. What a revert has left behind leaves the pool: this service starts
    again in the epoch that a revert begins.
    """
    last = -1
    keep_every = service.config.store.archive_every
    while not service.lifecycle.draining:
        try:
            ours = await asyncio.to_thread(lambda: current_line_filter(service.state.lineage(), service.parameters.head()))
            if gone := await asyncio.to_thread(pool.keep, ours):
                log.info("%d versions that were reverted have left the pool: %s", len(gone), gone[:20])
            async for _ in service.parameters.watch():
                for record in await asyncio.to_thread(list, service.parameters.records_from(last + 1)):
                    if ours(record.version) and joins(record, keep_every):
                        last = record.version
                        await asyncio.to_thread(pool.on_version, last)
                show_pool((await asyncio.to_thread(pool.league)).probabilities())
        except redis.RedisError as error:
            log.warning("the pool could not be brought up to date: %s", error)
            await asyncio.sleep(1.0)


async def serve_pool(service: Service[RunConfig]) -> None:
    config = service.config
    pool = Pool(service.state, config.league, config.seed)
    address = service.listen_address(port_of(config.services.opponents.address))
    servicer = OpponentService(config.name, pool, epoch=service.epoch)
    server = await serve(address, [(opponents_pb2_grpc.add_OpponentServiceServicer_to_server, servicer)], config.rpc,
                         service.token)
    service.announce(server.port)
    service.not_ready = lambda: ""
    following = service.critical_tasks.task("following versions", follow(service, pool))
    await service.lifecycle.wait_drained()
    following.cancel()
    await server.stop(1.0)


def main() -> None:
    with start("opponents", load, overlay=overlay) as service:
        service.critical_tasks.run(serve_pool(service))


if __name__ == "__main__":
    main()

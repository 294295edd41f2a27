"""Opponents service."""

import asyncio
import logging
from collections.abc import Iterator
from functools import partial
from itertools import islice

import redis

from five.protos.v1 import opponents_pb2_grpc
from five.run.config import RunConfig
from five.run.effective import overlay
from five.run.load import load
from five.services.opponents.metrics import show_pool
from five.services.opponents.pool import OpponentPool
from five.services.opponents.service import OpponentService
from rapid.rpc.server import port_of, serve
from rapid.service import Service, start
from rapid.store.archive import VersionRecord
from rapid.store.archive_policy import ArchivePolicy
from rapid.store.lineage import current_line_filter

log = logging.getLogger("five.services.opponents")
PAGE = 500  # version records in memory at a time


def is_eligible(record: VersionRecord, keep_every: int) -> bool:
    """Return whether a version may join the pool: it is archived permanently and not part of a warm-up."""
    return record.blob is not None and record.version % keep_every == 0 and not record.warming


def _page(records: Iterator[VersionRecord]) -> list[VersionRecord]:
    return list(islice(records, PAGE))


async def follow(service: Service[RunConfig], pool: OpponentPool) -> None:
    """Add archived versions to the pool as they are published, also those published while the service was down.

    Only permanently archived versions can be loaded for as long as they may be opponents. They leave the pool when the
    archive is thinned. Versions of a warm-up are clones and do not join. Reverted versions leave the pool, because a
    revert begins an epoch and this service restarts in it.
    """
    last = -1
    policy = ArchivePolicy.of(service.config.store)
    keep_every = service.config.store.archive_every
    while not service.lifecycle.draining:
        try:
            ours = await asyncio.to_thread(
                lambda: current_line_filter(service.state.lineage(), service.parameters.head()))
            # The pool accepts no version up to its newest one, so a restart need not read the run's whole history.
            added = (await asyncio.to_thread(pool.league)).last_added
            last = last if added is None else max(last, added)
            if reverted := await asyncio.to_thread(pool.keep, ours):
                log.info("reverted versions removed from the pool count=%d: %s", len(reverted), reverted[:20])
            async for head in service.parameters.watch():
                records = service.parameters.records_from(last + 1)
                while page := await asyncio.to_thread(_page, records):
                    for record in page:
                        if (ours(record.version) and is_eligible(record, keep_every)
                                and policy.stays(record.version, head)):
                            await asyncio.to_thread(pool.on_version, record.version)
                            last = record.version
                if thinned := await asyncio.to_thread(pool.keep, partial(policy.stays, head=head)):
                    log.info("versions that the archive drops removed from the pool count=%d: %s", len(thinned),
                             thinned[:20])
                show_pool(await asyncio.to_thread(pool.probabilities))
        except redis.RedisError as error:
            log.warning("pool update failed: %s", error)
            await asyncio.sleep(1.0)


async def serve_pool(service: Service[RunConfig]) -> None:
    config = service.config
    pool = OpponentPool(service.state, config.league, config.seed)
    address = service.listen_address(port_of(config.services.opponents.address))
    servicer = OpponentService(config.name, pool, epoch=service.epoch)
    server = await serve(address, [(opponents_pb2_grpc.add_OpponentServiceServicer_to_server, servicer)], config.rpc,
                         service.callers)
    service.announce(server.port)
    service.report_with(lambda: "")
    following = service.critical_tasks.task("version-follower", follow(service, pool))
    await service.lifecycle.wait_drained()
    following.cancel()
    await server.stop(1.0)


def main() -> None:
    with start("opponents", load, overlay=overlay) as service:
        service.critical_tasks.run(serve_pool(service))


if __name__ == "__main__":
    main()

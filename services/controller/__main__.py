"""The controller service: REST, and the transitions that nobody orders."""

import asyncio
import logging
from collections.abc import Awaitable

import redis

from five.clients.evaluator import EvaluatorClient, MatchResult
from five.run.config import RunConfig
from five.run.effective import overlay
from five.run.load import load
from five.services.controller.anneal.metrics import show_anneal
from five.services.controller.anneal.reconciler import AnnealKeeper
from five.services.controller.games.matches import Match, Matches, MatchPlayer
from five.services.controller.http.app import create_app
from five.services.controller.http.server import context_of, server
from five.services.controller.metrics_updater import keep_metrics_current
from five.services.controller.operations.backend import Limits
from five.services.controller.operations.loop import keep_advancing
from five.services.controller.operations.run_backend import RunWorld
from five.services.controller.operations.store import OperationStore
from five.services.controller.run.reconcile import PauseClock, reconcile
from five.services.controller.run.setup import set_up_run
from five.services.controller.surgery.plans import schema_of
from rapid.rpc.errors import Unavailable
from rapid.service import Service, start
from rapid.store.errors import FencedOut
from rapid.store.leases import Leases

log = logging.getLogger("five.services.controller")


async def keep_reconciling(service: Service[RunConfig]) -> None:
    """Looks at the run until the service drains."""
    leases, clock = Leases(service.state.redis, service.config.name), PauseClock()
    while not service.lifecycle.draining:
        try:
            await asyncio.to_thread(reconcile, service.state, service.parameters.head, leases.live, clock,
                                    service.config.lifecycle.quiet_seconds)
        except (redis.RedisError, Unavailable) as error:
            log.warning("the run cannot be read: %s", error)
        await asyncio.sleep(service.config.services.controller.reconcile_seconds)


async def keep_operating(service: Service[RunConfig]) -> None:
    """Advances the operation under way until the service drains."""
    settings = service.config.services.controller
    limits = Limits(settings.operations.seconds(), settings.operations.attempts)
    world = RunWorld(service.state, service.parameters, service.blobs, limits, schema_of,
                     service.config.schedules)
    await keep_advancing(OperationStore(service.state), world, settings.reconcile_seconds,
                         lambda: service.lifecycle.draining)


async def keep_annealing(service: Service[RunConfig]) -> None:
    """Advances the anneal by the newest version and its guard's verdict until the service drains."""
    keeper = AnnealKeeper(service.state, OperationStore(service.state), service.parameters.head)
    while not service.lifecycle.draining:
        try:
            show_anneal(await asyncio.to_thread(keeper.look), service.parameters.head)
        except (redis.RedisError, Unavailable, FencedOut) as error:
            log.warning("the anneal cannot be read: %s", error)
        except ValueError:
            # Whatever is wrong with the document, the controller goes on.
            log.exception("the anneal cannot be read")
        await asyncio.sleep(service.config.services.controller.reconcile_seconds)


async def keep_scaling(service: Service[RunConfig]) -> None:
    """Sets the sizes of pools in a cluster where that is configured."""
    if service.config.services.controller.autoscaler.enabled:
        from five.services.controller.autoscaler import loop

        await loop.keep_scaling(service)


async def keep_playing(service: Service[RunConfig]) -> None:
    """Has the evaluator play the matches that were asked for through REST."""
    config = service.config
    if not config.services.evaluator.enabled:
        return
    client = EvaluatorClient([config.services.evaluator.address], config.rpc, config.name, service.token)

    def play(match: Match) -> Awaitable[MatchResult]:
        asked = match.request
        return client.play_match(asked.version, asked.against, asked.games, asked.seed, asked.replay, match.id)

    try:
        await MatchPlayer(Matches(service.state), play).run(lambda: service.lifecycle.draining)
    finally:
        await client.close()


async def serve_rest(service: Service[RunConfig]) -> None:
    config = service.config
    settings = config.services.controller
    context = context_of(service)

    def not_ready() -> str:
        try:
            service.state.redis.ping()
        except redis.RedisError as error:
            return f"the run's store does not answer: {error}"
        return ""

    port = settings.port if service.arguments.port is None else service.arguments.port
    service.not_ready = not_ready
    rest = server(create_app(context, service.why_not_ready, service.vital.why_dead), settings.limits, settings.host,
                  port)
    serving = asyncio.create_task(rest.serve())
    while not rest.started and not serving.done():
        await asyncio.sleep(0.02)
    if rest.started:
        service.announce(rest.servers[0].sockets[0].getsockname()[1], settings.host)
    # Scaling and playing matches end at once where they are switched off.
    tasks = [service.vital.task(keep.__name__.replace("_", " "), keep(service),
                                may_end=keep in (keep_scaling, keep_playing))
             for keep in (keep_reconciling, keep_operating, keep_annealing, keep_metrics_current, keep_scaling,
                          keep_playing)]
    drained = asyncio.create_task(service.lifecycle.drained())
    await asyncio.wait({drained, serving}, return_when=asyncio.FIRST_COMPLETED)
    rest.should_exit = True
    for task in tasks:
        task.cancel()
    await serving


def make_run(service: Service[RunConfig]) -> None:
    """Makes the run that everybody else waits for; repeating it changes nothing."""
    set_up_run(service.state, service.file_config, "controller")


def main() -> None:
    with start("controller", load, open_run=make_run,
               ends_with_run=lambda config: not config.services.controller.stay, overlay=overlay) as service:
        service.vital.run(serve_rest(service))


if __name__ == "__main__":
    main()

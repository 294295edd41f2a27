"""The controller service: the REST API and the background loops that advance the run."""

import asyncio
import logging
from collections.abc import Awaitable

import redis

from five.clients.evaluator import EvaluatorClient, MatchResult
from five.run.config import RunConfig
from five.run.effective import overlay
from five.run.load import load
from five.services.controller.anneal.metrics import show_anneal
from five.services.controller.anneal.reconciler import AnnealReconciler
from five.services.controller.games.matches import MatchQueue, MatchRunner, RequestedMatch
from five.services.controller.http.app import create_app
from five.services.controller.http.connections import raise_file_limit
from five.services.controller.http.server import create_context, create_server
from five.services.controller.metrics_updater import keep_metrics_current
from five.services.controller.operations.backend import StepLimits
from five.services.controller.operations.loop import run_operation_loop
from five.services.controller.operations.run_backend import RunBackend
from five.services.controller.operations.store import OperationStore
from five.services.controller.run.reconcile import PauseClock, reconcile
from five.services.controller.run.setup import set_up_run
from five.services.controller.surgery.plans import model_schema
from rapid.reexec import inherited_socket
from rapid.service import Service, start
from rapid.store import functions
from rapid.store.errors import Corrupt, FencedOut
from rapid.store.event_merger import EventMerger
from rapid.store.leases import Leases

log = logging.getLogger("five.services.controller")
MERGE_SECONDS = 0.25  # between two merges of events; readers poll twice a second
REST_SOCKET = "rest"  # name under which the listening socket is passed on through a restart


async def keep_reconciling(service: Service[RunConfig]) -> None:
    """Reconcile the run's status until the service drains."""
    leases, clock = Leases(service.state.redis, service.config.name), PauseClock()
    lifecycle = service.config.lifecycle
    while not service.lifecycle.draining:
        try:
            await asyncio.to_thread(reconcile, service.state, service.parameters.head, leases.live, clock,
                                    lifecycle.pause_timeout_seconds, lifecycle.lease_seconds)
        except (redis.RedisError, ValueError, Corrupt) as error:
            # Also an acknowledgement or a lease that a service has damaged: each writes its own.
            log.warning("run state is unreadable: %s", error)
        await asyncio.sleep(service.config.services.controller.reconcile_seconds)


def merge_events(merger: EventMerger) -> None:
    """Move the other services' events into the run's log; log why that is impossible now."""
    try:
        merger.merge()
    except redis.RedisError as error:
        log.warning("events are not merged: %s", error)


async def keep_merging(service: Service[RunConfig]) -> None:
    """Move the other services' events into the run's log until the service drains."""
    merger = EventMerger(service.state.redis, service.config.name)
    while not service.lifecycle.draining:
        await asyncio.to_thread(merge_events, merger)
        await asyncio.sleep(MERGE_SECONDS)


async def keep_operating(service: Service[RunConfig]) -> None:
    """Advance the active operation until the service drains."""
    settings = service.config.services.controller
    limits = StepLimits(settings.operations.seconds(), settings.operations.attempts)
    backend = RunBackend(service.state, service.parameters, service.blobs, limits, model_schema,
                         service.config.schedules)
    await run_operation_loop(OperationStore(service.state), backend, settings.reconcile_seconds,
                             lambda: service.lifecycle.draining)


async def keep_annealing(service: Service[RunConfig]) -> None:
    """Advance the anneal by the newest version and its guard's verdict until the service drains."""
    reconciler = AnnealReconciler(service.state, OperationStore(service.state), service.parameters.head)

    def reconcile_and_show() -> None:
        show_anneal(reconciler.reconcile(), service.parameters.head)  # both read the store

    while not service.lifecycle.draining:
        try:
            await asyncio.to_thread(reconcile_and_show)
        except (redis.RedisError, FencedOut) as error:
            log.warning("anneal is unreadable: %s", error)
        except (ValueError, Corrupt):
            # An invalid or damaged document must not stop the controller.
            log.exception("anneal is unreadable")
        await asyncio.sleep(service.config.services.controller.reconcile_seconds)


async def keep_scaling(service: Service[RunConfig]) -> None:
    """Set the sizes of the pools in a cluster, if the autoscaler is enabled."""
    if service.config.services.controller.autoscaler.enabled:
        from five.services.controller.autoscaler import loop

        await loop.keep_scaling(service)


async def keep_playing(service: Service[RunConfig]) -> None:
    """Run the matches requested over REST on the evaluator."""
    config = service.config
    if not config.services.evaluator.enabled:
        return
    client = EvaluatorClient([config.services.evaluator.address], config.rpc, config.name, service.caller_secret)

    def play(match: RequestedMatch) -> Awaitable[MatchResult]:
        request = match.request
        return client.play_match(request.version, request.against, request.games, request.seed, request.replay,
                                 match.id)

    try:
        await MatchRunner(MatchQueue(service.state), play).run(lambda: service.lifecycle.draining)
    finally:
        await client.close()


async def serve_rest(service: Service[RunConfig]) -> None:
    config = service.config
    settings = config.services.controller
    context = create_context(service)

    def not_ready() -> str:
        try:
            service.state.redis.ping()
        except redis.RedisError as error:
            return f"the run's Redis does not respond: {error}"
        return ""

    port = settings.port if service.arguments.port is None else service.arguments.port
    raise_file_limit(settings.limits.connections)
    rest = create_server(create_app(context, service.why_not_ready, service.critical_tasks.failure_reason),
                         settings.limits, settings.host, port, settings.trusted_proxies)
    listening = inherited_socket(REST_SOCKET)
    serving = asyncio.create_task(rest.serve(None if listening is None else [listening]))
    while not rest.started and not serving.done():
        await asyncio.sleep(0.02)
    if rest.started:
        service.report_with(not_ready)
        listening = rest.servers[0].sockets[0]
        # The server closes its own when it ends. A refused connection would end `kubectl port-forward`.
        service.keep_listening(REST_SOCKET, listening)
        service.announce(listening.getsockname()[1], settings.host)
    # Scaling and playing matches return at once if they are disabled.
    tasks = [service.critical_tasks.task(keep.__name__.replace("_", "-"), keep(service),
                                         may_end=keep in (keep_scaling, keep_playing))
             for keep in (keep_reconciling, keep_merging, keep_operating, keep_annealing, keep_metrics_current,
                          keep_scaling, keep_playing)]
    drained = asyncio.create_task(service.lifecycle.wait_drained())
    await asyncio.wait({drained, serving}, return_when=asyncio.FIRST_COMPLETED)
    rest.should_exit = True
    for task in tasks:
        task.cancel()
    await serving
    await asyncio.to_thread(merge_events, EventMerger(service.state.redis, config.name))


def make_run(service: Service[RunConfig]) -> None:
    """Create the run that the other services wait for. Repeating it has no further effect."""
    functions.delete_old_libraries(service.state.redis, service.state.keys)
    set_up_run(service.state, service.file_config, "controller")


def main() -> None:
    with start("controller", load, open_run=make_run,
               ends_with_run=lambda config: not config.services.controller.keep_serving, overlay=overlay) as service:
        service.critical_tasks.run(serve_rest(service))


if __name__ == "__main__":
    main()

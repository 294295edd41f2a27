"""Background task that keeps the controller's metrics current."""

import asyncio
import logging

import redis

from five.run.config import RunConfig
from five.run.effective import drift
from five.services.controller import metrics
from rapid.service import Service
from rapid.store.connection import Role, connect
from rapid.store.errors import Corrupt
from rapid.store.leases import Leases
from rapid.store.state import PAUSE_HOLDS

log = logging.getLogger(__name__)
ANSWER_SECONDS = 2.0  # after that a Redis is shown as down


async def keep_metrics_current(service: Service[RunConfig]) -> None:
    """Query the run and its stores until the service drains."""
    store = service.config.store
    short_timeout = store.model_copy(update={"timeout_seconds": ANSWER_SECONDS})
    urls: dict[Role, str] = {"state": store.state_url, "params": store.params_url}
    # Separate connections, so that a slow store blocks nothing else.
    clients = {role: connect(url, short_timeout, role) for role, url in urls.items()}
    leases = Leases(service.state.redis, service.config.name)

    def update() -> None:
        metrics.show_stores(clients)
        now, record = service.state.snapshot()
        metrics.show_run(None if now is None else now.status, service.parameters.head(), leases.live())
        if record is not None:
            waiting = service.state.idle_report().waiting_for if now is not None and now.status in PAUSE_HOLDS else []
            metrics.show_record(*record.run_revision, len(drift(service.file_config, record)), len(waiting))

    while not service.lifecycle.draining:
        try:
            await asyncio.to_thread(update)
        except (redis.RedisError, ValueError, Corrupt) as error:
            log.debug("run state is unreadable: %s", error)
        await asyncio.sleep(service.config.services.controller.reconcile_seconds)

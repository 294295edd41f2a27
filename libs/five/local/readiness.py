"""Reasons why services of a local run are not ready, and how long a run's first version may take."""

import urllib.error
import urllib.request
from collections.abc import Callable

from five.run.config import RunConfig
from rapid.store.leases import Instance, Leases
from rapid.supervisor import ProcessState, Supervisor

START_SECONDS = 90.0  # time for every service to load
SLOWEST_TEAM_STEPS = 100.0  # a second and rollout process; a laptop's core plays ten times as fast
PAGE_SECONDS = 1.0
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the pages are on this machine


def first_version_seconds(config: RunConfig) -> float:
    """Return the time after which a run without a new version has a fault: loading, and playing the samples that a
    version needs at a slow machine's speed."""
    learning, buffer = config.learning, config.buffer
    learned = learning.batch_samples * learning.gradient_steps_per_iteration / buffer.sample_reuse
    samples = config.services.optimizer.optimizers * (max(buffer.minimum_samples, learning.batch_samples) + learned)
    speed = SLOWEST_TEAM_STEPS * max(config.services.rollout.processes, 1)
    return START_SECONDS + samples * learning.lstm_unroll_length / speed


def why_not_ready(supervisor: Supervisor, leases: Leases, page: Callable[[str], str] | None = None) -> list[str]:
    """Return a line for each process that cannot work: its name and the reason. ``page`` reads a readiness page.

    The reason is that the process does not run, the text of its page /readyz, or, for a process that has not joined the
    run, the last line of its log. Raises redis.RedisError.
    """
    live = leases.live()
    reasons = []
    for status in supervisor.status():
        kind, _, identity = status.name.rpartition("-")
        mine = [i for i in live if i.kind == "optimizer"] if status.name == "optimizers" else \
               [i for i in live if i.kind == kind and i.id == identity]
        if status.state not in (ProcessState.READY, ProcessState.STARTING):
            reason = f"does not run, it {status.last_end}" if status.last_end else "does not run"
        elif mine:
            reason = next(filter(None, (_page_reason(i, page or readiness) for i in mine)), "")
        elif kind in ("redis", "dota_env"):  # they hold no lease
            reason = ""
        else:
            last = supervisor.log_tail(status.name, 1).strip()
            reason = f"has not joined the run{': ' + last if last else ''}"
        if reason:
            reasons.append(f"{status.name}: {reason}")
    return reasons


def _page_reason(instance: Instance, page: Callable[[str], str]) -> str:
    return page(instance.metrics_address) if instance.metrics_address else ""


def readiness(address: str) -> str:
    """Return why the process with its pages at ``address`` (host:port) is not ready; '' if it is, or if nothing
    answers."""
    try:
        with _OPENER.open(f"http://{address}/readyz", timeout=PAGE_SECONDS):
            return ""
    except urllib.error.HTTPError as error:
        return error.read(500).decode("utf-8", "replace").strip() if error.code == 503 else ""
    except OSError:
        return ""

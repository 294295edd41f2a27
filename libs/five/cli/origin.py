"""Origin of a new run, in its folder and in its state."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict

from five.local.cluster import WHO, LocalCluster
from five.local.run_origin import RunOrigin, gpu_names, source_commit, usable_cores
from five.packed_agents.folder import PackedAgent
from five.run.config import RunConfig
from rapid.redaction import redact_url

DOCUMENT = "origin"  # of the run's state


def origin_of(config: RunConfig, preset: str | None, overrides: Sequence[str], agent: PackedAgent | None) -> RunOrigin:
    """Return the origin of a new run."""
    start = ["--from", agent.card.name] if agent is not None else []
    if agent is not None and agent.given_temperature is not None:
        start += ["--temperature", f"{agent.given_temperature:g}"]
    start += ["--preset", preset] if preset else []
    sets = [part for override in overrides for part in ("--set", redact_override(override))]
    devices = config.services.inference.device, config.services.optimizer.device
    gpus = gpu_names() if any(device.startswith("cuda") for device in devices) else ()
    return RunOrigin(shlex.join(["five", "train", *start, *sets]), source_commit(), usable_cores(), gpus,
                     *(() if agent is None else (agent.card.name, agent.card.weights_sha256)))


def redact_override(override: str) -> str:
    """Return an override without the user and password of a URL in its value."""
    key, equals, value = override.partition("=")
    return f"{key}{equals}{redact_url(value)}"


def store_origin(cluster: LocalCluster) -> None:
    """Store the origin of a run that began with a packed agent in its state, with an event."""
    origin = RunOrigin.load(cluster.folder.origin)
    if origin is not None and origin.agent and cluster.state.document(DOCUMENT) is None:
        cluster.state.set_document(DOCUMENT, asdict(origin), WHO)

"""Messages and bytes a second on every link of a cluster at full speed, and the used share of its limit.

A link's limit is that of the process at its narrow end. ``spreads`` says whether more pods of that process share the
load; a link that does not spread limits the cluster's growth.
"""

from dataclasses import dataclass

from five.capacity import inputs
from five.capacity.cluster_sizes import Cluster
from five.services.rollout.optimizer_assignment import assigned_ranks

ACTION_BYTES = 28  # of a hero: action, log-probability, value
LEASE_BYTES = 700
SERVERS_A_NODE = 8  # inference servers of a node, one a GPU; with a shared folder one of them reads each version


@dataclass(frozen=True)
class Link:
    """A link. ``used``: share of the limit of the process at the narrow end; None if that was not measured."""

    name: str
    messages: float
    bytes: float
    ends: int  # processes at the narrow end that share it
    used: float | None
    spreads: bool


def links(c: Cluster, bfloat16: bool | None = None) -> list[Link]:
    """Return all links of a cluster. ``bfloat16``: type of the published versions; None: as configured."""
    config = c.config
    if bfloat16 is None:
        bfloat16 = config.store.publish_dtype == "bfloat16"
    requests = c.played_steps / c.request_rows
    unroll = config.learning.lstm_unroll_length
    observation_bytes = c.played_steps * c.team_step_bytes
    action_bytes = c.played_steps * (c.heroes * ACTION_BYTES + c.state_bytes / unroll)
    segments = c.learned_steps / c.segment_steps
    version = c.parameter_bytes / (2 if bfloat16 else 1)
    fetches = readers(c) / c.version_seconds
    fetch = inputs.REDIS_FETCH_BF16 if bfloat16 else inputs.REDIS_FETCH_FP32
    fetch_most = fetch.value * inputs.PAPER_PARAMETERS.value / (c.parameter_bytes / 4)
    games = c.played_steps / 2 / inputs.GAME_STEPS.value
    past = games * config.league.past_opponent_share
    processes = c.rollouts + c.inference + c.optimizers + 3
    beats = processes / config.lifecycle.heartbeat_seconds
    receivers = len(assigned_ranks(0, c.rollouts, c.optimizers, config.services.rollout.optimizers_per_process))
    return [
        Link("games <-> rollout", c.played_steps / c.request_rows, observation_bytes, c.rollouts,
             c.played_steps / c.rollouts / c.rollout_max_rate, True),
        Link("rollout -> inference, observations", requests, observation_bytes, c.inference,
             max(requests / inputs.STREAM_SMALL.value, observation_bytes / inputs.STREAM_LARGE.value) / c.inference,
             True),
        Link("inference -> rollout, actions and states", requests, action_bytes, c.inference,
             action_bytes / c.inference / inputs.STREAM_LARGE.value, True),
        Link("rollout -> optimizer, segments", segments, segments * c.segment_bytes, c.optimizers,
             segments / c.optimizers * intake_seconds(c.segment_bytes), True),
        Link("streams rollout -> optimizer", c.rollouts * receivers, 0.0, c.optimizers, None, True),
        Link("optimizer <-> optimizer, gradients",
             c.optimizers * c.samples_per_second / config.learning.batch_samples if c.optimizers > 1 else 0.0,
             2 * c.parameter_bytes * c.samples_per_second / config.learning.batch_samples * c.optimizers
             if c.optimizers > 1 else 0.0, c.optimizers, None, True),
        Link("optimizer -> Redis, versions", 1 / c.version_seconds, version / c.version_seconds, 1,
             1 / c.version_seconds / fetch_most, False),
        Link("Redis -> inference, versions", fetches, fetches * version, 1, fetches / fetch_most, False),
        Link("all -> Redis, heartbeats", beats, beats * LEASE_BYTES, 1, beats * inputs.REDIS_BEAT.value, False),
        Link("rollout <-> opponents, games", games + past, (games + past) * 200, 1,
             games * inputs.ASSIGN.value + past * inputs.REPORT.value if config.league.past_opponent_share else 0.0,
             False),
    ]


def readers(c: Cluster) -> float:
    """Return the number of processes that read each version from Redis: each server, or one a node
    (``store.node_folder``)."""
    return c.inference / (SERVERS_A_NODE if c.config.store.node_folder else 1)


def intake_seconds(nbytes: float) -> float:
    """Return the processor seconds of a segment in one optimizer process, from the two measured sizes."""
    small, large = 109e3, 4.36e6
    each = (inputs.INTAKE_LARGE.value - inputs.INTAKE_SMALL.value) / (large - small)
    return nbytes / inputs.STREAM_LARGE.value + inputs.INTAKE_SMALL.value + each * (nbytes - small)


def nearest(found: list[Link]) -> Link:
    """Return the link nearest to its limit, among those with a measured limit."""
    return max(found, key=lambda link: link.used or 0.0)


def largest_inference_pool(c: Cluster, bfloat16: bool) -> int:
    """Return the number of inference servers that one Redis core can give each version before the next one is
    published."""
    fetch = inputs.REDIS_FETCH_BF16 if bfloat16 else inputs.REDIS_FETCH_FP32
    return int(fetch.value * inputs.PAPER_PARAMETERS.value / (c.parameter_bytes / 4) * c.version_seconds)

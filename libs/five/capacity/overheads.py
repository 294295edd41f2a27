"""Overheads of a cluster, except links and past versions: sidecars, publishing, checkpoints, leases."""

from dataclasses import dataclass

from five.capacity import inputs
from five.capacity.cluster_sizes import FLOAT, RERUN_PARAMETERS, Cluster

LEASE_READS = 2.0  # reads of all leases a second: the controller's reconcile loop and its metrics page
CHECKPOINT = 4.0  # times the parameters' bytes: parameters, Adam's two moments, the clip's second moments


@dataclass(frozen=True)
class Overheads:
    """Overheads of one cluster: ``sidecars`` and their cores; ``leases`` and the share of Redis' core that renewing and
    reading them takes.

    Of the first rank's background writes: ``publishing`` seconds until a version plays, which the next one waits
    for, and ``publishing_share`` of the time between versions; ``checkpoint`` seconds of one, which nothing waits
    for, and the ``versions`` it spans; ``lost`` seconds of learning that a crash costs at most.
    """

    sidecars: int
    sidecar_cores: float
    publishing: float
    publishing_share: float
    checkpoint: float
    versions: float
    lost: float
    leases: int
    leases_share: float


def overheads(c: Cluster) -> Overheads:
    """Return the overheads of a cluster that learns at full speed."""
    config = c.config
    half = config.store.publish_dtype == "bfloat16"
    publish = (inputs.PUBLISH_BF16 if half else inputs.PUBLISH_FP32).value
    publishing = publish * c.parameter_bytes / (FLOAT * RERUN_PARAMETERS)
    checkpoint = CHECKPOINT * c.parameter_bytes / inputs.BLOB_BYTES.value
    versions = checkpoint / c.version_seconds
    # A checkpoint starts with the first due version after the previous one ended; it counts once it is complete.
    between = max(config.services.optimizer.checkpoint_every_versions * c.version_seconds, checkpoint)
    leases = c.rollouts + c.inference + c.optimizers + 3
    renewing = leases / config.lifecycle.heartbeat_seconds * inputs.REDIS_BEAT.value
    reading = LEASE_READS * leases * inputs.REDIS_LEASE_READ.value
    return Overheads(c.rollouts, c.game_cores, publishing, publishing / c.version_seconds, checkpoint, versions,
                     between + publishing + checkpoint, leases, renewing + reading)

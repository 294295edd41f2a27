"""What a cluster bears beside its links and past versions: games as sidecars, the first rank's saving, leases."""

from dataclasses import dataclass

from five.capacity import figures
from five.capacity.sizes import Cluster

LOOKS = 2.0  # a second, at all leases: the controller's reconciling and its metrics page (reconcile_seconds)
CHECKPOINT = 4.0  # of the parameters' bytes: they, Adam's two moments, the clip's second moments


@dataclass(frozen=True)
class Standing:
    """``sidecars`` and the cores that they take; ``saving``: seconds that writing takes for a version, its share of
    checkpoints included, and what share of the time from version to version that is; ``leases`` kept, and the share of
    Redis' core that renewing and looking take."""

    sidecars: int
    sidecar_cores: float
    saving: float
    saving_share: float
    leases: int
    leases_share: float


def standing(c: Cluster) -> Standing:
    """Of a cluster that learns at full speed."""
    config = c.config
    # Written beside learning: the version to Redis, and now and then a checkpoint to the blob store.
    fetches = figures.REDIS_FETCH_FP32.value * figures.PAPER_PARAMETERS.value * 4  # bytes/s of one Redis core
    checkpoint = CHECKPOINT * c.parameter_bytes / figures.BLOB_BYTES.value
    saving = c.parameter_bytes / fetches + checkpoint / config.services.optimizer.checkpoint_every_versions
    leases = c.rollouts + c.inference + c.optimizers + 3
    renewing = leases / config.lifecycle.heartbeat_seconds * figures.REDIS_BEAT.value
    return Standing(c.rollouts, c.game_cores, saving, saving / c.version_seconds, leases,
                    renewing + LOOKS * leases * figures.REDIS_LOOK.value)

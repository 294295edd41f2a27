"""What an optimizer shows on its metrics page."""

from typing import Any

from five.learning.buffer import BufferStatistics
from rapid.telemetry.metrics import counter, gauge, histogram

STALENESS = histogram("optimizer", "staleness", "versions", "Age of each timestep when it is consumed, in versions.",
                      buckets=(0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64))
REUSE = gauge("optimizer", "sample_reuse", "ratio", "Samples consumed over samples received in the last five minutes.")
VERSION = gauge("optimizer", "version", "versions", "Newest version this optimizer has made.")
STEPS = counter("optimizer", "gradient_steps", "Gradient steps taken.")
SKIPPED = counter("optimizer", "skipped_steps", "Gradient steps left out because something was not finite.")
STEP_SECONDS = histogram("optimizer", "step", "seconds", "Time of one gradient step.")
WAIT_SECONDS = counter("optimizer", "waited_seconds", "Seconds without a batch to learn from.")
PUBLISH_SECONDS = histogram("optimizer", "publish", "seconds", "Time to checkpoint and publish a version.")
SEGMENTS = counter("optimizer", "received_segments", "Segments that came in, by verdict.", ("verdict",))
HERO_STEPS = counter("optimizer", "received_hero_steps", "Hero-steps taken into the buffer.")
BUFFER_SAMPLES = gauge("optimizer", "buffer", "samples", "Samples in the buffer.")
BUFFER_BYTES = gauge("optimizer", "buffer", "bytes", "Bytes in the buffer.")
DROPPED = gauge("optimizer", "dropped", "samples", "Samples that left the buffer since the start, by reason.",
                ("reason",))
LEARNING = gauge("optimizer", "learning", "count", "Means over the last version of what the learner measures.",
                 ("what",))

SHOWN = ("entropy", "approx_kl", "clip_fraction", "explained_variance", "loss", "loss_policy", "loss_value",
         "gradient_norm", "gradient_clipped_fraction", "learning_rate", "entropy_coefficient", "team_spirit",
         "gae_horizon_seconds", "reward_std")


def show_version(record: dict[str, Any]) -> None:
    """Brings the gauges to a version's record."""
    VERSION.set(record["version"])
    if record.get("reuse_recent") is not None:
        REUSE.set(record["reuse_recent"])
    for name in SHOWN:
        if name in record:
            LEARNING.labels(name).set(record[name])


def show_buffer(statistics: BufferStatistics) -> None:
    """Brings the gauges to the buffer's counts."""
    BUFFER_SAMPLES.set(statistics.samples)
    BUFFER_BYTES.set(statistics.nbytes)
    for reason, count in statistics.dropped.items():
        DROPPED.labels(str(reason)).set(count)

"""Metrics of an optimizer process."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from five.agent.config import BufferConfig
from five.agent.learning.buffer import BufferStatistics, DropReason
from rapid.telemetry.metrics import counter, gauge, histogram, set_unknown

STALENESS = histogram("optimizer", "staleness", "versions", "Age of each timestep when it is consumed: the newest "
                      "version minus the one that acted.", buckets=(0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64))
REUSE = set_unknown(gauge("optimizer", "sample_reuse", "ratio",
                          "Samples consumed over samples received in the last five minutes."))
REUSE_TARGET = set_unknown(gauge("optimizer", "sample_reuse_target", "ratio", "Sample reuse that pacing aims at."))
RECEIVED = counter("optimizer", "received_samples", "Samples added to the buffer.")
CONSUMED = counter("optimizer", "consumed_samples", "Samples used in batches; every use counts.")
SEGMENTS = counter("optimizer", "received_segments", "Segments received, by verdict: accepted, duplicate, too_old, "
                   "stale_epoch (of an earlier fencing epoch).", ("verdict",))
SENDING = gauge("optimizer", "sending", "instances", "Rollouts with an open stream of segments to this optimizer. A "
                "step needs a batch of every optimizer, so one without a sender stops all.")
HERO_STEPS = counter("optimizer", "received_hero_steps", "Hero-steps added to the buffer.")
VARIANT_HERO_STEPS = counter("optimizer", "variant_received_hero_steps", "Hero-steps added to the buffer while a "
                             "change is annealed, by the variant of the game (old: unchanged, new: changed).",
                             ("variant",))
BUFFER_SAMPLES = gauge("optimizer", "buffer", "samples", "Samples in the buffer.")
BUFFER_BYTES = gauge("optimizer", "buffer", "bytes", "Bytes in the buffer.")
BUFFER_LIMIT = set_unknown(gauge("optimizer", "buffer_capacity", "samples", "Capacity of the buffer."))
BUFFER_NEEDED = set_unknown(gauge("optimizer", "buffer_needed", "samples", "Samples below which no batch is sampled."))
BUFFER_AGE = gauge("optimizer", "buffer_age", "versions", "Age of the newest step of each buffered sample: mean, "
                   "median, p95, oldest.", ("statistic",))
DROPPED = counter("optimizer", "dropped_samples", "Samples that left the buffer or were not admitted: overwritten "
                  "used or unused, too_old, too_large, epoch (the fencing epoch ended).",
                  ("reason",))

VERSION = set_unknown(gauge("optimizer", "version", "versions", "Newest version of this optimizer."))
VERSION_TIME = set_unknown(gauge("optimizer", "version", "timestamp_seconds", "When the newest version was made or "
                                 "resumed from, in seconds since 1970."))
STEPS = counter("optimizer", "gradient_steps", "Gradient steps taken.")
SKIPPED = counter("optimizer", "skipped_steps", "Gradient steps skipped because a loss or gradient was not finite.")
STEP_SECONDS = histogram("optimizer", "step", "seconds", "Duration of one gradient step.")
WAIT_SECONDS = counter("optimizer", "waited_seconds", "Seconds without a batch to train on.")
VERSION_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 120)
PUBLISH_SECONDS = histogram("optimizer", "publish", "seconds", "Time from a version's last gradient step until it is "
                            "published as the head. Inference servers fetch it after that.", buckets=VERSION_BUCKETS)
STALL_SECONDS = histogram("optimizer", "stall", "seconds", "Time for which making a version pauses gradient steps: "
                          "copying the parameters and waiting for the previous version to be published.",
                          buckets=VERSION_BUCKETS)
BLOCKED_SECONDS = gauge("optimizer", "write_blocked", "seconds", "Time for which learning has been blocked because the "
                        "previous version or a checkpoint cannot be written: a store is unavailable or full. 0 while "
                        "not blocked.")
DRAIN_SECONDS = gauge("optimizer", "drain", "seconds", "Upper bound on the time of a drain, from the checkpoint's size "
                      "and the blob store's measured rate. The pod's grace period must be longer.")
BLOB_RATE = set_unknown(gauge("optimizer", "checkpoint_write", "rate", "Bytes per second of the newest checkpoint's "
                              "write to the blob store."))
CHECKPOINTS = counter("optimizer", "written_checkpoints", "Checkpoints written.")
CHECKPOINT_SECONDS = histogram("optimizer", "checkpoint", "seconds", "Duration of a checkpoint's write in the "
                               "background; it may span versions.", buckets=VERSION_BUCKETS)
CHECKPOINT_TIME = set_unknown(gauge("optimizer", "checkpoint", "timestamp_seconds", "When the newest checkpoint was "
                                    "written or resumed from, in seconds since 1970."))
OPTIMIZERS = set_unknown(gauge("optimizer", "group", "instances", "Optimizers that average their gradients."))

FLOP = counter("optimizer", "flop", "Floating point operations of this optimizer's gradient steps: matrix products and "
               "convolutions, a multiplication and an addition counting as two.")
RUN_FLOP = set_unknown(gauge("optimizer", "run", "flop", "Floating point operations of all optimizers' gradient steps "
                             "since the run began; 8.64e19 are a PFLOP/s-day."))

LOSS = gauge("optimizer", "term", "loss", "The loss and its terms: total, policy, value, entropy, and the auxiliary "
             "heads.", ("term",))
ENTROPY = set_unknown(gauge("optimizer", "entropy", "nats", "Entropy of the action and the parameters that it uses."))
HEAD_ENTROPY = gauge("optimizer", "head_entropy", "nats", "Entropy of each action head, mean over all hero-steps; an "
                     "action that does not read a head has 0.", ("head",))
HEAD_MAX_ENTROPY = gauge("optimizer", "head_max_entropy", "nats", "Entropy of each action head if it chose uniformly.",
                         ("head",))
AUXILIARY_LOSS = gauge("optimizer", "auxiliary_loss", "ratio", "Loss of each auxiliary head as a share of chance, the "
                       "loss of a head that knows no observation: 1 means that it has learned nothing. Win and rank "
                       "are measured on outcome samples (learning.outcome_samples_per_game).", ("head",))
KL = set_unknown(gauge("optimizer", "approximate_kl", "nats", "Estimated divergence of the policy from the one that "
                       "acted."))
CLIPPED = set_unknown(gauge("optimizer", "clipped", "ratio", "Share of hero-steps whose probability ratio is "
                            "outside the clip range."))
EXPLAINED = set_unknown(gauge("optimizer", "explained_variance", "ratio", "Share of the returns' variance that the "
                              "value head explains."))
GRADIENT = set_unknown(gauge("optimizer", "gradient", "norm", "Norm of the averaged gradient before it is clipped."))
GRADIENT_CLIPPED = set_unknown(gauge("optimizer", "gradient_clipped", "ratio", "Share of gradient elements that were "
                                     "clipped."))
REWARD_STD = set_unknown(gauge("optimizer", "deviation", "reward", "Running standard deviation that divides "
                               "rewards."))
LEARNING_RATE = set_unknown(gauge("optimizer", "learning", "rate", "Learning rate; 0 while it is held."))
ENTROPY_COEFFICIENT = set_unknown(gauge("optimizer", "entropy_coefficient", "ratio",
                                        "Weight of the entropy in the loss."))
TEAM_SPIRIT = set_unknown(gauge("optimizer", "team_spirit", "ratio", "Share of a hero's reward that is its team's."))
GAE_HORIZON = set_unknown(gauge("optimizer", "gae_horizon", "seconds", "Horizon of the discount, in game time."))
SCRIPTED_FRACTION = set_unknown(gauge("optimizer", "scripted_games", "ratio", "Share of new games that are played "
                                      "against a scripted bot."))
GAME_LIMIT = set_unknown(gauge("optimizer", "game_limit", "seconds", "Game time at which a new game is cut; from "
                               "game.max_game_seconds on none is."))
MIDDLE_FRACTION = set_unknown(gauge("optimizer", "middle_games", "ratio", "Share of new games that begin in the "
                                    "middle."))
BUILDING_HEALTH = set_unknown(gauge("optimizer", "building_health", "ratio", "Factor of the health of buildings where "
                                    "a game begins in the middle."))

SHOWN = {
    "entropy": ENTROPY, "approx_kl": KL, "clip_fraction": CLIPPED, "explained_variance": EXPLAINED,
    "gradient_norm": GRADIENT, "gradient_clipped_fraction": GRADIENT_CLIPPED, "reward_std": REWARD_STD,
    "learning_rate": LEARNING_RATE, "entropy_coefficient": ENTROPY_COEFFICIENT, "team_spirit": TEAM_SPIRIT,
    "gae_horizon_seconds": GAE_HORIZON, "scripted_fraction": SCRIPTED_FRACTION, "game_seconds": GAME_LIMIT,
    "middle_fraction": MIDDLE_FRACTION, "building_health": BUILDING_HEALTH, "reuse_recent": REUSE}
VERDICTS = ("accepted", "duplicate", "too_old", "stale_epoch")

# A series that starts at its first event has no rate before the second one.
for _verdict in VERDICTS:
    SEGMENTS.labels(_verdict)
for _reason in DropReason:
    DROPPED.labels(str(_reason))


def show_limits(config: BufferConfig, batch_samples: int, optimizers: int) -> None:
    """Show the configured limits."""
    REUSE_TARGET.set(config.sample_reuse)
    BUFFER_LIMIT.set(config.capacity_samples)
    BUFFER_NEEDED.set(max(config.minimum_samples, batch_samples))
    OPTIMIZERS.set(optimizers)


def show_start(version: int) -> None:
    """Show the version from which learning continues, and that its checkpoint is as new."""
    VERSION.set(version)
    VERSION_TIME.set(time.time())
    CHECKPOINT_TIME.set(time.time())


def show_checkpoint(seconds: float) -> None:
    """Count a checkpoint and the seconds of its write."""
    CHECKPOINTS.inc()
    CHECKPOINT_SECONDS.observe(seconds)
    CHECKPOINT_TIME.set(time.time())


def show_version(record: Mapping[str, Any]) -> None:
    """Update the gauges from a version's record."""
    VERSION.set(record["version"])
    VERSION_TIME.set(time.time())
    for name, metric in SHOWN.items():
        if record.get(name) is not None:
            metric.set(record[name])
    for name, value in record.items():
        if name == "loss":
            LOSS.labels("total").set(value)
        elif name.startswith("loss_"):
            LOSS.labels(name.removeprefix("loss_")).set(value)
        elif name.startswith("max_entropy_"):
            head = name.removeprefix("max_entropy_")
            HEAD_MAX_ENTROPY.labels(head).set(value)
            if f"entropy_{head}" in record:
                HEAD_ENTROPY.labels(head).set(record[f"entropy_{head}"])
        elif name.startswith("of_chance_"):
            AUXILIARY_LOSS.labels(name.removeprefix("of_chance_")).set(value)
    if record.get("flop") is not None:
        RUN_FLOP.set(record["flop"])


class BufferMeter:
    """Updates the metrics page from the buffer's statistics."""

    def __init__(self) -> None:
        self._shown = BufferStatistics()

    def show(self, statistics: BufferStatistics, ages: npt.NDArray[np.int32]) -> None:
        """Count the samples dropped since the last call. ``ages`` int32 [n] are those of the buffered samples, in
        versions."""
        before, self._shown = self._shown, statistics
        for reason, count in statistics.dropped.items():
            DROPPED.labels(str(reason)).inc(count - before.dropped[reason])
        BUFFER_SAMPLES.set(statistics.samples)
        BUFFER_BYTES.set(statistics.nbytes)
        if len(ages):
            middle, high = np.quantile(ages, (0.5, 0.95)).tolist()
            for name, value in (("mean", float(ages.mean())), ("median", middle), ("p95", high),
                                ("oldest", float(ages.max()))):
                BUFFER_AGE.labels(name).set(value)

"""Number of rollouts and inference servers that a run needs: pure logic, without a clock, a store or a cluster.

**Rollouts follow sample reuse.** The measured sample reuse (Berner et al. 2019, equation 13) is not a usable signal:
pacing holds it at its target. Optimizers wait when there are too few rollouts, and rollouts wait when there are too
many. The signal is *unpaced reuse*, the reuse that would result if neither side waited:

    unpaced reuse = reuse x (1 - rollouts' throttled share) / (1 - optimizers' waiting share)

Above its target (1.0, section M.3) there are too few rollouts; below it there are too many. Production is
proportional to the number of rollouts, so the required number is ``rollouts x unpaced reuse / target``.

**Inference follows queue time**, the mean time that a request waits for its batch. Queue time grows faster than a
server's load. A server is removed only if the queue would stay below the target when it grows with the square of the
load, and if the others can take over its work at the highest throughput seen so far. A server that forms small batches
is busy all the time and still has spare capacity.

Both scale between bounds, ignore a band around the target, wait until a request has lasted (longer before shrinking),
change by a bounded fraction at a time, and pause after each change. Rollouts do not grow while they wait for
inference. Inference does not grow while rollouts are throttled.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from five.run.config.autoscaler import ScalingRule
from five.services.controller.autoscaler.signals import Signals

Kind = Literal["rollout", "inference"]
QUEUE_ELASTICITY = 2.0  # assumed exponent of queue time over a server's load
TARGET_UTILIZATION = 0.85  # of the highest throughput seen, at which the remaining servers may run
REGRET_WINDOWS = 4.0  # down windows before a size that was too small is tried again; doubled each time
MAX_DOUBLINGS = 8  # of that time; one is taken back for each REGRET_WINDOWS after it without another such size


class ScaleReason(StrEnum):
    """The reason for a change of size, or for keeping it."""

    STARVED = "optimizers_wait"  # rollouts grow
    THROTTLED = "rollouts_throttled"  # rollouts shrink
    QUEUE_LONG = "queue_long"  # inference grows
    QUEUE_SHORT = "queue_short"  # inference shrinks
    BELOW_MIN = "below_min"
    ABOVE_MAX = "above_max"
    IN_BAND = "in_band"
    MEASURING = "measuring"  # not enough data yet
    STABILISING = "stabilising"  # the request has not lasted long enough
    COOLING = "cooling_down"
    AT_MAX = "at_max"
    AT_MIN = "at_min"
    PODS_MISSING = "pods_missing"  # more are requested than exist
    INFERENCE_FIRST = "inference_first"  # more rollouts would only wait for inference
    ROLLOUTS_FIRST = "rollouts_first"  # more inference would not help the optimizers
    TOO_SMALL_BEFORE = "too_small_before"  # this size was too small before
    SWITCHED_OFF = "switched_off"  # somebody set the replicas to 0


@dataclass(frozen=True)
class ScaleRequest:
    """The number of pods that a signal asks for, and why. Without a change it is the current number."""

    replicas: int
    reason: ScaleReason


@dataclass(frozen=True)
class Decision:
    """The decision about a request. Nothing is due when ``after`` equals ``before``."""

    kind: Kind
    before: int
    after: int
    reason: ScaleReason
    wanted: int

    @property
    def changes(self) -> bool:
        """Return whether the size must be set."""
        return self.after != self.before


def desired_rollouts(signals: Signals, rule: ScalingRule, current: int) -> ScaleRequest:
    """Return the number of rollout pods that sample reuse asks for, given ``current``."""
    reuse = signals.unpaced_reuse
    if reuse is None or signals.rollouts <= 0:
        return ScaleRequest(current, ScaleReason.MEASURING)
    ratio = reuse / rule.target
    if abs(ratio - 1) <= rule.tolerance:
        return ScaleRequest(current, ScaleReason.IN_BAND)
    # The signal comes from live pods, not from requested ones. Rounded up, because optimizers are the costly part.
    desired = math.ceil(signals.rollouts * ratio - 1e-6)
    if ratio < 1:
        return ScaleRequest(min(desired, current), ScaleReason.THROTTLED if desired < current else ScaleReason.IN_BAND)
    return ScaleRequest(max(desired, current), ScaleReason.STARVED if desired > current else ScaleReason.PODS_MISSING)


def desired_inference(signals: Signals, rule: ScalingRule, current: int, best_pace: float = 0.0) -> ScaleRequest:
    """Return the number of inference pods that queue time asks for. ``best_pace`` is the highest
    `Signals.inference_pace` seen so far.
    """
    if signals.queue_seconds is None or signals.inference <= 0:
        return ScaleRequest(current, ScaleReason.MEASURING)
    ratio = signals.queue_seconds / rule.target
    if ratio > 1 + rule.tolerance:
        desired = math.ceil(signals.inference * min(ratio, 1 + rule.max_step_fraction) - 1e-6)
        return ScaleRequest(max(desired, current), ScaleReason.QUEUE_LONG if desired > current
                            else ScaleReason.PODS_MISSING)
    if ratio < 1 - rule.tolerance:
        share = ratio ** (1 / QUEUE_ELASTICITY)
        if signals.inference_busy is not None and signals.inference_pace is not None:
            pace = signals.inference_pace / max(best_pace, signals.inference_pace)
            busy = min(signals.inference_busy * pace, 1.0)
            # A queue also grows as 1 / (1 - busy). The smaller size must keep it in the band, or it would grow again.
            share = max(share, busy / TARGET_UTILIZATION, busy / (1 - ratio * (1 - busy) / (1 + rule.tolerance)))
        desired = math.ceil(signals.inference * share - 1e-6)
        if desired < current:
            return ScaleRequest(desired, ScaleReason.QUEUE_SHORT)
    return ScaleRequest(current, ScaleReason.IN_BAND)


class PoolScaler:
    """Turns a stream of requests into a bounded, slow and stable sequence of sizes. Times are monotonic seconds."""

    def __init__(self, kind: Kind, rule: ScalingRule) -> None:
        self.kind = kind
        self.rule = rule
        self._requests: deque[tuple[float, int]] = deque()
        self._size: int | None = None
        self._changed_at = -math.inf
        self._shrunk_at = -math.inf
        self._floor = 0
        self._floor_until = -math.inf
        self._regrets = 0

    def reset(self) -> None:
        """Drop past requests, because the run was not playing."""
        self._requests.clear()

    def decide(self, now: float, current: int, request: ScaleRequest) -> Decision:
        """Return the decision for the current size."""
        if self._size is not None and current != self._size:
            self._changed_at = now  # changed by somebody else
        self._size = current
        if current == 0:
            self.reset()
            return Decision(self.kind, 0, 0, ScaleReason.SWITCHED_OFF, 0)
        rule = self.rule
        bounded = min(max(current, rule.min), rule.max)
        if bounded != current:
            reason = ScaleReason.BELOW_MIN if bounded > current else ScaleReason.ABOVE_MAX
            return self._change(now, current, bounded, reason, bounded)
        wanted = min(max(request.replicas, rule.min), rule.max)
        self._requests.append((now, wanted))
        if wanted == current:
            limit = {1: ScaleReason.AT_MAX, -1: ScaleReason.AT_MIN}.get(_sign(request.replicas - current),
                                                                        request.reason)
            self._drop_old(now)
            return Decision(self.kind, current, current, limit, request.replicas)
        after, reason = self._scale_up(now, current) if wanted > current else self._scale_down(now, current)
        self._drop_old(now)
        if after == current:
            return Decision(self.kind, current, current, reason, request.replicas)
        return self._change(now, current, after, request.reason, request.replicas)

    def _scale_up(self, now: float, current: int) -> tuple[int, ScaleReason]:
        least = self._sustained_request(now, self.rule.up_window_seconds, min)
        if least is None or least <= current:
            return current, ScaleReason.STABILISING
        if now - self._changed_at < self.rule.cooldown_seconds:
            return current, ScaleReason.COOLING
        step = max(math.floor(current * self.rule.max_step_fraction), 1)
        return min(least, current + step), ScaleReason.STARVED

    def _scale_down(self, now: float, current: int) -> tuple[int, ScaleReason]:
        most = self._sustained_request(now, self.rule.down_window_seconds, max)
        if most is None or most >= current:
            return current, ScaleReason.STABILISING
        if now - self._changed_at < self.rule.cooldown_seconds:
            return current, ScaleReason.COOLING
        step = max(math.floor(current * self.rule.max_shrink_fraction), 1)
        after = max(most, current - step)
        if now < self._floor_until and after < self._floor:
            return min(max(after, self._floor), current), ScaleReason.TOO_SMALL_BEFORE
        return after, ScaleReason.THROTTLED

    def _sustained_request(self, now: float, window: float, of: Callable[[Iterable[int]], int]) -> int | None:
        """Return the minimum or maximum request in the window, or None if the window is not covered yet."""
        if not self._requests or self._requests[0][0] > now - window:
            return None
        return of(wanted for at, wanted in self._requests if at >= now - window)

    def _drop_old(self, now: float) -> None:
        # The newest request from before the window stays: it shows that the whole window is covered.
        while len(self._requests) > 1 and self._requests[1][0] <= now - self.rule.down_window_seconds:
            self._requests.popleft()

    def _change(self, now: float, before: int, after: int, reason: ScaleReason, wanted: int) -> Decision:
        span = REGRET_WINDOWS * self.rule.down_window_seconds
        if after < before:
            self._shrunk_at = now
        elif now - self._shrunk_at < span:
            # It grows soon after it shrank, so the smaller size was too small.
            calm = min(max(now - self._floor_until, 0.0), MAX_DOUBLINGS * span)
            doublings = max(self._regrets - int(calm / span), 0)
            self._floor, self._floor_until = before + 1, now + span * 2**doublings
            self._regrets = min(doublings + 1, MAX_DOUBLINGS)
            self._shrunk_at = -math.inf
        self._changed_at, self._size = now, after
        return Decision(self.kind, before, after, reason, wanted)


@dataclass
class Autoscaler:
    """The scalers of both kinds. A kind without a rule is not scaled."""

    rollout: ScalingRule | None
    inference: ScalingRule | None
    _scalers: dict[Kind, PoolScaler] = field(default_factory=dict)
    _best_pace: float = 0.0

    def __post_init__(self) -> None:
        self.update(self.rollout, self.inference)

    def update(self, rollout: ScalingRule | None, inference: ScalingRule | None) -> None:
        """Use other rules and keep the history."""
        self.rollout, self.inference = rollout, inference
        rules: dict[Kind, ScalingRule | None] = {"rollout": rollout, "inference": inference}
        for kind, rule in rules.items():
            if rule is None:
                self._scalers.pop(kind, None)
            elif kind in self._scalers:
                self._scalers[kind].rule = rule
            else:
                self._scalers[kind] = PoolScaler(kind, rule)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds that are scaled."""
        return tuple(self._scalers)

    def reset(self) -> None:
        """Drop past observations; call it while the run does not play."""
        self._best_pace = 0.0
        for scaler in self._scalers.values():
            scaler.reset()

    def decide(self, now: float, signals: Signals | None, sizes: Mapping[Kind, int]) -> list[Decision]:
        """Return one decision for each kind whose current size is known. ``signals`` is None until they are
        measured."""
        requests: dict[Kind, ScaleRequest] = {}
        if signals is not None:
            self._best_pace = max(self._best_pace, signals.inference_pace or 0.0)
        for kind, current in sizes.items():
            if signals is None:
                requests[kind] = ScaleRequest(current, ScaleReason.MEASURING)
            elif kind == "rollout" and self.rollout is not None:
                requests[kind] = desired_rollouts(signals, self.rollout, current)
            elif kind == "inference" and self.inference is not None:
                requests[kind] = desired_inference(signals, self.inference, current, self._best_pace)
        if signals is not None:
            self._resolve_conflicts(signals, requests, sizes)
        return [self._scalers[kind].decide(now, sizes[kind], request) for kind, request in requests.items()
                if kind in self._scalers]

    def _resolve_conflicts(self, signals: Signals, requests: dict[Kind, ScaleRequest],
                           sizes: Mapping[Kind, int]) -> None:
        rollout, inference = requests.get("rollout"), requests.get("inference")
        if rollout is not None and rollout.reason is ScaleReason.STARVED and self._queue_is_long(signals):
            requests["rollout"] = ScaleRequest(sizes["rollout"], ScaleReason.INFERENCE_FIRST)
        queue_is_long = inference is not None and inference.reason is ScaleReason.QUEUE_LONG
        if queue_is_long and self._rollouts_are_throttled(signals):
            requests["inference"] = ScaleRequest(sizes["inference"], ScaleReason.ROLLOUTS_FIRST)

    def _queue_is_long(self, signals: Signals) -> bool:
        rule, queue = self.inference, signals.queue_seconds
        return rule is not None and queue is not None and queue > rule.target * (1 + rule.tolerance)

    def _rollouts_are_throttled(self, signals: Signals) -> bool:
        rule, reuse = self.rollout, signals.unpaced_reuse
        return rule is not None and reuse is not None and reuse < rule.target * (1 - rule.tolerance)


def _sign(x: int) -> int:
    return (x > 0) - (x < 0)

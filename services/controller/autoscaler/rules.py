"""How many rollouts and inference servers a run should have: pure logic, without a clock, a store or a cluster.

**Rollouts follow sample reuse.** Measured sample reuse (Berner et al. 2019, equation 13) says nothing here: pacing
holds it at its target, by letting the optimizers wait when there are too few rollouts and the rollouts when there are
too many. What those two waits cost is the signal: *unpaced reuse* is what reuse would be if neither side waited,

    unpaced reuse = reuse x (1 - rollouts' throttled share) / (1 - optimizers' waiting share)

Above its target (1.0, section M.3) there are too few rollouts: the optimizers wait. Below it there are too many.
Production is proportional to the number of rollouts, so ``rollouts x unpaced reuse / target`` is the number to have.

**Inference follows queue time**, the mean time a request waits for its batch. It grows faster than in proportion to the
load of a server, so servers are taken away only where the queue would stay under the target even if it grew with the
square of the load, and where the others can take over their work at the best pace that was ever seen: a server that
forms small batches is busy all the time and yet has room.

Both scale between bounds, leave a band around the target alone, wait until a wish has lasted (long before shrinking),
grow and shrink by a bounded fraction at a time, and pause after each change. Each waits for the other where more of
itself would not help: rollouts do not grow while inference is what they wait for, inference does not grow while
rollouts are throttled.
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
QUEUE_ELASTICITY = 2.0  # queue time is taken to grow with this power of a server's load
FULL = 0.85  # of what servers have been seen to do, that is left to them
REGRET_WINDOWS = 4.0  # a level that was too small is not tried again for so many down windows, twice as many each time


class Reason(StrEnum):
    """Why a size is changed, or left."""

    STARVED = "optimizers_wait"  # rollouts grow
    THROTTLED = "rollouts_throttled"  # rollouts shrink
    QUEUE_LONG = "queue_long"  # inference grows
    QUEUE_SHORT = "queue_short"  # inference shrinks
    BELOW_MIN = "below_min"
    ABOVE_MAX = "above_max"
    IN_BAND = "in_band"
    MEASURING = "measuring"  # too little was seen yet, or nothing came in at all
    STABILISING = "stabilising"  # the wish has not lasted long enough
    COOLING = "cooling_down"
    AT_MAX = "at_max"
    AT_MIN = "at_min"
    PODS_MISSING = "pods_missing"  # more are asked for already than there are
    INFERENCE_FIRST = "inference_first"  # rollouts would only wait for inference
    ROLLOUTS_FIRST = "rollouts_first"  # inference is not what the optimizers wait for
    TOO_SMALL_BEFORE = "too_small_before"  # shrinking to this was regretted
    SWITCHED_OFF = "switched_off"  # somebody set the replicas to 0


@dataclass(frozen=True)
class Wish:
    """What a signal asks for: a number of pods and why; where it asks for nothing, the present number."""

    replicas: int
    reason: Reason


@dataclass(frozen=True)
class Decision:
    """What was made of a wish. Nothing is to be done when ``after`` is ``before``."""

    kind: Kind
    before: int
    after: int
    reason: Reason
    wanted: int

    @property
    def changes(self) -> bool:
        """Whether the size is to be set."""
        return self.after != self.before


def rollouts_wished(signals: Signals, rule: ScalingRule, current: int) -> Wish:
    """What sample reuse asks of ``current`` rollout pods."""
    reuse = signals.unpaced_reuse
    if reuse is None or signals.rollouts <= 0:
        return Wish(current, Reason.MEASURING)
    ratio = reuse / rule.target
    if abs(ratio - 1) <= rule.tolerance:
        return Wish(current, Reason.IN_BAND)
    # The signal came from the pods that lived, not from those asked for. Rounded up: the optimizers are what costs.
    wished = math.ceil(signals.rollouts * ratio - 1e-6)
    if ratio < 1:
        return Wish(min(wished, current), Reason.THROTTLED if wished < current else Reason.IN_BAND)
    return Wish(max(wished, current), Reason.STARVED if wished > current else Reason.PODS_MISSING)


def inference_wished(signals: Signals, rule: ScalingRule, current: int, best_pace: float = 0.0) -> Wish:
    """What queue time asks of ``current`` inference pods. ``best_pace``: the highest `Signals.inference_pace` seen."""
    if signals.queue_seconds is None or signals.inference <= 0:
        return Wish(current, Reason.MEASURING)
    ratio = signals.queue_seconds / rule.target
    if ratio > 1 + rule.tolerance:
        wished = math.ceil(signals.inference * min(ratio, 1 + rule.max_step_fraction) - 1e-6)
        return Wish(max(wished, current), Reason.QUEUE_LONG if wished > current else Reason.PODS_MISSING)
    if ratio < 1 - rule.tolerance:
        share = ratio ** (1 / QUEUE_ELASTICITY)
        if signals.inference_busy is not None and signals.inference_pace is not None:
            pace = signals.inference_pace / max(best_pace, signals.inference_pace)
            share = max(share, signals.inference_busy * pace / FULL)
        wished = math.ceil(signals.inference * share - 1e-6)
        if wished < current:
            return Wish(wished, Reason.QUEUE_SHORT)
    return Wish(current, Reason.IN_BAND)


class Scaler:
    """Makes of a stream of wishes a bounded, slow and stable sequence of sizes. Times are any monotonic seconds."""

    def __init__(self, kind: Kind, rule: ScalingRule) -> None:
        self.kind = kind
        self.rule = rule
        self._wishes: deque[tuple[float, int]] = deque()
        self._size: int | None = None
        self._changed_at = -math.inf
        self._shrunk_at = -math.inf
        self._floor = 0
        self._floor_until = -math.inf
        self._regrets = 0

    def forget(self) -> None:
        """Drops the wishes of the past: the run stood still."""
        self._wishes.clear()

    def decide(self, now: float, current: int, wish: Wish) -> Decision:
        """The size to ask for, given the one that is asked for now."""
        if self._size is not None and current != self._size:
            self._changed_at = now  # somebody else did
        self._size = current
        if current == 0:
            self.forget()
            return Decision(self.kind, 0, 0, Reason.SWITCHED_OFF, 0)
        rule = self.rule
        bounded = min(max(current, rule.min), rule.max)
        if bounded != current:
            return self._change(now, current, bounded, Reason.BELOW_MIN if bounded > current else Reason.ABOVE_MAX,
                                bounded)
        wanted = min(max(wish.replicas, rule.min), rule.max)
        self._wishes.append((now, wanted))
        if wanted == current:
            limit = {1: Reason.AT_MAX, -1: Reason.AT_MIN}.get(_sign(wish.replicas - current), wish.reason)
            self._trim(now)
            return Decision(self.kind, current, current, limit, wish.replicas)
        after, reason = self._grown(now, current) if wanted > current else self._shrunk(now, current)
        self._trim(now)
        if after == current:
            return Decision(self.kind, current, current, reason, wish.replicas)
        return self._change(now, current, after, wish.reason, wish.replicas)

    def _grown(self, now: float, current: int) -> tuple[int, Reason]:
        least = self._lasting(now, self.rule.up_window_seconds, min)
        if least is None or least <= current:
            return current, Reason.STABILISING
        if now - self._changed_at < self.rule.cooldown_seconds:
            return current, Reason.COOLING
        step = max(math.floor(current * self.rule.max_step_fraction), 1)
        return min(least, current + step), Reason.STARVED

    def _shrunk(self, now: float, current: int) -> tuple[int, Reason]:
        most = self._lasting(now, self.rule.down_window_seconds, max)
        if most is None or most >= current:
            return current, Reason.STABILISING
        if now - self._changed_at < self.rule.cooldown_seconds:
            return current, Reason.COOLING
        step = max(math.floor(current * self.rule.max_shrink_fraction), 1)
        after = max(most, current - step)
        if now < self._floor_until and after < self._floor:
            return min(max(after, self._floor), current), Reason.TOO_SMALL_BEFORE
        return after, Reason.THROTTLED

    def _lasting(self, now: float, window: float, of: Callable[[Iterable[int]], int]) -> int | None:
        """The least or most that was wished in the window; None when it was not watched for so long."""
        if not self._wishes or self._wishes[0][0] > now - window:
            return None
        return of(wanted for at, wanted in self._wishes if at >= now - window)

    def _trim(self, now: float) -> None:
        # The newest wish from before the window stays: it says that the whole window was watched.
        while len(self._wishes) > 1 and self._wishes[1][0] <= now - self.rule.down_window_seconds:
            self._wishes.popleft()

    def _change(self, now: float, before: int, after: int, reason: Reason, wanted: int) -> Decision:
        span = REGRET_WINDOWS * self.rule.down_window_seconds
        if after < before:
            self._shrunk_at = now
        elif now - self._shrunk_at < span:
            # It grows soon after it shrank: what it shrank to was too small.
            self._floor, self._floor_until = before + 1, now + span * 2**self._regrets
            self._regrets = min(self._regrets + 1, 8)
            self._shrunk_at = -math.inf
        self._changed_at, self._size = now, after
        return Decision(self.kind, before, after, reason, wanted)


@dataclass
class Autoscaler:
    """Both kinds together. A kind without a rule is left alone."""

    rollout: ScalingRule | None
    inference: ScalingRule | None
    _scalers: dict[Kind, Scaler] = field(default_factory=dict)
    _best_pace: float = 0.0

    def __post_init__(self) -> None:
        self.take(self.rollout, self.inference)

    def take(self, rollout: ScalingRule | None, inference: ScalingRule | None) -> None:
        """Goes on by other rules, with what has been seen and done so far."""
        self.rollout, self.inference = rollout, inference
        rules: dict[Kind, ScalingRule | None] = {"rollout": rollout, "inference": inference}
        for kind, rule in rules.items():
            if rule is None:
                self._scalers.pop(kind, None)
            elif kind in self._scalers:
                self._scalers[kind].rule = rule
            else:
                self._scalers[kind] = Scaler(kind, rule)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Kinds that are scaled."""
        return tuple(self._scalers)

    def forget(self) -> None:
        """To be called while the run does not play: what was seen before says nothing about after."""
        self._best_pace = 0.0
        for scaler in self._scalers.values():
            scaler.forget()

    def decide(self, now: float, signals: Signals | None, sizes: Mapping[Kind, int]) -> list[Decision]:
        """One decision for each kind whose present size is known. ``signals`` None: not measured yet."""
        wishes: dict[Kind, Wish] = {}
        if signals is not None:
            self._best_pace = max(self._best_pace, signals.inference_pace or 0.0)
        for kind, current in sizes.items():
            if signals is None:
                wishes[kind] = Wish(current, Reason.MEASURING)
            elif kind == "rollout" and self.rollout is not None:
                wishes[kind] = rollouts_wished(signals, self.rollout, current)
            elif kind == "inference" and self.inference is not None:
                wishes[kind] = inference_wished(signals, self.inference, current, self._best_pace)
        if signals is not None:
            self._give_way(signals, wishes, sizes)
        return [self._scalers[kind].decide(now, sizes[kind], wish) for kind, wish in wishes.items()
                if kind in self._scalers]

    def _give_way(self, signals: Signals, wishes: dict[Kind, Wish], sizes: Mapping[Kind, int]) -> None:
        rollout, inference = wishes.get("rollout"), wishes.get("inference")
        if rollout is not None and rollout.reason is Reason.STARVED and self._queue_is_long(signals):
            wishes["rollout"] = Wish(sizes["rollout"], Reason.INFERENCE_FIRST)
        if inference is not None and inference.reason is Reason.QUEUE_LONG and self._rollouts_are_throttled(signals):
            wishes["inference"] = Wish(sizes["inference"], Reason.ROLLOUTS_FIRST)

    def _queue_is_long(self, signals: Signals) -> bool:
        rule, queue = self.inference, signals.queue_seconds
        return rule is not None and queue is not None and queue > rule.target * (1 + rule.tolerance)

    def _rollouts_are_throttled(self, signals: Signals) -> bool:
        rule, reuse = self.rollout, signals.unpaced_reuse
        return rule is not None and reuse is not None and reuse < rule.target * (1 - rule.tolerance)


def _sign(x: int) -> int:
    return (x > 0) - (x < 0)

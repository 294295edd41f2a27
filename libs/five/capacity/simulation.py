"""Simulation of a cluster in discrete time under the real autoscaler (services.controller.autoscaler).

It models flows, not single messages: rollouts, inference and optimizers limit each other as in a run. Rollouts stop
while segments wait. A step needs a batch of every optimizer, so the worst fed one sets the pace, and optimizers consume
no more than a sample reuse of 1 allows. Inference answers in batches, whose queue follows from the team-steps in
flight. Everything is deterministic.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from five.capacity import inputs
from five.capacity.cluster_sizes import Cluster
from five.capacity.feed import worst_feed
from five.capacity.past_versions import past_pool
from five.run.config.autoscaler import ScalingRule
from five.services.controller.autoscaler.rules import Autoscaler, Decision, Kind
from five.services.controller.autoscaler.signals import Signals

STEP = 5.0  # seconds of one step of the simulation
INTERVAL = 15.0  # services.controller.autoscaler.interval_seconds
WINDOW = 60.0  # services.controller.autoscaler.window_seconds
GROUP_OPTIMIZER_BATCHES = 4.0  # buffer.admission_batches
SETTLED = 0.9  # share of the optimizers' full speed


@dataclass
class _Pods:
    """Pods of one kind: the requested number, and those that run or start."""

    requested: int
    cohorts: list[tuple[float, float]]  # (start time, number of pods)

    def live(self, now: float) -> float:
        return sum(count for since, count in self.cohorts if since <= now)

    def ramped(self, now: float, delay: float, ramp: float) -> float:
        """Return the pods, each weighted by a share of work that grows from 0 to 1 in ``delay`` to ``delay + ramp``
        after its start."""
        return sum(count * min(max((now - since - delay) / ramp, 0.0), 1.0) for since, count in self.cohorts
                   if since <= now)

    def follow(self, requested: int, now: float, boot: float) -> None:
        self.requested = requested
        missing = requested - sum(count for _, count in self.cohorts)
        if missing > 0:
            self.cohorts.append((now + boot, missing))
        while missing < 0:  # the youngest are removed first
            since, count = self.cohorts.pop()
            if count + missing > 0:
                self.cohorts.append((since, count + missing))
            missing += count

    def lose(self, share: float, now: float, back: float) -> None:
        """Remove a share of the pods; others replace them ``back`` seconds later."""
        lost = share * self.live(now)
        self.cohorts = [(since, count * (1 - share)) for since, count in self.cohorts]
        self.cohorts.append((now + back, lost))


@dataclass(frozen=True)
class Throughput:
    """Throughput of rollouts and inference: team-steps a second, seconds in the queue, inference's busy share."""

    rate: float
    queue: float
    busy: float


def flow(c: Cluster, rollouts: float, servers: float, most: float = float("inf")) -> Throughput:
    """Return the rate at which team-steps circulate: games, queue, forward pass. ``most``: an upper bound.

    A request waits for the end of the running pass (half of one on average) and, once batches are full, for those
    before it. Smaller passes of past versions reduce the servers' capacity.
    """
    if rollouts <= 0 or servers <= 0:
        return Throughput(0.0, 0.0, 0.0)
    servers /= past_pool(c).relative_cost
    under_way = rollouts * 2 * c.games / servers
    games = c.request_rows / c.rollout_max_rate
    full = c.forward.seconds(c.forward.max_batch)
    cap = min(rollouts * c.rollout_max_rate, most) / servers

    def needed(rate: float) -> tuple[float, float, float]:
        # The team-steps of the next pass arrive during a pass.
        batch = max(c.forward.fixed * rate / max(1 - c.forward.per_row * rate, 1e-9), min(c.request_rows, 60.0))
        batch = min(batch, float(c.forward.max_batch))
        busy = min(rate / batch * c.forward.seconds(batch), 1.0)
        queue = busy * c.forward.seconds(batch) / 2
        return rate * (games + queue + c.forward.seconds(batch)), queue, busy

    if needed(c.forward.most)[0] <= under_way:
        if c.forward.most <= cap:
            return Throughput(c.forward.most * servers, under_way / c.forward.most - games - full, 1.0)
        _, queue, busy = needed(cap)
        return Throughput(cap * servers, queue, busy)
    low, high = 0.0, c.forward.most
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if needed(middle)[0] < under_way else (low, middle)
    rate = min(low, cap)
    _, queue, busy = needed(rate)
    return Throughput(rate * servers, queue, busy)


@dataclass
class StepSample:
    """Step of the window over which signals are measured."""

    rollouts: float
    servers: float
    received: float
    consumed: float
    starved: float
    throttled: float
    queue: float
    rate: float
    busy: float
    servers_working: float


@dataclass
class Simulation:
    """A running cluster. Sizes by kind; ``trace`` has (seconds, requested rollouts, requested servers, share of full
    speed at which the optimizers learn)."""

    cluster: Cluster
    rules: dict[Kind, ScalingRule]
    sizes: dict[Kind, int]
    optimizers: float = 1.0  # factor on the cluster's optimizers
    now: float = 0.0
    decisions: list[tuple[float, Decision]] = field(default_factory=list)
    trace: list[tuple[float, int, int, float]] = field(default_factory=list)
    held_until: float = -1.0  # learning is blocked by Redis until then: no steps, no scaling

    def __post_init__(self) -> None:
        self.scaler = Autoscaler(self.rules.get("rollout"), self.rules.get("inference"))
        self.pods = {kind: _Pods(size, [(-1e9, float(size))]) for kind, size in self.sizes.items()}
        self._window: deque[StepSample] = deque(maxlen=int(WINDOW / STEP))
        self._flows: dict[tuple[float, float, float], Throughput] = {}
        self._backlog = 0.0
        self._decided_at = 0.0

    def advance(self, seconds: float, each: Callable[["Simulation"], None] | None = None) -> None:
        """Simulate ``seconds``."""
        end = self.now + seconds
        while self.now < end:
            self._step()
            if self.now - self._decided_at >= INTERVAL:
                self._decided_at = self.now
                self._run_autoscaler()
            if each is not None:
                each(self)

    def _step(self) -> None:
        c, now = self.cluster, self.now
        rollouts = self.pods["rollout"].live(now)
        # Streams stay on their server until they reach their maximum age: a new server gets its share gradually.
        age = c.config.rpc.stream_max_seconds
        servers = self.pods["inference"].ramped(now, age / 2, max(age / 2, STEP))
        held = now < self.held_until
        demand = c.optimizers * self.optimizers * c.samples_per_second
        possible = self._flow(rollouts, servers)
        # A new rollout's first segments end one by one within the time of a whole segment.
        segment = c.segment_steps * 2 * c.games * max(rollouts, 1.0) / max(possible.rate, 1e-9)
        delivering = self.pods["rollout"].ramped(now, 0.0, max(segment, STEP)) / max(rollouts, 1e-9)
        unroll = c.config.learning.lstm_unroll_length
        made = possible.rate * c.trained_share * delivering / unroll * STEP
        capacity = GROUP_OPTIMIZER_BATCHES * c.config.learning.batch_samples * c.optimizers * self.optimizers
        # Segments of the other optimizers do not help the one with the fewest: they fill their buffers and hold intake.
        usable = made * worst_feed(int(rollouts), round(c.optimizers * self.optimizers),
                                   c.config.services.rollout.optimizers_per_process)
        consumed = 0.0 if held else min(self._backlog + usable, demand * STEP)
        throttled = (max(self._backlog + usable - consumed - capacity, 0.0) + made - usable) / made if made else 0.0
        received = made * (1 - throttled)
        self._backlog += received - consumed
        actual = self._flow(rollouts, servers, possible.rate * (1 - throttled)) if throttled else possible
        self._window.append(StepSample(
            rollouts, self.pods["inference"].live(now), received, consumed,
            0.0 if held else 1 - consumed / (demand * STEP), throttled,
            actual.queue, actual.rate, actual.busy, servers))
        self.now += STEP
        self.trace.append((self.now, self.pods["rollout"].requested, self.pods["inference"].requested,
                           consumed / (demand * STEP)))

    def _flow(self, rollouts: float, servers: float, most: float = float("inf")) -> Throughput:
        # Most steps equal the previous one.
        key = (rollouts, servers, most)
        if key not in self._flows:
            self._flows[key] = flow(self.cluster, *key)
        return self._flows[key]

    def _run_autoscaler(self) -> None:
        if self.now < self.held_until:
            # The controller's loop reads it from the optimizer's heartbeat too.
            self._window.clear()
            self.scaler.reset()
            return
        decisions = self.scaler.decide(self.now, self._signals(), {k: p.requested for k, p in self.pods.items()})
        for decision in decisions:
            if decision.changes:
                self.decisions.append((self.now, decision))
            self.pods[decision.kind].follow(decision.after, self.now, inputs.BOOT.value)

    def _signals(self) -> Signals | None:
        w = self._window
        if len(w) < 0.7 * WINDOW / STEP:
            return None
        n, pods, requests = len(w), sum(s.rollouts for s in w), sum(s.rate for s in w)
        received, forward = sum(s.received for s in w), sum(s.busy * s.servers_working for s in w)
        return Signals(
            rollouts=pods / n, inference=sum(s.servers for s in w) / n, optimizers=self.cluster.optimizers,
            reuse=sum(s.consumed for s in w) / received if received else None,
            rollouts_throttled=sum(s.throttled * s.rollouts for s in w) / pods if pods else None,
            optimizers_starved=sum(s.starved for s in w) / n,
            queue_seconds=sum(s.queue * s.rate for s in w) / requests if requests else None,
            inference_busy=forward / max(sum(s.servers for s in w), 1e-9),
            inference_pace=sum(s.rate for s in w) / forward if forward else None)


@dataclass(frozen=True)
class ScenarioResult:
    """Result of a scenario after its event. ``recovered``: seconds until the optimizers learn at 90 % of full speed and
    stay there (None: never); ``settled``: seconds until the last change; ``overshoot``: the most requested rollouts
    over those at the end, minus 1; ``turns``: changes of direction of both kinds."""

    before: tuple[int, int]
    after: tuple[int, int]
    recovered: float | None
    settled: float
    overshoot: float
    turns: int
    slowest: float
    speed: float


def rules_of(c: Cluster) -> dict[Kind, ScalingRule]:
    """Return the scaling rules of a cluster: the defaults, a queue as long as a forward pass, and capacity to grow."""
    from five.run.config.autoscaler import InferenceScaling, RolloutScaling

    passing = c.forward.seconds(c.forward.max_batch)
    return {"rollout": RolloutScaling(max=c.rollouts * 8),
            "inference": InferenceScaling(max=c.inference * 4, target=round(max(passing, 0.02), 3))}


def scenario(c: Cluster, start: dict[Kind, int], event: Callable[[Simulation], None] | None, hours: float
             ) -> ScenarioResult:
    """Simulate a scenario from these sizes. With an event the cluster settles first."""
    run = Simulation(c, rules_of(c), dict(start))
    if event is not None:
        run.advance(6 * 3600)
        event(run)
    began, index = run.now, len(run.trace)
    before = (run.pods["rollout"].requested, run.pods["inference"].requested)
    run.advance(hours * 3600)
    seen = run.trace[index:]
    slow = [at for at, _, _, speed in seen if speed < SETTLED]
    recovered = 0.0 if not slow else None if slow[-1] >= run.now - STEP else slow[-1] - began
    changes = [(at, d) for at, d in run.decisions if at > began]
    turns = sum(
        (a.after > a.before) != (b.after > b.before)
        for kind in ("rollout", "inference")
        for a, b in zip(*(lambda found: (found, found[1:]))([d for _, d in changes if d.kind == kind]), strict=False))
    after = (run.pods["rollout"].requested, run.pods["inference"].requested)
    return ScenarioResult(before, after, recovered, changes[-1][0] - began if changes else 0.0,
                          max(rollouts for _, rollouts, _, _ in seen) / max(after[0], before[0]) - 1, turns,
                          min(speed for *_, speed in seen), seen[-1][3])

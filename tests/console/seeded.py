"""Run with days of history in its store, served by a real controller, for pictures and tests of pages. Its numbers come
from a fixed seed; nothing was trained.

    python -m tests.console.seeded [PORT]
"""

import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import redis

from dota import registry
from five.agent.anneal.document import Anneal, AnnealRamp
from five.agent.anneal.guard import GuardConfig, Pair
from five.agent.anneal.pair_records import pair_key, pair_to_json
from five.agent.anneal.variants import Variant
from five.agent.draft.leaves import HeroPool, LeafTable
from five.cli.console import link
from five.local.rest_client import ControllerClient
from five.run.draft_tables import DraftTableStore
from five.services.controller.console.static_files import BUILT, ConsoleSite
from five.services.controller.operations.document import (
    Operation,
    OperationKind,
    OperationRequest,
    OperationState,
    StepState,
)
from five.services.controller.operations.store import OperationStore
from rapid.embedded_redis import EmbeddedRedis
from rapid.store.anneal import AnnealStore
from rapid.store.lineage import new_segment
from rapid.store.state import RunState, Status
from tests.services.live_controller import OPERATOR, RUN, LiveController, live

DAYS = 4.0
VERSIONS = 900
PAIRS = 40  # of the guard's, under each rule
DRAFTED = ("sniper", "lion", "sven", "viper", "axe", "riki", "slark", "lich", "razor", "earthshaker")
REVERTED = (610, 660)  # a branch that was left
HOSTILE = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"


def seed(rest: LiveController, now: float) -> None:
    """Fill the store of a served run."""
    state, client = rest.state, rest.state.redis
    for v in (0, 1, VERSIONS):
        rest.context.store.publish(v, {"w": np.full(3, v, np.float32)}, {"reward_std": 1.0})
    began = now - DAYS * 86400
    _series(client, began, now)
    client.delete(state.keys.events)
    _events(client, began, now)
    state.transition(Status.RUNNING, "controller", "version 0 is out and inference, optimizer, rollout are up")
    _branch(state)
    _league(state)
    _services(state)
    _anneal(state)
    _operation(state)
    _draft(rest)


def _add(client: redis.Redis, key: str, at: float, values: dict[str, Any]) -> None:
    client.xadd(f"five:{RUN}:series:{key}", {"v": json.dumps(values)}, id=f"{int(at * 1000)}-0")


def _series(client: redis.Redis, began: float, now: float) -> None:
    rng = np.random.default_rng(5)
    step = (now - began) / VERSIONS
    for v in range(VERSIONS):
        at, p = began + v * step, v / VERSIONS
        if 380 <= v < 400:
            continue  # it was down
        noise = rng.normal(size=8)
        bad = REVERTED[0] <= v <= REVERTED[1]
        _add(
            client,
            "versions",
            at,
            {
                "version": v,
                "hero_steps": v * 122_880,
                "hero_steps_per_second": 1180 + 60 * noise[0],
                "consumed_per_second": 1150 + 60 * noise[1],
                "staleness_median": 0.7 + 0.15 * noise[2],
                "staleness_mean": 0.9 + 0.15 * noise[3],
                "staleness_p95": 2.0 + 0.4 * abs(noise[4]),
                "reuse": 1.0 + 0.01 * noise[5],
                "reuse_recent": 1.0 + 0.05 * noise[6],
                "busy_share": 0.7 + 0.05 * noise[7],
                "wait_share": 0.3 - 0.05 * noise[7],
                "entropy": 3.4 - 1.6 * p + 0.03 * noise[0] - (0.4 * (v - REVERTED[0]) / 50 if bad else 0),
                "of_max_entropy_action": 0.6 - 0.35 * p + 0.01 * noise[1],
                "of_max_entropy_delay": 0.995 - 0.2 * p,
                "of_max_entropy_offset": 0.5 - 0.3 * p + 0.01 * noise[2],
                "of_max_entropy_unit": 0.55 - 0.3 * p + 0.01 * noise[3],
                "of_chance_win_probability": 1 - 0.25 * p + 0.02 * noise[4],
                "of_chance_net_worth_rank": 1 - 0.4 * p + 0.02 * noise[5],
                "approx_kl": 0.008 + 0.002 * abs(noise[1]),
                "clip_fraction": 0.09 + 0.02 * noise[2],
                "explained_variance": 0.85 - 0.6 * math.exp(-6 * p) + 0.02 * noise[3] - (0.2 if bad else 0),
                "loss_value": 0.4 + 0.1 * noise[4],
                "learning_rate": 5e-5 if v < 500 else 2e-5,
                "entropy_coefficient": 0.01,
                "team_spirit": 0.3 + 0.4 * p,
            },
        )
        if v % 6 == 0:
            mu = 9 * math.log1p(8 * p) + 0.3 * noise[5] - (2.5 * (v - REVERTED[0]) / 50 if bad else 0)
            low, high = 0.3 + 0.5 * p - 0.1, 0.3 + 0.5 * p + 0.1
            _add(
                client,
                "ratings",
                at + 30,
                {
                    "version": v,
                    "mu": mu,
                    "sigma": 0.8,
                    "win_rates": {"scripted": 0.3 + 0.5 * p, "random": 1 - 0.4 * math.exp(-9 * p)},
                    "win_intervals": {"scripted": [low, high], "random": [0.9 - 0.4 * math.exp(-9 * p), 1.0]},
                },
            )
        if v % 2 == 0:
            _add(
                client,
                "games",
                at + 60,
                {
                    "game_seconds": 900 + 80 * noise[6],
                    "statistics": {
                        "last_hits": 8 + 40 * p + 2 * noise[7],
                        "denies": 1 + 6 * p,
                        "kills": 1.5 + p,
                        "deaths": 2.5 - p,
                    },
                },
            )


def _events(client: redis.Redis, began: float, now: float) -> None:
    step = (now - began) / VERSIONS
    rows: list[tuple[float, str, str, dict[str, Any]]] = [
        (0, "five train", "run.created", {}),
        (90, "ada", "run.pausing", {"from": "running", "reason": "a look at the replays"}),
        (92, "ada", "run.running", {"from": "paused", "reason": ""}),
        (
            250,
            "ada",
            "run.cut_over",
            {"operation": "surgery-20260101-120500-d4e5f6", "plan": "wider", "version": 250, "epoch": 2},
        ),
        (400, "optimizer", "optimizer.resumed", {"version": 399, "reason": "the machine was restarted"}),
        (500, "grace", "schedules.set", {"name": "learning_rate"}),
        (610, "grace", "anneal.ramping", {"anneal": "patch-7.21d", "state": "ramping", "share": 0.0}),
        (
            661,
            "ada",
            "run.cut_over",
            {"operation": "revert-20260103-091500-a1b2c3", "to_version": 609, "version": 661, "epoch": 3},
        ),
        (700, "ada", "run.pausing", {"from": "running", "reason": HOSTILE}),
        (701, "ada", "run.running", {"from": "paused"}),
    ]
    for v, who, what, details in rows:
        client.xadd(
            f"five:{RUN}:events",
            {"who": who, "what": what, "details": json.dumps(details)},
            id=f"{int((began + v * step) * 1000)}-0",
        )


def _branch(state: RunState) -> None:
    record = state.record()
    assert record is not None
    first = REVERTED[1] + 1
    segment = new_segment(first, record, "run.cut_over", "ada", REVERTED[0] - 1, "revert-20260103-091500-a1b2c3")
    state.redis.hset(state.keys.lineage, str(first), segment.to_json())


def _league(state: RunState) -> None:
    table, rng = state.table("league"), np.random.default_rng(7)
    for v in range(0, VERSIONS, 20):
        games = int(rng.integers(20, 90))
        table.set(
            f"version:{v}",
            [float(-2.2 + 2.2 * v / VERSIONS + 0.2 * rng.normal()), games, int(games * (1 - 0.45 * v / VERSIONS))],
        )


def _services(state: RunState) -> None:
    for kind, identity, stats in (
        ("optimizer", "0", {"version": VERSIONS, "samples": 3912}),
        ("inference", "0", {"version": VERSIONS, "batch": 38.2}),
        ("rollout", "0", {"games": 16, "inference": 0.31}),
        ("rollout", "1", {"games": 16, "inference": 0.29}),
        ("evaluator", "0", {"games": 4}),
        ("opponents", "0", {"pool": 45}),
        ("controller", "0", {}),
    ):
        state.lease(kind, identity, 3600.0, metrics_address="127.0.0.1:9100").renew(stats)


def _anneal(state: RunState) -> None:
    document = Anneal(
        id="patch-7.22-d4e5f6",
        overrides={"patch": "7.22"},
        base=840,
        began=840,
        ramp=AnnealRamp(start=840, length=120),
        guard=GuardConfig(loss=0.2),
    )
    store = AnnealStore(state)
    store.change(lambda _: (document.to_json(), "anneal.began", {"anneal": document.id}), "grace")
    rng = np.random.default_rng(11)
    for rule in Variant:
        for number in range(PAIRS):
            pair = Pair(rule, number, 841 + number // 2, 0.3, (float(rng.integers(-1, 2)), 1.0))
            store.pairs().set(pair_key(document.trial, rule, number), pair_to_json(pair))


def _draft(rest: LiveController) -> None:
    """Store a table of ten heroes, five a side, whose better five come first, and games of them."""
    worth = np.linspace(0.5, -0.5, len(DRAFTED))
    pool = HeroPool(DRAFTED, 5)
    teams = worth[pool.teams(np.arange(pool.line_ups))].sum(axis=-1)
    win = (1 / (1 + np.exp(-(teams[:, 0] - teams[:, 1])))).astype(np.float32)
    assert rest.context.blobs is not None
    facts = {"version": VERSIONS, "randomised": False}
    DraftTableStore(rest.context.blobs, RUN).put(f"version-{VERSIONS}", LeafTable(pool, win.reshape(pool.shape), facts))
    rng, build = np.random.default_rng(3), registry.load().heroes
    numbers = [build.index(hero) for hero in DRAFTED]
    for i in range(400):
        radiant, dire = rng.permutation(numbers)[:5].tolist(), rng.permutation(numbers)[:5].tolist()
        p = float(rng.uniform(0.3, 0.7))
        won = rng.random() < p
        rest.context.series.append("games", {
            "outcome": "selfplay", "winner": "radiant" if won else "dire", "version": VERSIONS - 400 + i,
            "lineup": [radiant, dire], "win_probability": [round(p, 4), round(1 - p, 4)]})


def _operation(state: RunState) -> None:
    store = OperationStore(state)
    request = OperationRequest(name="wider", plan="name: wider\nsteps: []\n", digest="4c0e2f1a" * 8, epoch=1, hold=True)
    made = store.begin(OperationKind.SURGERY, "ada", request, "running", "more memory")

    def done(operation: Operation) -> Operation:
        at = time.time() - 86400
        for i, step in enumerate(operation.steps):
            operation = operation.with_step(
                step.name,
                state=StepState.DONE,
                attempt=2 if step.name == "transform" else 1,
                started_at=at + i,
                ended_at=at + i + 1.5,
                error="optimizer 0 ended and took the order again" if step.name == "transform" else "",
            )
        return operation.model_copy(
            update={"state": OperationState.DONE, "outcome": "version 250 goes on in epoch 2", "ended_at": at + 20}
        )

    store.change(made.id, done)


@contextmanager
def seeded(site: ConsoleSite | None = None, **given: Any) -> Iterator[LiveController]:
    """Serve a filled run."""
    with (
        TemporaryDirectory() as folder,
        EmbeddedRedis(Path(folder) / "redis", append_only=False).start() as store,
        live(store.url, site=site or ConsoleSite(BUILT), **given) as rest,
    ):
        seed(rest, time.time())
        yield rest


def main() -> None:
    with seeded() as rest:
        print(link(ControllerClient(rest.url, OPERATOR)), flush=True)
        try:
            time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 1e9)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()

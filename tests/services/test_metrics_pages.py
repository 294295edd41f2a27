"""Metrics pages of the services."""

import math
from typing import Any

import numpy as np
import pytest

from five.agent.learning.buffer import BufferStatistics, DropReason
from five.services.controller import metrics as controller
from five.services.controller.run.environment_servers import environment_servers
from five.services.evaluator import metrics as evaluator
from five.services.evaluator.matches import Pairing, TeamPlayer
from five.services.opponents import metrics as opponents
from five.services.optimizer import metrics as optimizer
from five.services.rollout import metrics as rollout
from rapid.store.leases import Instance
from rapid.store.state import Status
from rapid.telemetry.metrics import LabelledRegistry, gauge, set_unknown


def value(metric: Any, *labels: str) -> float:
    return float((metric.labels(*labels) if labels else metric)._value.get())


def test_every_sample_has_run_and_kind_labels() -> None:
    page = LabelledRegistry()
    page.register(gauge("tested", "common", "ratio", "Of a test.", ("kind",)))
    family = next(f for f in page.collect() if f.name == "five_tested_common_ratio")
    page.common = {"run": "r", "kind": "rollout"}
    shown = gauge("tested", "common_plain", "ratio", "Of a test.")
    page.register(shown)
    shown.set(2)
    labels = {f.name: [s.labels for s in f.samples] for f in page.collect()}
    assert labels["five_tested_common_plain_ratio"] == [{"run": "r", "kind": "rollout"}]
    assert [s.labels for s in family.samples] == []


def test_unmeasured_gauges_are_nan() -> None:
    assert math.isnan(value(set_unknown(gauge("tested", "unknown", "ratio", "Of a test."))))


def test_a_game_is_counted_by_opponent_result_and_term() -> None:
    before = {
        "past": value(rollout.GAMES, "past", "won"), "bot": value(rollout.GAMES, "scripted", "lost"),
        "gained": value(rollout.GAINED, "gold"), "lost": value(rollout.LOST, "hero_death"),
        "hits": value(rollout.STATISTICS, "last_hits"), "radiant": value(rollout.WINNERS, "radiant")}
    record = {"opponent": 7, "outcome": "won", "winner": "radiant", "game_seconds": 300.0, "wall_seconds": 20.0,
              "statistics": {"last_hits": 12.5}, "rewards": {"gold": 1.5, "hero_death": -2.0}}
    meter = rollout.RolloutMeter()
    meter.game(record)
    meter.game(record | {"opponent": "scripted", "outcome": "lost", "winner": "dire"})
    assert value(rollout.GAMES, "past", "won") - before["past"] == 1
    assert value(rollout.GAMES, "scripted", "lost") - before["bot"] == 1
    assert value(rollout.GAINED, "gold") - before["gained"] == 3.0
    assert value(rollout.LOST, "hero_death") - before["lost"] == 4.0
    assert value(rollout.STATISTICS, "last_hits") - before["hits"] == 25.0
    assert value(rollout.WINNERS, "radiant") - before["radiant"] == 1


def test_the_buffer_counts_on_from_where_it_was() -> None:
    meter = optimizer.BufferMeter()
    before = value(optimizer.DROPPED, "unused")
    for unused in (3, 5):
        dropped = dict.fromkeys(DropReason, 0) | {DropReason.UNUSED: unused}
        meter.show(BufferStatistics(dropped=dropped, samples=4, nbytes=100), np.array([0, 1, 1, 6], np.int32))
    assert value(optimizer.DROPPED, "unused") - before == 5
    assert value(optimizer.BUFFER_AGE, "mean") == 2.0 and value(optimizer.BUFFER_AGE, "oldest") == 6.0
    assert value(optimizer.BUFFER_SAMPLES) == 4


def test_a_version_brings_losses_by_term() -> None:
    optimizer.show_version({"version": 9, "loss": 0.5, "loss_policy": -0.1, "entropy": 3.0, "learning_rate": 1e-4,
                            "flop": 8.64e19, "reuse_recent": None})
    assert value(optimizer.LOSS, "total") == 0.5 and value(optimizer.LOSS, "policy") == -0.1
    assert value(optimizer.VERSION) == 9 and value(optimizer.RUN_FLOP) == 8.64e19
    assert value(optimizer.LEARNING_RATE) == 1e-4


def test_effective_pool_size_is_shown() -> None:
    opponents.show_pool({10: 0.5, 20: 0.5})
    assert value(opponents.POOL_EFFECTIVE) == pytest.approx(2.0) and value(opponents.POOL_NEWEST) == 20
    opponents.show_pool({10: 0.999, 20: 0.001})
    assert value(opponents.POOL_EFFECTIVE) < 1.05 and value(opponents.POOL_SIZE) == 2


def test_versions_are_not_labels() -> None:
    before = value(evaluator.GAMES, "version", "won")
    for version in (10, 20):
        agent, opponent = (TeamPlayer(f"version-{v}", version=v) for v in (30, version))
        evaluator.count_game(Pairing(agent, opponent, 0), 1.0)
    assert value(evaluator.GAMES, "version", "won") - before == 2
    record = {"version": 20, "mu": 31.0, "sigma": 2.0, "draw_probability": 0.3, "win_rates": {"random": 0.75},
              "win_intervals": {"random": [0.6, 0.9]}, "statistics": {"last_hits": 8.0}}
    evaluator.show_rating(record, references=3)
    assert value(evaluator.RATING) == 31.0 and value(evaluator.WIN_RATE, "random") == 0.75
    assert value(evaluator.WIN_BOUND, "random", "high") == 0.9 and value(evaluator.DRAWS) == 0.3
    assert value(evaluator.STATISTICS, "last_hits") == 8.0 and value(evaluator.REFERENCES) == 3
    # The next version did not play the random bot, so the previous win rate is removed.
    evaluator.show_rating(record | {"version": 30, "win_rates": {"scripted": 0.5}, "win_intervals": {}}, references=3)
    assert [s.labels["opponent"] for m in evaluator.WIN_RATE.collect() for s in m.samples] == ["scripted"]


class Answers:
    """Redis client whose INFO is given."""

    def __init__(self, **said: Any) -> None:
        self.said = said

    def info(self) -> dict[str, Any]:
        if not self.said:
            raise ConnectionError("away")
        return self.said


def test_the_controller_shows_the_run_and_its_stores() -> None:
    live = [Instance("rollout", str(i), "", "", 0.0, 0.0, {}) for i in range(3)]
    controller.show_run(Status.RUNNING, 12, live)
    assert value(controller.STATE, "running") == 1 and value(controller.STATE, "paused") == 0
    assert value(controller.LIVE, "rollout") == 3 and value(controller.LIVE, "optimizer") == 0
    controller.show_run(Status.PAUSED, None, [])
    assert value(controller.STATE, "running") == 0 and value(controller.HEAD) == 12
    assert value(controller.LIVE, "rollout") == 0
    good = Answers(used_memory=5, maxmemory=10, aof_enabled=1, aof_last_write_status="ok")
    controller.show_stores({"state": good, "params": Answers()})  # type: ignore[dict-item]
    assert value(controller.REDIS_UP, "state") == 1 and value(controller.REDIS_UP, "params") == 0
    assert value(controller.REDIS_SAVED, "state") == 1 and value(controller.REDIS_LIMIT, "state") == 10
    full = Answers(used_memory=5, maxmemory=10, aof_enabled=1, aof_last_write_status="err")
    controller.show_stores({"state": full})  # type: ignore[dict-item]
    assert value(controller.REDIS_SAVED, "state") == 0


def test_environment_servers_come_from_rollouts() -> None:
    def said(identity: str, machine: str, *addresses: str, kind: str = "rollout") -> Instance:
        return Instance(kind, identity, "", f"{machine}:9100", 0.0, 0.0, {"environments": list(addresses)})

    shared = [said("0", "10.0.0.1", "10.0.9.1:50051", "10.0.9.2:50051"), said("1", "10.0.0.2", "10.0.9.2:50051")]
    assert environment_servers(shared) == {"10.0.9.1:50051", "10.0.9.2:50051"}
    # A server in each rollout's pod.
    assert len(environment_servers([said(str(i), f"10.0.0.{i}", "127.0.0.1:50051") for i in range(3)])) == 3
    # Two rollouts of one machine that play on one server.
    assert len(environment_servers([said(str(i), "127.0.0.1", "127.0.0.1:7000") for i in range(2)])) == 1
    nowhere = [said("0", "h", "x:1", kind="optimizer"), Instance("rollout", "2", "", "", 0.0, 0.0, {})]
    assert environment_servers(nowhere) == set()
    controller.show_run("running", 3, shared)
    assert value(controller.LIVE, "dota_env") == 2 and value(controller.LIVE, "rollout") == 2
    controller.show_run("running", 3, [])
    assert value(controller.LIVE, "dota_env") == 0

"""Writes of the training state hold the state of the moment at which they were made, and what a resume needs."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from five.agent.schedules import dump_schedules, hyperparameters_at
from five.services.optimizer.drain_time import DrainTime
from five.services.optimizer.state_writes import StateWrites
from tests.services.optimizer_cases import LAYOUT, StateInMemory, Versions, feed, training
from tests.services.test_optimizer_metrics import value


class Written:
    """Writes of a small optimizer whose versions stay in memory."""

    def __init__(self, folder: Path, drain_time: DrainTime | None = None) -> None:
        self.versions = Versions()
        self.client = StateInMemory()
        self.run = training(folder, self.versions, self.client)
        self.writes = StateWrites(self.run.learner, self.run.intake, self.versions, self.run.checkpoints, self.client,
                                  {"schema": "s", "layout": LAYOUT.hash}, drain_time)

    def weights(self) -> dict[str, np.ndarray]:
        return {n: t.detach().numpy().copy() for n, t in self.run.learner.policy.state_dict().items()}

    def change(self) -> None:
        with torch.no_grad():
            for parameter in self.run.learner.policy.parameters():
                parameter.add_(1.0)
        self.run.learner.gradient_steps += 5


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


def test_version_has_the_parameters_of_its_moment(written: Written) -> None:
    before = written.weights()
    written.run.learner.gradient_steps = 12
    write = written.writes.version(3, warm_up_until=0, hero_steps=0)
    assert written.versions.published == {}  # nothing is written yet
    written.change()
    write()
    published = written.versions.published[3]
    assert all(np.array_equal(published[name], array) for name, array in before.items())
    hyper = hyperparameters_at(written.client.plan, 3, 0)
    assert written.versions.meta[3] == {
        "schema": "s", "layout": LAYOUT.hash, "gradient_steps": 12, "hyperparameters": hyper.as_dict(),
        "reward_std": written.run.learner.policy.rewards.std()}


@pytest.mark.parametrize(("version", "warming"), [(7, True), (8, True), (9, False)])
def test_versions_of_the_warm_up_are_marked(written: Written, version: int, warming: bool) -> None:
    written.writes.version(version, warm_up_until=8, hero_steps=0)()
    assert written.versions.meta[version].get("warming", False) is warming


def test_checkpoint_has_the_state_of_its_moment(written: Written) -> None:
    feed(written.run, 3)
    written.run.learner.gradient_steps = 12
    state = {name: tensor.clone() for name, tensor in written.run.learner.state_dict().items()}
    learner, pacer = written.run.learner.extra(), written.run.intake.pacer.state_dict()
    buffered = written.run.intake.buffer.state_dict()
    write = written.writes.checkpoint(4, 9, 1000, 2.5e9)
    written.change()
    feed(written.run, 2, first=10)
    assert written.run.checkpoints.versions() == []
    write()
    assert written.run.checkpoints.versions() == [4]
    tensors, extra = written.run.checkpoints.load(4)
    assert tensors.keys() == state.keys() and all(torch.equal(tensors[n], t) for n, t in state.items())
    expected: dict[str, Any] = {
        "learner": learner, "pacer": pacer, "buffer": buffered, "hero_steps": 1000, "flop": 2.5e9, "schema": "s",
        "warm_up_until": 9, "schedules": dump_schedules(written.client.plan)}
    assert {name: extra[name] for name in expected} == expected
    assert extra["learner"]["gradient_steps"] == 12


def test_checkpoint_writes_are_measured_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed: list[float] = []
    now = [0.0]
    drain_time = DrainTime(10.0, 0, allowed.append, lambda: now[0])
    written = Written(tmp_path, drain_time)
    save, size = written.run.checkpoints.save, sum(t.nbytes for t in written.run.learner.state_dict().values())

    def slow(*arguments: Any) -> None:
        now[0] += 4.0
        time.sleep(0.05)
        save(*arguments)

    monkeypatch.setattr(written.run.checkpoints, "save", slow)
    count, seconds = value("written_checkpoints_total"), value("checkpoint_seconds_sum")
    written.writes.checkpoint(1, 0, 0, 0.0)()
    assert drain_time.seconds == pytest.approx(10.0 + 2.5 * 4.0)  # two and a half writes of 4 s each
    assert len(allowed) == 2 and written.run.checkpoints.versions() == [1]
    assert value("checkpoint_write_rate") == pytest.approx(size / 4.0)
    assert value("written_checkpoints_total") == count + 1
    assert 0.05 <= value("checkpoint_seconds_sum") - seconds < 30.0

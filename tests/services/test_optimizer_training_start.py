"""Start of training: a new run, a resume from a checkpoint, and the state that rank 0 sends to the others."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import redis
import torch
from torch import Tensor

from five.services.optimizer.interfaces import CheckpointMigrator
from five.services.optimizer.process_group import SINGLE_OPTIMIZER, OptimizerGroup
from five.services.optimizer.state_writes import StateWrites
from five.services.optimizer.training_start import StartState, TrainingStart
from tests.services.optimizer_cases import StateInMemory, Versions, stored_segment, training

FLOP = 2.5e9


def starting(folder: Path, versions: Versions, client: StateInMemory | None = None,
             group: OptimizerGroup = SINGLE_OPTIMIZER, migrations: CheckpointMigrator | None = None) -> TrainingStart:
    """Return the start of a small optimizer with its checkpoints in ``folder``."""
    run = training(folder, versions, client)
    writes = StateWrites(run.learner, run.intake, run.publisher, run.checkpoints, run.client, run.meta, None)
    return TrainingStart(run.learner, run.intake, run.publisher, run.checkpoints, run.client, writes, group, migrations)


def save_checkpoint(folder: Path, version: int, warm_up_until: int = 0) -> TrainingStart:
    """Store a checkpoint after 12 gradient steps and three segments; return the optimizer's state."""
    saved = starting(folder, Versions())
    for i in range(3):
        saved.intake.admit(stored_segment(str(i), seed=i))
    saved.intake.pacer.load_state_dict(saved.intake.pacer.state_dict())  # a load drops the credit
    saved.learner.gradient_steps = 12
    with torch.no_grad():
        for parameter in saved.learner.policy.parameters():
            parameter.add_(1.0)
    saved.writes.checkpoint(version, warm_up_until, saved.intake.hero_steps, FLOP)()
    return saved


def have_equal_state(one: TrainingStart, other: TrainingStart) -> bool:
    state, others = one.learner.state_dict(), other.learner.state_dict()
    return (state.keys() == others.keys() and all(torch.equal(others[name], t) for name, t in state.items())
            and one.learner.extra()["gradient_steps"] == other.learner.extra()["gradient_steps"]
            and one.intake.pacer.state_dict() == other.intake.pacer.state_dict())


def test_new_run_has_a_checkpoint_and_a_version(tmp_path: Path) -> None:
    versions, client = Versions(), StateInMemory()
    start = starting(tmp_path, versions, client)
    assert start.run() == StartState(version=0, checkpoint=0, warm_up_until=0, flop=0.0)
    assert list(versions.published) == start.checkpoints.versions() == [0] and client.events == []
    extra = start.checkpoints.load(0)[1]
    assert (extra["hero_steps"], extra["flop"], extra["learner"]["gradient_steps"]) == (0, 0.0, 0)


@pytest.mark.parametrize(("checkpoint", "published", "version"), [
    (2, None, 2), (2, 1, 2), (2, 2, 2), (2, 5, 5), (0, None, 0)])
def test_resume_continues_after_checkpoint_and_head(tmp_path: Path, checkpoint: int, published: int | None,
                                                    version: int) -> None:
    """A version whose publication was lost is published again."""
    saved = save_checkpoint(tmp_path, checkpoint, warm_up_until=3)
    details: list[dict[str, Any]] = []

    class Client(StateInMemory):
        def event(self, what: str, given: dict[str, Any]) -> None:
            super().event(what, given)
            details.append(given)

    versions, client = Versions(), Client()
    if published is not None:
        versions.publish(published, {}, {})
    start = starting(tmp_path, versions, client)
    assert start.run() == StartState(version, checkpoint, 3, FLOP)
    earlier = [] if published is None else [published]
    lost = [checkpoint] if published is None or published < checkpoint else []
    assert list(versions.published) == earlier + lost
    assert all(versions.meta[lost_version]["warming"] for lost_version in lost)
    assert client.events == ["optimizer.resumed"]
    assert details == [{"checkpoint": checkpoint, "version": version, "optimizers": 1, "restarts": 0}]
    assert have_equal_state(start, saved) and start.intake.hero_steps == saved.intake.hero_steps > 0
    assert start.checkpoints.versions() == [checkpoint]


def test_checkpoint_of_an_earlier_release_has_no_warm_up(tmp_path: Path) -> None:
    """Nor does it count operations."""
    saved = save_checkpoint(tmp_path, 4, warm_up_until=9)
    tensors, extra = saved.checkpoints.load(4)
    del extra["warm_up_until"], extra["flop"]
    saved.checkpoints.save(4, tensors, extra)
    assert starting(tmp_path, Versions()).run() == StartState(version=4, checkpoint=4, warm_up_until=0, flop=0.0)


def test_checkpoint_is_migrated_before_it_is_loaded(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, 4)

    class Migrator:
        def migrate(self, tensors: dict[str, Tensor], extra: dict[str, Any]
                    ) -> tuple[dict[str, Tensor], dict[str, Any]]:
            doubled = {name: 2 * tensor if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}
            return doubled, {**extra, "hero_steps": 99}

    unchanged, migrated = starting(tmp_path, Versions()), starting(tmp_path, Versions(), migrations=Migrator())
    assert unchanged.run() == migrated.run()
    assert migrated.intake.hero_steps == 99
    assert all(torch.equal(2 * parameter, doubled) for parameter, doubled in zip(
        unchanged.learner.policy.parameters(), migrated.learner.policy.parameters(), strict=True))


def test_versions_without_a_checkpoint_are_not_continued(tmp_path: Path) -> None:
    versions = Versions()
    versions.publish(3, {}, {})
    start = starting(tmp_path, versions)
    with pytest.raises(RuntimeError, match="the run has version 3 but no checkpoint"):
        start.run()
    assert start.checkpoints.versions() == [] and list(versions.published) == [3]


def test_start_waits_for_an_unavailable_store(tmp_path: Path) -> None:
    class OnceUnavailable(Versions):
        attempts = 0

        def publish(self, version: int, tensors: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
            self.attempts += 1
            if self.attempts == 1:
                raise redis.ConnectionError("no Redis answers")
            super().publish(version, tensors, meta)

    versions = OnceUnavailable()
    assert starting(tmp_path, versions).run() == StartState()
    assert versions.attempts == 2 and list(versions.published) == [0]


def test_start_raises_the_error_of_a_write(tmp_path: Path) -> None:
    class Refusing(Versions):
        def publish(self, version: int, tensors: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
            raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        starting(tmp_path, Refusing()).run()


def two_ranks() -> tuple[OptimizerGroup, OptimizerGroup]:
    """Return the groups of rank 0 and rank 1; rank 1 receives what rank 0 has sent before."""
    sent = bytearray()

    class Group(OptimizerGroup):
        def broadcast_bytes(self, pieces: Iterable[memoryview]) -> npt.NDArray[np.uint8]:
            sent.extend(b"".join(pieces))
            return np.frombuffer(sent, np.uint8).copy() if self.rank else np.empty(0, np.uint8)

    return Group(0, 2), Group(1, 2)


def test_other_rank_receives_the_state_of_rank_0(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, 2, warm_up_until=8)
    versions, unused = Versions(), Versions()
    versions.publish(5, {}, {})
    first, second = two_ranks()
    sender, receiver = starting(tmp_path, versions, group=first), starting(tmp_path, unused, group=second)
    state = sender.run()
    assert state == StartState(version=5, checkpoint=2, warm_up_until=8, flop=FLOP)
    assert receiver.run() == replace(state, flop=0.0)
    assert have_equal_state(sender, receiver) and receiver.learner.gradient_steps == 12
    assert receiver.intake.hero_steps == 0 and unused.published == {}


def test_other_rank_requires_the_checkpoint_of_rank_0(tmp_path: Path) -> None:
    first, second = two_ranks()
    starting(tmp_path / "0", Versions(), group=first).run()
    with pytest.raises(RuntimeError, match=r"optimizer 1 does not see the checkpoint of optimizer 0 .* blobs.url"):
        starting(tmp_path / "1", Versions(), group=second).run()

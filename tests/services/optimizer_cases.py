"""An optimizer on a small game without a network: segments, an in-memory publisher and state client."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dota.config import GameConfig, ObservationConfig
from dota.spaces import Layout
from five.agent.config import BufferConfig, LearnerConfig, ModelConfig, ScheduleConfig, SchedulesConfig
from five.agent.learning.buffer import SampleBuffer
from five.agent.learning.learner import Learner
from five.agent.learning.pacing import Pacer
from five.agent.learning.samples import STATE_PREFIX, Arrays, learning_specs
from five.agent.learning.segments import Segment
from five.agent.model.policy import Policy
from five.agent.model.recurrent_state import state_specs
from five.agent.schedules import Hyperparameters, hyperparameters_at
from five.services.optimizer.checkpoints import Checkpoints
from five.services.optimizer.intake import Intake
from five.services.optimizer.stored_arrays import SampleCollator, StoredArrays
from five.services.optimizer.traced_collator import TracedCollator
from five.services.optimizer.training import Training
from rapid.blobs import BlobStore

Array = npt.NDArray[Any]
UNROLL = 4
GAME = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], observation=ObservationConfig(
    allied_creeps=2, neutral_creeps=0, buildings=2, wards=0, couriers=0, hero_modifiers=1, unit_modifiers=0, pickups=0,
    minimap=2, nearby_map=4, passability=2))
LAYOUT = Layout(GAME)
MODEL = ModelConfig(lstm=8, lstm_input=8, key=4, unit_hidden=4, unit=4, set_hidden=4, set=4, unit_embedding=2,
                    animation_embedding=2, modifier_embedding=2, ability_embedding=2, item_embedding=2,
                    pickup_embedding=2, build_embedding=2, area_embedding=2, conv_filters=2, auxiliary_hidden=4)
LEARNING = LearnerConfig(lstm_unroll_length=UNROLL, batch_samples=4, gradient_steps_per_iteration=2,
                         initial_hold_steps=0)
BUFFER = BufferConfig(capacity_samples=32, minimum_samples=4, max_age_versions=3)
STEP_SPECS = {**LAYOUT.array_specs(), **learning_specs(1, LAYOUT.groups["enemy_buildings"].count)}
SAMPLE_SPECS = {f"state/{n}": spec for n, spec in state_specs(LAYOUT, MODEL).items()}


HYPER: Hyperparameters = hyperparameters_at(SchedulesConfig(), 0, 0)


def segment(samples: int = 2, version: int = 0, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    arrays: dict[str, Array] = {}
    for name, (shape, dtype) in STEP_SPECS.items():
        full = (samples * UNROLL, *shape)
        if np.dtype(dtype).kind == "f":
            arrays[name] = rng.normal(size=full).astype(dtype)
        else:
            arrays[name] = np.zeros(full, dtype)
    arrays["available"][..., :3] = [1, 2, 3]
    arrays["shared"] *= rng.random(arrays["shared"].shape) < 0.2
    arrays["mask"][:] = 1
    arrays["outcome_mask"][:] = 0
    arrays["versions"][:] = version
    arrays["behaviour_logp"][:] = -3.0
    arrays["rank_label"][:] = 0.2
    for name, (shape, dtype) in SAMPLE_SPECS.items():
        arrays[name] = rng.normal(size=(samples, *shape)).astype(dtype)
    return arrays


class Versions:
    """Publisher in memory."""

    def __init__(self) -> None:
        self.published: dict[int, dict[str, Array]] = {}
        self.meta: dict[int, Mapping[str, Any]] = {}

    def head(self) -> int | None:
        return max(self.published, default=None)

    def publish(self, version: int, tensors: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        assert version not in self.published
        self.published[version] = {n: np.array(t) for n, t in tensors.items()}
        self.meta[version] = meta


class StateInMemory:
    """State client in memory."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.events: list[str] = []
        self.playing = True
        self.plan = SchedulesConfig(learning_rate=ScheduleConfig(initial=1e-3))

    def active(self) -> bool:
        return self.playing

    def schedules(self) -> SchedulesConfig:
        return self.plan

    def record(self, record: dict[str, Any]) -> None:
        self.records.append(record)

    def event(self, what: str, details: dict[str, Any]) -> None:
        self.events.append(what)


def training(folder: Path, versions: Versions, client: StateInMemory | None = None,
             traced: TracedCollator | None = None) -> Training:
    torch.manual_seed(3)
    learner = Learner(Policy(LAYOUT, MODEL), LEARNING, "cpu")
    checkpoints = Checkpoints(BlobStore(str(folder)), "trial", 2)
    return Training(learner, intake(traced=traced), LEARNING, versions, checkpoints, client or StateInMemory(),
                    {"schema": "s", "layout": LAYOUT.hash}, checkpoint_every=1)


def feed(run: Training, segments: int, first: int = 0) -> None:
    for i in range(first, first + segments):
        run.intake.admit(stored_segment(str(i), version=run.version, seed=i))


def until(run: Training, version: int, patience: int | None = None) -> None:
    """Learn until the version is made. Stop after ``patience`` turns; by default fail after 400."""
    left = [400 if patience is None else patience]

    def stop() -> bool:
        left[0] -= 1
        return run.version >= version or left[0] < 0

    run.run(stop)
    assert patience is not None or run.version >= version, (
        f"version {version} was not made in 400 turns: the newest is {run.version}, blocked: "
        f"{run.blocked_reason or 'no'}, starved: {run.starved.is_waiting}, samples: {len(run.intake.buffer)}")


def stored_segment(identity: str, samples: int = 2, version: int = 0, seed: int = 0) -> Segment[StoredArrays]:
    arrays = StoredArrays.from_arrays(segment(samples, version, seed), samples)
    return Segment(arrays, samples, 2.0, 3.0, samples * UNROLL, version, version, segment_id=identity)


def intake(buffer: BufferConfig = BUFFER, traced: TracedCollator | None = None) -> Intake:
    return Intake(SampleBuffer(buffer, traced or SampleCollator()), Pacer(buffer, LEARNING.batch_samples), traced)


def decoded_sample(arrays: StoredArrays, index: int) -> Arrays:
    """Decode one sample: arrays [T, ...], states without T."""
    batch: Arrays = {}
    SampleCollator()(batch, [arrays], [index], np.empty)
    return {name: array[0] if name.startswith(STATE_PREFIX) else array[:, 0] for name, array in batch.items()}

"""Segments in, samples in the buffer, versions out: the optimizer without a network between."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from dota.config import GameConfig, ObservationConfig
from dota.spaces import Layout
from five.config import BufferConfig, LearnerConfig, ModelConfig, ScheduleConfig, SchedulesConfig
from five.learning.buffer import SampleBuffer
from five.learning.learner import Learner
from five.learning.pacing import Pacer
from five.learning.samples import learning_specs
from five.model.policy import Policy
from five.model.states import state_specs
from five.schedules import Hyperparameters, hyperparameters_at
from protos.five.v1 import experience_pb2
from rapid import wire
from rapid.blobs import BlobStore
from rapid.store.errors import Corrupt
from rapid.telemetry.metrics import definitions
from services.optimizer import metrics as page
from services.optimizer.checkpoints import Checkpoints
from services.optimizer.intake import Intake, Offer, PackedSample, unpack
from services.optimizer.records import Window, quantile
from services.optimizer.service import ExperienceService
from services.optimizer.training import Training

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


HYPER: Hyperparameters = hyperparameters_at(SchedulesConfig(), 0)


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
    arrays["versions"][:] = version
    arrays["behaviour_logp"][:] = -3.0
    arrays["rank_label"][:] = 0.2
    for name, (shape, dtype) in SAMPLE_SPECS.items():
        arrays[name] = rng.normal(size=(samples, *shape)).astype(dtype)
    return arrays


def offer(identity: str, samples: int = 2, version: int = 0) -> Offer:
    return Offer(identity, samples, segment(samples, version), 2.0, 3.0, samples * UNROLL, version)


def intake(buffer: BufferConfig = BUFFER) -> Intake:
    return Intake(SampleBuffer(buffer, unpack), Pacer(buffer, LEARNING.batch_samples))


def test_a_sample_rests_packed_and_comes_back_the_same() -> None:
    arrays = segment(1)
    sample = PackedSample(arrays)
    back = sample.arrays()
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array)
    assert sample.nbytes < sum(a.nbytes for a in arrays.values())


def test_a_segment_counts_once() -> None:
    door = intake()
    assert door.take(offer("a"))[0] == "accepted"
    assert door.take(offer("a"))[0] == "duplicate"
    assert len(door.buffer) == 2 and door.pacer.received == 2
    assert door.hero_steps == 2 * UNROLL
    rewards = door.take_rewards()
    assert (rewards.count, rewards.total, rewards.squares) == (8, 2.0, 3.0)
    assert door.take_rewards().count == 0


def test_an_old_segment_is_refused_with_its_age() -> None:
    door = intake()
    door.version = 10
    verdict, reason = door.take(offer("a", version=6))
    assert verdict == "too_old" and "4 versions old" in reason
    assert door.pacer.received == 0 and door.take_rewards().count == 0
    assert door.take(offer("b", version=7))[0] == "accepted"


def test_a_step_waits_until_reuse_allows_it() -> None:
    door = intake()
    assert door.draw(4) is None
    for i in range(2):
        door.take(offer(str(i)))
    drawn = door.draw(4)
    assert drawn is not None and drawn.arrays["actions"].shape == (UNROLL, 4, 1, 6)
    assert door.draw(4) is not None  # consumed may run ahead by one batch
    assert door.draw(4) is None


def service(door: Intake) -> ExperienceService:
    return ExperienceService("trial", LAYOUT.hash, UNROLL, STEP_SPECS, SAMPLE_SPECS, door)


def request(**changes: Any) -> experience_pb2.PushRequest:
    arrays = changes.pop("arrays", None) or segment()
    values: dict[str, Any] = {
        "segment_id": "a", "run": "trial", "samples": 2, "reward_count": 8,
        "tensors": wire.encode_set(arrays, changes.pop("layout", LAYOUT.hash), ("shared", "private"))}
    return experience_pb2.PushRequest(**(values | changes))


def test_a_good_segment_passes_the_door() -> None:
    checked = service(intake()).check(request())
    np.testing.assert_array_equal(checked.arrays["shared"], segment()["shared"])


@pytest.mark.parametrize(("changes", "words"), [
    ({"run": "other"}, "run 'trial'"),
    ({"samples": 0}, "samples is 0"),
    ({"samples": 3}, "expected"),
    ({"segment_id": ""}, "segment_id"),
    ({"reward_sum": float("nan")}, "not finite"),
    ({"layout": "0123456789abcdef"}, LAYOUT.hash),
    ({"arrays": {n: a for n, a in segment().items() if n != "actions"}}, "'actions' is missing"),
    ({"arrays": segment() | {"extra": np.zeros(2, np.float32)}}, "'extra'"),
    ({"arrays": segment() | {"mask": np.zeros((8, 1), np.float16)}}, "'mask'"),
])
def test_a_bad_segment_is_refused_by_name(changes: dict[str, Any], words: str) -> None:
    door = intake()
    with pytest.raises(ValueError, match=words):
        service(door).check(request(**changes))
    assert len(door.buffer) == 0


class Versions:
    """Published versions, in memory."""

    def __init__(self) -> None:
        self.published: dict[int, dict[str, Array]] = {}
        self.meta: dict[int, Mapping[str, Any]] = {}

    def head(self) -> int | None:
        return max(self.published, default=None)

    def publish(self, version: int, tensors: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        assert version not in self.published
        self.published[version] = {n: np.array(t) for n, t in tensors.items()}
        self.meta[version] = meta


class Desk:
    """Records, in memory."""

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


def training(folder: Path, versions: Versions, desk: Desk | None = None) -> Training:
    torch.manual_seed(3)
    learner = Learner(Policy(LAYOUT, MODEL), LEARNING, "cpu")
    checkpoints = Checkpoints(BlobStore(str(folder)), "trial", 2)
    return Training(learner, intake(), LEARNING, versions, checkpoints, desk or Desk(),
                    {"schema": "s", "layout": LAYOUT.hash}, checkpoint_every=1)


def feed(run: Training, segments: int, first: int = 0) -> None:
    for i in range(first, first + segments):
        run.intake.take(Offer(str(i), 2, segment(2, run.version, seed=i), 1.0, 2.0, 8, run.version))


def until(run: Training, version: int, patience: int = 400) -> None:
    left = [patience]

    def stop() -> bool:
        left[0] -= 1
        return run.version >= version or left[0] < 0

    run.run(stop)


def test_a_new_run_publishes_version_0_and_then_one_every_so_many_steps(tmp_path: Path) -> None:
    versions, desk = Versions(), Desk()
    run = training(tmp_path, versions, desk)
    run.start()
    assert list(versions.published) == [0] and versions.meta[0]["layout"] == LAYOUT.hash
    feed(run, 4)
    until(run, 1)
    assert list(versions.published) == [0, 1]
    assert run.learner.gradient_steps == 2
    assert any((versions.published[0][n] != t).any() for n, t in versions.published[1].items())
    (record,) = desk.records
    assert record["version"] == 1 and record["staleness_median"] == 0.0
    assert record["reuse"] == pytest.approx(1.0, abs=0.51)
    assert versions.meta[1]["hyperparameters"]["learning_rate"] == 1e-3


def ages_shown() -> dict[str, float]:
    """Timesteps by bound of age, as the metrics page has them."""
    (family,) = page.STALENESS.collect()
    return {s.labels["le"]: s.value for s in family.samples if s.name.endswith("_bucket")}


def test_staleness_is_measured_at_consumption_and_shown_under_its_own_name(tmp_path: Path) -> None:
    """Known ages of what is learned from, in the record and on the metrics page; neither uses nor reuse."""
    desk = Desk()
    run = training(tmp_path, Versions(), desk)
    run.start()
    run.version = run.intake.version = 7
    for i, version in enumerate((7, 7, 5, 5)):  # 2 segments of 2 samples of 4 steps each: two steps of 4 samples
        run.intake.take(Offer(str(i), 2, segment(2, version, seed=i), 1.0, 2.0, 8, version))
    before = ages_shown()
    until(run, 8)
    (record,) = desk.records
    consumed = {le: value - before[le] for le, value in ages_shown().items()}
    assert consumed["+Inf"] == 2 * 4 * UNROLL
    young, old = consumed["0.0"], consumed["+Inf"] - consumed["1.0"]
    assert young + old == consumed["+Inf"] and 0 < young < consumed["+Inf"]  # ages 0 and 2, none of 1
    assert consumed["2.0"] == consumed["+Inf"]
    assert record["staleness_histogram"] == [young, 0, old]
    assert record["staleness_mean"] == pytest.approx(2 * old / consumed["+Inf"])
    assert {d.name for d in definitions() if "staleness" in d.name} == {"five_optimizer_staleness_versions"}


def test_learning_rests_while_the_run_is_paused(tmp_path: Path) -> None:
    desk = Desk()
    run = training(tmp_path, Versions(), desk)
    run.start()
    feed(run, 4)
    desk.playing = False
    until(run, 1, patience=20)
    assert run.version == 0 and run.learner.gradient_steps == 0


def test_a_restart_goes_on_from_the_checkpoint_to_the_bit(tmp_path: Path) -> None:
    versions = Versions()
    first = training(tmp_path / "a", versions)
    first.start()
    feed(first, 4)
    until(first, 1)

    again = training(tmp_path / "a", versions)
    again.start()
    assert again.version == 1 and again.desk.events == ["optimizer.resumed"]  # type: ignore[attr-defined]
    batch = {n: np.repeat(a[:UNROLL, None], 2, 1) if not n.startswith("state/") else np.repeat(a[:1], 2, 0)
             for n, a in segment(1, seed=9).items()}
    for run in (first, again):
        run.learner.step(batch, HYPER)
    ours, theirs = first.learner.state_dict(), again.learner.state_dict()
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name


def test_versions_behind_a_lost_checkpoint_keep_their_numbers(tmp_path: Path) -> None:
    versions = Versions()
    run = training(tmp_path, versions)
    run.start()
    versions.published[5] = versions.published[0]
    again = training(tmp_path, versions)
    again.start()
    assert again.version == 5
    feed(again, 4)
    until(again, 6)
    assert 6 in versions.published


def test_a_run_without_its_checkpoints_refuses_to_start_over(tmp_path: Path) -> None:
    versions = Versions()
    training(tmp_path / "a", versions).start()
    with pytest.raises(RuntimeError, match="blobs.url"):
        training(tmp_path / "b", versions).start()


def test_old_checkpoints_go(tmp_path: Path) -> None:
    store = Checkpoints(BlobStore(str(tmp_path)), "trial", 2)
    for v in range(4):
        store.save(v, {"w": torch.full((3,), float(v))}, {"v": v})
    assert store.versions() == [2, 3]
    tensors, extra = store.load(3)
    assert tensors["w"].tolist() == [3.0] * 3 and extra == {"v": 3}


def test_a_checkpoint_comes_back_bit_for_bit(tmp_path: Path) -> None:
    tensors = {"w": torch.randn(5, 3).T, "half": torch.randn(3).half(), "count": torch.tensor([2.5]).double(),
               "step": torch.tensor(3.0), "seen": torch.tensor([True, False]), "n": torch.arange(4)}
    extra = {"schedule": [[0, 1e-4]], "big": 2**60, "name": "x"}
    store = Checkpoints(BlobStore(str(tmp_path)), "trial", 2)
    store.save(7, tensors, extra)
    back, found = store.load(7)
    assert found == extra and back.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert back[name].dtype == tensor.dtype and torch.equal(back[name], tensor), name


def damage(folder: Path, store: BlobStore, version: int) -> None:
    digest = store.ref(f"trial/checkpoints/{version:012d}").digest
    path = folder / "objects" / digest[:2] / digest
    path.write_bytes(path.read_bytes()[:-1])


def test_a_damaged_newest_checkpoint_is_passed_over_but_not_all(tmp_path: Path) -> None:
    blobs = BlobStore(str(tmp_path))
    store = Checkpoints(blobs, "trial", 2)
    assert store.newest() is None
    for v in (1, 2):
        store.save(v, {"w": torch.full((3,), float(v))}, {})
    damage(tmp_path, blobs, 2)
    found = store.newest()
    assert found is not None and found[0] == 1
    damage(tmp_path, blobs, 1)
    with pytest.raises(Corrupt, match=r"no checkpoint can be read: version 2.*version 1"):
        store.newest()


def test_a_run_goes_on_from_the_last_whole_checkpoint_behind_all_versions(tmp_path: Path) -> None:
    versions = Versions()
    run = training(tmp_path, versions)
    run.start()
    feed(run, 8)
    until(run, 2)
    damage(tmp_path, BlobStore(str(tmp_path)), 2)
    again = training(tmp_path, versions)
    again.start()
    assert again.version == 2 and again.learner.gradient_steps == 2  # version 2's number, version 1's learner


def test_a_save_that_fails_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = BlobStore(str(tmp_path))
    store = Checkpoints(blobs, "trial", 2)
    store.save(1, {"w": torch.ones(3)}, {})
    write, calls = blobs._write, 0

    def full(path: str, pieces: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > 1:  # the contents are there, their name is not
            raise OSError("disk full")
        write(path, pieces)

    monkeypatch.setattr(blobs, "_write", full)
    with pytest.raises(OSError, match="disk full"):
        store.save(2, {"w": torch.zeros(3)}, {})
    found = store.newest()
    assert found is not None and found[0] == 1


KILLED = """
import sys, torch
from rapid.blobs import BlobStore
from rapid.store.errors import Corrupt
from rapid.telemetry.metrics import definitions
from services.optimizer import metrics as page
from services.optimizer.checkpoints import Checkpoints
store = Checkpoints(BlobStore(sys.argv[1]), "trial", 2)
for version in range(100000):
    store.save(version, {"w": torch.full((300_000,), float(version))}, {"version": version})
    print(version, flush=True)
"""


def test_a_process_killed_while_saving_leaves_whole_checkpoints(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE,
                               cwd=Path(__file__).parents[2], env={**os.environ, "PYTHONPATH": "libs:."})
    assert process.stdout is not None
    for _ in range(5):
        process.stdout.readline()
    process.kill()
    process.wait()
    store = Checkpoints(BlobStore(str(tmp_path)), "trial", 2)
    for version in store.versions():
        tensors, extra = store.load(version)
        assert extra == {"version": version} and (tensors["w"] == version).all()
    assert store.versions()[-1] >= 4


def test_staleness_is_counted_by_timestep_and_padding_is_not() -> None:
    window = Window()
    window.add({"loss": 2.0}, np.array([[0, 0], [1, -1], [3, -1]], np.int32), np.array([1, 2], np.int32), 0.5, 4)
    record = window.close(7, HYPER, 0.0)
    assert record["staleness_histogram"] == [2, 1, 0, 1]
    assert record["staleness_mean"] == 1.0 and record["staleness_median"] == 0.0 and record["staleness_p95"] == 3.0
    assert record["mean_uses"] == 1.5 and record["loss"] == 2.0


def test_quantiles_are_whole_versions() -> None:
    shares = np.array([0.5, 0.5, 0.9, 1.0])
    assert [quantile(shares, s) for s in (0.1, 0.5, 0.51, 0.95)] == [0.0, 0.0, 2.0, 3.0]

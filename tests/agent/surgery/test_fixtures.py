"""Synthetic versions and samples are of a kind that shows wrong weights."""

import numpy as np
import pytest

from five.agent.model.input_structure import id_rows
from five.agent.surgery.fixtures import make_random_samples, make_trained_version
from five.agent.surgery.migrate import require_version_tensors
from five.agent.surgery.observation_labels import SPACES
from tests.agent.surgery.agents import agent
from tests.dota.watching import read

SPEC = agent(2)
LAYOUT = SPEC.layout


def test_trained_version_has_no_idle_weights() -> None:
    version = make_trained_version(SPEC)
    require_version_tensors(SPEC, version)
    for name, array in version.items():
        assert array.dtype == SPEC.labels[name].dtype and np.isfinite(array).all(), name
        rows = array[1:] if SPEC.labels[name].none else array
        assert rows.all(), f"{name}: an entry is zero"
        assert not SPEC.labels[name].none or not array[0].any(), name
        assert len(np.unique(rows)) > 0.9 * rows.size or name.endswith("count"), f"{name}: entries are equal"
    assert (version["normaliser.count"] == 1e5).all()
    deviation = (version["normaliser.squares"] / version["normaliser.count"]) ** 0.5
    assert 0.4 < deviation.min() < 0.6 and 1.6 < deviation.max() < 1.8
    assert np.std(version["normaliser.mean"]) == pytest.approx(0.5, abs=0.05)
    for name in ("heads.primary.weight", "value.weight"):
        scale = (0.1 if "heads" in name else 1.0) * 24**-0.5
        assert 9 * scale < np.abs(version[name]).max() <= 10 * scale, name
    assert version["heads.gate.weight"][1:].std() == pytest.approx(1, abs=0.1)


def test_seed_determines_version_and_samples() -> None:
    one, two, three = (make_trained_version(SPEC, seed) for seed in (0, 0, 1))
    assert all(np.array_equal(one[name], two[name]) for name in one)
    assert not np.array_equal(one["value.weight"], three["value.weight"])
    first, same, other = (make_random_samples(SPEC, seed=seed) for seed in (1, 1, 2))
    for name, array in make_random_samples(SPEC).observation.items():
        np.testing.assert_array_equal(array, first.observation[name], err_msg="seed 1 is the default")
        np.testing.assert_array_equal(array, same.observation[name])
        assert not np.array_equal(array, other.observation[name]), name


def test_samples_are_valid_and_varied() -> None:
    samples = make_random_samples(SPEC, steps=7, teams=4)
    for name, (shape, dtype) in LAYOUT.array_specs().items():
        assert samples.observation[name].shape == (7, 4, *shape) and samples.observation[name].dtype == dtype
    assert samples.resets.shape == (7, 4) and np.argwhere(samples.resets).tolist() == [[3, 0]]
    assert {name: array.shape for name, array in samples.state.items()} == {
        "h": (4, 2, 24), "c": (4, 2, 24), "target_embedding": (4, 2, 6)}
    assert all(array.std() == pytest.approx(0.5, abs=0.12) for array in samples.state.values())
    offered = (samples.observation["available"] != 0).sum(-1)
    assert offered.min() >= 1 and offered.max() <= 12 and len(np.unique(offered)) > 4
    listed = np.arange(samples.observation["available"].shape[-1]) < offered[..., None]
    np.testing.assert_array_equal(samples.observation["available"] != 0, listed)
    available = samples.observation["available"]
    assert available.max() < len(LAYOUT.actions) and all(
        len(set(row[row != 0])) == (row != 0).sum() for row in available.reshape(-1, available.shape[-1]))
    parts = [offered - 1, 3, LAYOUT.units - 1, LAYOUT.units - 1, 8, 8]
    for part, highest in enumerate(parts):
        assert (samples.actions[..., part] >= 0).all() and (samples.actions[..., part] <= highest).all(), part
        assert len(np.unique(samples.actions[..., part])) >= 4, part
    assert samples.actions.shape == (7, 4, 2, 6) and samples.actions[..., 4:].max() == 8


def test_sampled_ids_are_known_and_targets_are_present() -> None:
    samples = make_random_samples(SPEC, steps=20, teams=5)
    at = [(t, b) for t in range(20) for b in range(5)]
    for name, space in SPACES.items():
        block, field = name.split(".")
        found = np.concatenate([read(LAYOUT, samples.observation, block, field, i).ravel() for i in at])
        below = {"target_slot": LAYOUT.units + 1}.get(space) or id_rows(SPEC.model, space)  # type: ignore[arg-type]
        assert 0 == found.min() < found.max() < below, name
        assert 0.2 < (found != 0).mean() < 0.7, f"{name}: rows are present or absent"
    for i in at:
        present = read(LAYOUT, samples.observation, "units", "unit", i)[:, 0] != 0
        assert present[:LAYOUT.heroes].all(), "own heroes act"
        valid = samples.observation["target_mask"][i].astype(bool).any((0, 1))
        assert not (valid & ~present).any() and valid.any()

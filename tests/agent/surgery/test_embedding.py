from typing import Any

import numpy as np
import pytest

from five.agent.surgery import lint_plan, migrate_policy
from five.agent.surgery.check import check_plan
from tests.agent.surgery.agents import agent, plan, recorded, trained
from tests.agent.surgery.test_learner import learned

SPACES = ("item", "area", "unit", "animation")


@pytest.mark.parametrize("space", SPACES)
def test_low_rank_embedding_is_narrowed_without_loss(space: str) -> None:
    """An embedding of rank 2 in 6 columns fits into 2."""
    spec = agent(5, model={f"{space}_embedding": 6})
    version = trained(spec)
    rng = np.random.default_rng(0)
    table = f"embeddings.tables.{space}"
    rows = len(version[table])
    version[table] = (rng.normal(size=(rows, 2)) @ rng.normal(size=(2, 6))).astype(np.float32)
    version[table][0] = 0
    of = plan(spec, {"kind": "embedding", "space": space, "to": 2})
    report = check_plan(of, spec, version, recorded(spec))
    assert report.ok and report.difference.max_logit_change < 1e-4 and not report.steps[0].exact
    made = migrate_policy(of, spec, version)
    assert made[table].shape == (rows, 2) and not made[table][0].any()
    assert [f.code for f in lint_plan(of, spec)] == ["lossy", "memory"]


def test_narrowing_is_the_best_approximation() -> None:
    spec = agent(1, model={"pickup_embedding": 5})
    version = trained(spec)
    of = plan(spec, {"kind": "embedding", "space": "pickup", "to": 3})
    made = migrate_policy(of, spec, version)
    table, layer = "embeddings.tables.pickup", "trunk.sets.pickups.first.weight"
    product = version[table] @ version[layer][:, -5:].T
    kept = made[table] @ made[layer][:, -3:].T
    singular = np.linalg.svd(product, compute_uv=False)
    assert np.linalg.norm(product - kept) == pytest.approx(np.sqrt((singular[3:] ** 2).sum()), rel=1e-4)
    np.testing.assert_array_equal(made[layer][:, :-3], version[layer][:, :-5])


@pytest.mark.parametrize(("space", "observation"), [
    ("area", {"omit": ("nearby_map.area_effect",)}), ("pickup", {"pickups": 0})])
def test_embedding_that_nothing_reads_is_narrowed(space: str, observation: dict[str, Any]) -> None:
    spec = agent(1, observation, {f"{space}_embedding": 6})
    of = plan(spec, {"kind": "embedding", "space": space, "to": 2})
    version, table = trained(spec), f"embeddings.tables.{space}"
    np.testing.assert_array_equal(migrate_policy(of, spec, version)[table], version[table][:, :2])
    report = check_plan(of, spec, version, recorded(spec))
    assert report.ok and report.difference.max_logit_change == report.difference.max_value_change == 0


def test_too_narrow_embedding_exceeds_the_bounds() -> None:
    spec = agent(1, model={"unit_embedding": 8})
    of = plan(spec, {"kind": "embedding", "space": "unit", "to": 1}, bounds={"max_logit_change": 0.01})
    report = check_plan(of, spec, trained(spec), recorded(spec))
    assert not report.ok and report.difference.max_logit_change > 0.01


def test_moments_of_rotated_columns_are_zero() -> None:
    from five.agent.surgery import migrate_learner

    spec = agent(1)
    learner = learned(spec)
    of = plan(spec, {"kind": "embedding", "space": "item", "to": 2})
    old, (new, _) = learner.state_dict(), migrate_learner(of, spec, learner.state_dict(), learner.extra())
    layer, tower = "trunk.sets.hero_items.first.weight", "trunk.towers.allied_heroes.first.shared.weight"
    for kind in ("adam/m/", "adam/v/", "clip/v/"):
        assert not new[kind + "embeddings.tables.item"].any()
        for name in (layer, tower):
            assert (new[kind + name][:, :-2] == old[kind + name][:, :-3]).all() and old[kind + name].any()
            assert not new[kind + name][:, -2:].any()

"""Initial statistics of new inputs."""

import numpy as np

from five.agent.surgery import AgentSpec, migrate_policy
from tests.agent.surgery.agents import agent, plan, trained


def statistics(spec: AgentSpec, version: dict[str, np.ndarray], field: str) -> np.ndarray:
    """Return count, mean and squares of each number of a field, [3, n]."""
    labels = spec.labels["normaliser.mean"].axes[0].labels
    at = [i for i, label in enumerate(labels) if label.rpartition(":")[2].split("[")[0].split("/")[0] == field]
    assert at, f"{field} has no statistics"
    return np.stack([version[f"normaliser.{kind}"][at] for kind in ("count", "mean", "squares")])


def test_prior_sets_the_statistics_of_its_field() -> None:
    spec = agent(1, {"omit": ("global.time", "units.position", "allied_heroes.passability", "heroes.gold")})
    of = plan(spec, {"kind": "add_observations", "fields": [
        "global.time", "units.position", "allied_heroes.passability", "heroes.gold"], "prior": {
            "global.time": {"mean": 40.0, "std": 3.0, "rows": 100}, "units.position": {"mean": -1.0},
            "allied_heroes.passability": {"std": 0.5, "rows": 7}}})
    version = trained(spec)
    made, after = migrate_policy(of, spec, version), of.target(spec)
    for field, expected in (("global.time", (100, 40, 900)), ("units.position", (10_000, -1, 10_000)),
                            ("allied_heroes.passability", (7, 0, 1.75)), ("heroes.gold", (0, 0, 0))):
        found = statistics(after, made, field)
        np.testing.assert_array_equal(found, np.repeat(np.array(expected)[:, None], found.shape[1], 1), err_msg=field)
    for field in ("global.day", "units.vector", "items.charges"):
        np.testing.assert_array_equal(statistics(after, made, field), statistics(spec, version, field))
    assert (made["rewards.mean"] == version["rewards.mean"]).all()


def test_prior_of_new_slots_leaves_old_groups_unchanged() -> None:
    spec = agent(1, {"neutral_creeps": 0, "pickups": 0})
    of = plan(spec, {"kind": "slots", "slots": {"neutral_creeps": 2, "pickups": 1}, "prior": {
        "units.position": {"mean": 5.0}, "pickups.distance": {"mean": 6.0}}})
    version = trained(spec)
    made, after = migrate_policy(of, spec, version), of.target(spec)
    means = statistics(after, made, "units.position")[1]
    old = statistics(spec, version, "units.position")[1]
    assert np.isin(old, means).all() and (means == 5).sum() == len(means) - len(old) > 0
    assert (statistics(after, made, "pickups.distance")[1] == 6).all()

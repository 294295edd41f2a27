"""Branches of a game: another random state continues a snapshot differently, and buildings may be weakened."""

import numpy as np
import pytest

from dota.config import GameConfig
from dota.vec_game import Controller, VecGame

DUEL = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], start_seconds=-2)
STEPS = 300


def branched(snapshot: bytes, seed: int, building_health: float = 1.0) -> VecGame:
    vec = VecGame(DUEL, 1, seed=9)
    vec.controllers[:] = Controller.SCRIPTED
    vec.restore(0, snapshot)
    vec.branch(0, seed, building_health)
    return vec


@pytest.fixture(scope="module")
def snapshot() -> bytes:
    vec = VecGame(DUEL, 1, seed=3)
    vec.controllers[:] = Controller.SCRIPTED
    for _ in range(STEPS):
        vec.step()
    return vec.snapshot(0)


def played(vec: VecGame) -> int:
    for _ in range(STEPS):
        vec.step()
    return vec.hash(0)


def test_branch_depends_on_its_seed_alone(snapshot: bytes) -> None:
    ends = [played(branched(snapshot, seed)) for seed in (1, 1, 2)]
    assert ends[0] == ends[1] != ends[2]


def test_branch_keeps_time_units_and_statistics(snapshot: bytes) -> None:
    kept, other = VecGame(DUEL, 1), branched(snapshot, 5)
    kept.restore(0, snapshot)
    assert other.game_time[0] == kept.game_time[0] == pytest.approx(-2 + STEPS * 4 / 30, abs=1e-3)
    assert other.spectate(0)["units"] == kept.spectate(0)["units"]
    assert np.array_equal(other.stats, kept.stats) and np.array_equal(other.lineups, kept.lineups)
    assert other.seed(0) == 5
    for name, array in kept.obs.items():
        assert np.array_equal(other.obs[name], array), name


def test_weakened_buildings_are_seen_and_give_no_signals(snapshot: bytes) -> None:
    vec = branched(snapshot, 5, 0.25)
    buildings = [u for u in vec.spectate(0)["units"] if u["kind"] in ("tower", "barracks", "ancient")]
    whole = [u for u in branched(snapshot, 5).spectate(0)["units"] if u["kind"] in ("tower", "barracks", "ancient")]
    assert [u["hp"] for u in buildings] == pytest.approx([0.25 * u["hp"] for u in whole]) and len(whole) > 10
    units = vec.layout.blocks["units"]
    tower = units.offset["shared"] + units.stride["shared"] * vec.layout.groups["allied_buildings"].start
    history = units.field("hp_history")
    at = tower + history.offset  # the newest
    ordinary = branched(snapshot, 5)
    assert 0 < vec.obs["shared"][0, 0, at] < ordinary.obs["shared"][0, 0, at]
    vec.controllers[:] = Controller.POLICY  # nobody strikes a building
    vec.step()
    ordinary.controllers[:] = Controller.POLICY
    ordinary.step()
    # Barracks and Ancient regenerate a little; backdoor protection restores no tower.
    np.testing.assert_allclose(vec.signals, ordinary.signals, rtol=0, atol=1e-3)


@pytest.mark.parametrize("factor", [0.0, -1.0, 1.01])
def test_other_factors_are_refused(snapshot: bytes, factor: float) -> None:
    with pytest.raises(ValueError, match=f"building_health {factor}"):
        branched(snapshot, 1, factor)


def test_recorded_game_has_no_branch() -> None:
    vec = VecGame(DUEL, 1)
    vec.record(0)
    with pytest.raises(ValueError, match="game 0 is recorded"):
        vec.branch(0, 1)

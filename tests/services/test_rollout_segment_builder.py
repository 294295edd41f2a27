"""Segments of a group: weighted rewards, what crosses segments, and labels of fallen buildings, seen or not."""

from typing import Any

import numpy as np
import pytest

from dota.config import GameConfig, ObservationConfig, RewardConfig
from dota.rewards import SIGNALS
from dota.vec_game import TEAMS, VecGame
from five.agent.config import LearnerConfig
from five.agent.learning.labels import GameOutcome
from five.services.rollout.segment_builder import ScheduleValues, SegmentBuilder
from five.services.rollout.step_buffer import StepBuffer

GAME = GameConfig(heroes_per_team=2, hero_pool=["nevermore", "sniper"], start_seconds=0.0, neutrals=False, roshan=False,
                  runes=False, observation=ObservationConfig(allied_creeps=1, neutral_creeps=0, buildings=21, wards=0,
                                                             couriers=0, minimap=1, nearby_map=2, passability=2,
                                                             mirror_dire=True))
LEARNING = LearnerConfig(lstm_unroll_length=2, samples_per_segment=1)


@pytest.fixture(scope="module")
def games() -> VecGame:
    return VecGame(GAME, 1, seed=3)


def group(game: VecGame, name: str) -> slice:
    g = game.layout.groups[name]
    return slice(g.start, g.start + g.count)


def look(game: VecGame, side: int, at: dict[str, Any] | None) -> None:
    """Move both heroes of the side next to a unit, or home, and encode the observations again."""
    mine = [u for u in game.spectate(0)["units"] if u["hero"] // 5 == side and u["hero"] >= 0]
    home = next(u for u in game.spectate(0)["units"] if u["kind"] == "fountain" and u["team"] == side)
    for u in mine:
        game._core.place(0, u["slot"], (at or home)["x"] + 150, (at or home)["y"] + 150)
    game._core.observe(0)


@pytest.mark.parametrize("side", range(TEAMS))
def test_building_slots_match_the_owners_slots(games: VecGame, side: int) -> None:
    """Each building is observed from nearby and is the same unit in both sides' slots. Dire's map is mirrored."""
    pairs = games.building_slots()[side]
    owners = games.slot_units(0, 1 - side)[group(games, "allied_buildings")]
    assert sorted(pairs) == list(range(21)) and not np.array_equal(pairs, np.arange(21))
    checked = 0
    for building in [u for u in games.spectate(0)["units"] if u["slot"] in owners]:
        look(games, side, building)
        seen = games.slot_units(0, side)[group(games, "enemy_buildings")]
        assert building["slot"] in seen
        known = np.flatnonzero(seen >= 0)
        np.testing.assert_array_equal(owners[pairs[known]], seen[known])
        checked += len(known)
    assert checked >= 21
    look(games, side, None)


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("building", [0, 7])
@pytest.mark.parametrize("side", range(TEAMS))
def test_fallen_buildings_ignore_visibility(games: VecGame, side: int, building: int, is_known: bool) -> None:
    """The side sees the building at step 0 only. It falls after step 1 and stays away. Unknown slots have no label."""
    buffer = StepBuffer(games.layout.array_specs(), 8, 1, games.layout.heroes, len(SIGNALS))
    pairs = games.building_slots()
    slot = int(np.flatnonzero(pairs[side] == building)[0])  # in the side's own observation
    if not is_known:
        pairs[side, slot] = -1
    segments = SegmentBuilder(games.layout, LEARNING, RewardConfig(), buffer, 4 / 30, pairs)
    owners = games.slot_units(0, 1 - side)[group(games, "allied_buildings")]
    unit = next(u for u in games.spectate(0)["units"] if u["slot"] == owners[building])
    block = games.layout.blocks["units"]
    for step, at in enumerate((unit, None, None, None)):
        look(games, side, at)
        seen = games.slot_units(0, side)[group(games, "enemy_buildings")]
        assert (seen[slot] == unit["slot"]) == (at is not None)
        for name, array in buffer.observation(step).items():
            array[...] = games.obs[name]
        if step >= 2:  # absent from the owner's observation
            row = buffer.observation(step)["shared"][0, 1 - side][block.span("shared")].reshape(block.instances, -1)
            row[group(games, "allied_buildings").start + building, block.field("max_hp").offset] = 0
    told = segments._fallen_buildings(0, side, 0, 3)
    assert [np.flatnonzero(row).tolist() for row in told] == [[], [slot] if is_known else [], []]


SCHEDULE = ScheduleValues(team_spirit=0.0, gae_horizon_seconds=10.0, reward_std=2.0)
ENDS = {side: GameOutcome(1.0 - side, np.array([0, 1])) for side in range(TEAMS)}
GOLD = SIGNALS.index("gold")


def builder(games: VecGame, scale: str = "reward") -> tuple[StepBuffer, SegmentBuilder]:
    """Return a buffer of two games, and segments of it. In the second game Radiant's second hero earns gold."""
    buffer = StepBuffer(games.layout.array_specs(), 8, 2, games.layout.heroes, len(SIGNALS))
    buffer.signals[:3, 1, 0, 1, GOLD] = 10, 20, 40
    buffer.game_time[:3, 1] = 0, 600, 1200
    learning = LEARNING.model_copy(update={"reward_scale": scale, "samples_per_segment": 2})
    return buffer, SegmentBuilder(games.layout, learning, RewardConfig(), buffer, 4 / 30, games.building_slots())


def test_earned_rewards_are_weighted_by_signal_and_time(games: VecGame) -> None:
    """A point of gold is worth 0.006, and 0.6 times as much after each ten minutes."""
    _, segments = builder(games)
    made, earned = segments.cut(1, 0, 3, (), {}, SCHEDULE, {})
    assert made == [] and earned.shape == (2, 2, len(SIGNALS))
    assert earned[0, 1, GOLD] == pytest.approx(0.006 * (10 + 20 * 0.6 + 40 * 0.36), rel=1e-5)
    earned[0, 1, GOLD] = 0
    assert not earned.any()
    assert not segments.cut(0, 0, 3, (), {}, SCHEDULE, {})[1].any()


def test_segments_are_those_of_the_sides_that_train(games: VecGame) -> None:
    buffer, segments = builder(games)
    buffer.actions[:3, 1, 1] = 4
    states = {"h": np.arange(8, dtype=np.float32).reshape(2, 2, 2, 1)}
    (dire, radiant), _ = segments.cut(1, 0, 3, (1, 0), states, SCHEDULE, ENDS, "new")
    assert (dire.arrays["actions"] == 4).all() and not radiant.arrays["actions"].any()
    assert (dire.arrays["state/h"].flatten().tolist(), radiant.arrays["state/h"].flatten().tolist()) == ([3, 7], [2, 6])
    assert (dire.arrays["win_label"] == 0).all() and (radiant.arrays["win_label"] == 1).all()
    assert dire.variant == radiant.variant == "new" and dire.samples == 2
    earned = 0.006 * (10 + 20 * 0.6 + 40 * 0.36)
    assert (radiant.reward_sum, dire.reward_sum) == (pytest.approx(earned, rel=1e-5), pytest.approx(-earned, rel=1e-5))
    (again,), _ = segments.cut(1, 0, 1, (0,), states, SCHEDULE, ENDS)
    assert again.variant == ""


def test_only_a_games_first_segment_resets_the_state(games: VecGame) -> None:
    _, segments = builder(games)

    def begins(game: int) -> bool:
        (made,), _ = segments.cut(game, 0, 2, (0,), {}, SCHEDULE, ENDS)
        return bool(made.arrays["resets"][0])

    assert [begins(1), begins(1), begins(0)] == [True, False, True]
    segments.start_game(1)
    assert [begins(1), begins(0)] == [True, False]


def test_discounted_return_crosses_segments_of_a_game(games: VecGame) -> None:
    """With a horizon of 10 s and steps of 4/30 s the discount is 1 - 1/75."""
    buffer, segments = builder(games, scale="return")
    buffer.game_time[:] = 0

    def total(game: int) -> float:
        (made,), _ = segments.cut(game, 0, 1, (0,), {}, SCHEDULE, ENDS)
        return made.reward_sum

    gamma, first = 1 - 4 / 30 / 10, 0.006 * 10
    assert total(1) == pytest.approx(first, rel=1e-5)
    assert total(1) == pytest.approx(first * gamma + first, rel=1e-4)
    assert total(0) == 0.0
    segments.start_game(1)
    assert total(1) == pytest.approx(first, rel=1e-5)

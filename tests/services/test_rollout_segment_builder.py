"""Labels of fallen buildings: a building that becomes invisible has not fallen, and one may fall while invisible."""

from typing import Any

import numpy as np
import pytest

from dota.config import GameConfig, ObservationConfig, RewardConfig
from dota.rewards import SIGNALS
from dota.vec_game import TEAMS, VecGame
from five.agent.config import LearnerConfig
from five.services.rollout.segment_builder import SegmentBuilder
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


@pytest.mark.parametrize("side", range(TEAMS))
def test_fallen_buildings_ignore_visibility(games: VecGame, side: int) -> None:
    buffer = StepBuffer(games.layout.array_specs(), 8, 1, games.layout.heroes, len(SIGNALS))
    pairs = games.building_slots()
    segments = SegmentBuilder(games.layout, LEARNING, RewardConfig(), buffer, 4 / 30, pairs)
    tower = next(u for u in games.spectate(0)["units"] if u["kind"] == "tower" and u["team"] != side
                 and u["slot"] == games.slot_units(0, 1 - side)[group(games, "allied_buildings")][0])
    slot = int(np.flatnonzero(pairs[side] == 0)[0])  # in the side's own observation
    for step, at in enumerate((tower, None, None)):
        look(games, side, at)
        seen = games.slot_units(0, side)[group(games, "enemy_buildings")]
        assert (seen[slot] == tower["slot"]) == (at is not None)
        for name, array in buffer.observation(step).items():
            array[...] = games.obs[name]
    look(games, side, None)
    block = games.layout.blocks["units"]
    row = buffer.observation(2)["shared"][0, 1 - side][block.span("shared")].reshape(block.instances, -1)
    row[group(games, "allied_buildings").start, block.field("max_hp").offset] = 0  # absent from the owner's observation
    told = segments._fallen_buildings(0, side, 0, 2)
    assert not told[0].any()
    np.testing.assert_array_equal(np.flatnonzero(told[1]), [slot])

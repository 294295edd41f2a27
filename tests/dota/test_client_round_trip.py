"""Round trip of games: simulator, world state, adapter, encoder; against the simulator's own observations."""

import pytest

from dota.config import GameConfig
from dota.vec_game import Controller
from tests.dota.client_round_trip import Listed, compare_game

ROUNDED = "whole numbers"
TARGET = "a target or a shooter that is out of sight is not named"
LEARNED = "the levels of enemies' abilities are not told"
LATE_SPEED = "a swing that became faster has no share until its rest fits"
UNSEEN_GROUND = "trees that fell unseen, walls of effects"
# Fields that may differ, by how much, and in which share of their nonzero values more than that.
LISTED = {
    "units.facing": Listed(0.009, 0, "whole degrees"),
    "units.damage": Listed(0.0051, 0, ROUNDED),
    "units.max_hp": Listed(0.0006, 0, ROUNDED),
    "units.hp_history": Listed(0.0011, 0, ROUNDED),
    "units.move_speed": Listed(0.0018, 0, ROUNDED),
    "heroes.mana": Listed(0.0021, 0, ROUNDED),
    "enemy heroes.mana": Listed(0.0021, 0, ROUNDED),
    "heroes.max_mana": Listed(0.0011, 0, ROUNDED),
    "enemy heroes.max_mana": Listed(0.0011, 0, ROUNDED),
    "heroes.gold": Listed(0.0011, 0, ROUNDED),
    "heroes.attributes": Listed(0.011, 0, ROUNDED),
    "enemy heroes.attributes": Listed(0.011, 0, ROUNDED),
    "allied_heroes.buyback": Listed(0.0003, 0.0003, "a price in whole gold"),
    "global.roshan_max_hp": Listed(0.0006, 0, ROUNDED),
    "global.glyph_cooldown": Listed(0.017, 0, "the enemy's is whole seconds"),
    "units.glyph_timer": Listed(0.014, 0, "from the cooldown"),
    "units.glyphed": Listed(0, 0.006, "from the cooldown"),
    "global.roshan_spawn_min": Listed(0.0023, 0, "the timestep of his death, not the frame"),
    "global.roshan_spawn_max": Listed(0.0023, 0, "the timestep of his death, not the frame"),
    "global.stock": Listed(0, 0.0005, "purchases and deliveries within one timestep"),
    "enemy abilities.levels": Listed(0, 1, LEARNED),
    "enemy abilities.castable": Listed(0, 1, LEARNED),
    "enemy abilities.in_use": Listed(0, 1, "enemies' toggles are not told"),
    "enemy heroes.level": Listed(0, 0.03, "in fog as last seen"),
    "items.disabled": Listed(0, 0.004, "the frame in which the delay after the backpack ends"),
    "units.i_attack_it": Listed(0, 0.03, TARGET),
    "units.attacking": Listed(0, 0.003, TARGET),
    "units.it_attacks_me": Listed(0, 0.0002, TARGET),
    "units.melee_creeps_attacking": Listed(0, 0.0002, TARGET),
    "units.ranged_creep_eta": Listed(0, 0.001, TARGET),
    "units.animation_time": Listed(0, 0.005, LATE_SPEED),
    "units.animation": Listed(0, 0.0002, LATE_SPEED),
    "minimap.visible": Listed(0, 0.02, "sight that effects give"),
    "allied_heroes.passability": Listed(0, 0.0005, UNSEEN_GROUND),
    "nearby_map.passable": Listed(0, 0.0005, UNSEEN_GROUND),
    "choices.available": Listed(0, 0.0003, "follows from the fields above"),
    "choices.target_mask": Listed(0, 0.0002, "half of a creep's health, in whole points"),
}
SHORT = GameConfig(max_game_seconds=60, start_seconds=-30)


def test_observation_survives_the_round_trip() -> None:
    found, steps = compare_game(SHORT, 2, LISTED)
    assert steps == 675 and not found.faults()


def test_lost_frame_costs_only_what_happened_in_it() -> None:
    found, _ = compare_game(SHORT, 3, LISTED, lose_every=10)
    assert not found.faults(spare=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_longer_games_survive_the_round_trip(seed: int) -> None:
    bots = (Controller.SCRIPTED, Controller.HARD)[seed % 2]
    found, steps = compare_game(GameConfig(max_game_seconds=600), seed, LISTED, bots)
    assert steps > 5000 and not found.faults()

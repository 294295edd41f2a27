"""Games of a few seconds, for tests of the environments."""

from dota.config import GameConfig, ObservationConfig

SLOTS = ObservationConfig(allied_creeps=8, neutral_creeps=2, buildings=4, wards=1, hero_modifiers=3, pickups=2,
                          minimap=4, nearby_map=4, passability=4)
MID = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], observation=SLOTS, start_seconds=-2,
                 max_game_seconds=10)
MID_STEPS = 90
TEAM = GameConfig(observation=SLOTS, heroes_per_team=2, start_seconds=-2, max_game_seconds=30)
FORMS = ("discrete", "factored", "native")
OBSERVATIONS = ("flat", "masked", "dict")

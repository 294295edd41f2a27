"""The game in which variants of an ablation are evaluated."""

from dota.config import ObservationConfig
from five.ablation.evaluated_game import evaluated_game, needs_own_game
from five.run.load import load

BASELINE = load("laptop-1v1").game


def test_a_policy_keeps_its_interface_in_the_baselines_game() -> None:
    interface = {"frameskip": 4, "commit_windups": False, "commit_moves": 2, "save_consumables": False,
                 "hide_unseen": True, "aggro_orders": True, "offset_cell": 200.0,
                 "observation": ObservationConfig(allied_creeps=5)}
    assert all(getattr(BASELINE, key) != value for key, value in interface.items())
    own = BASELINE.model_copy(update={**interface, "max_game_seconds": 60.0, "kills_to_win": 9})
    assert evaluated_game(BASELINE, own) == BASELINE.model_copy(update=interface)


def test_a_policy_with_another_layout_is_evaluated_in_its_own_game() -> None:
    own = load("laptop-5v5").game
    assert needs_own_game(BASELINE, own) and evaluated_game(BASELINE, own) == own

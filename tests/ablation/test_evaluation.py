"""The game in which variants of an ablation are evaluated."""

from five.ablation.evaluation import evaluated_game
from five.run.load import load

BASELINE = load("laptop-1v1").game


def test_a_policy_keeps_its_interface_in_the_baselines_game() -> None:
    own = BASELINE.model_copy(update={"frameskip": 4, "commit_windups": False, "commit_moves": 2,
                                      "save_consumables": True, "max_game_seconds": 60.0, "kills_to_win": 9})
    game = evaluated_game(BASELINE, own)
    assert (game.frameskip, game.commit_windups, game.commit_moves, game.save_consumables) == (4, False, 2, True)
    interface = ("frameskip", "commit_windups", "commit_moves", "save_consumables")
    assert game.model_copy(update={key: getattr(BASELINE, key) for key in interface}) == BASELINE


def test_a_policy_with_another_layout_is_evaluated_in_its_own_game() -> None:
    own = load("laptop-5v5").game
    assert evaluated_game(BASELINE, own) == own

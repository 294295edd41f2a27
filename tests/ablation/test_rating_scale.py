from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest

from five.ablation.config import AblationConfig
from five.ablation.evaluation import Anchors
from five.ablation.rating_scale import PairCounts, RatingScale, count_games, fit_scale, other_games
from five.agent.config import RatingConfig
from five.agent.ratings import Skill

RATING = RatingConfig()
SPREAD = 2**0.5 * RATING.beta  # of the difference of two performances


def result(variant: str, version: int, **against: tuple[int, int, int]) -> dict[str, Any]:
    """Return a trial's result with one evaluated version whose stored rating is far off."""
    matches = {bot.replace("_", "-"): dict(zip(("won", "drawn", "lost"), counts, strict=True))
               for bot, counts in against.items()}
    return {"variant": variant, "seed": 1,
            "evaluated": [{"version": version, "mu": 99.0, "sigma": 0.0, "matches": matches}]}


def gap(won: int, lost: int) -> float:
    """Return the difference in skill that matches so many wins, without drawn games."""
    return NormalDist().inv_cdf(won / (won + lost)) * SPREAD


def test_bot_ratings_follow_the_versions_games() -> None:
    """Random play lost every game against the bot, which fixes no distance; a version between them does."""
    anchors = [PairCounts("random", "scripted-easy", 0, 0, 80)]
    alone = fit_scale([], anchors, RATING).skills["scripted-easy"]
    assert alone.sigma > 5
    scale = fit_scale([result("base", 20, random=(750, 0, 250), scripted_easy=(200, 0, 800))], anchors, RATING)
    version = scale.skills["base-seed1/20"]
    assert version.mu == pytest.approx(gap(750, 250), abs=0.3) and version.sigma < 0.5
    easy = scale.skills["scripted-easy"]
    assert easy.mu == pytest.approx(gap(750, 250) + gap(800, 200), abs=0.5) and easy.sigma < alone.sigma / 5
    assert scale.skills["random"].mu == 0.0 and scale.games == 2080


def test_all_runs_contribute_to_bot_ratings() -> None:
    one = result("base", 20, random=(39, 0, 1), scripted_easy=(0, 0, 40))
    more = [result(f"variant-{i}", 20, random=(30, 0, 10), scripted_easy=(8, 0, 32)) for i in range(8)]
    alone, together = (fit_scale(results, (), RATING).of(one, 20) for results in ([one], [one, *more]))
    assert together.sigma < alone.sigma and together.mu != pytest.approx(alone.mu, abs=0.1)


def test_draws_are_estimated_from_the_games() -> None:
    drawn = fit_scale([result("base", 1, random=(300, 400, 300))], (), RATING)
    assert drawn.draw_probability == pytest.approx(0.4, abs=0.02) and drawn.drawn == 400
    assert fit_scale([result("base", 1, random=(300, 0, 300))], (), RATING).draw_probability == RATING.draw_probability


def test_scale_without_results_is_empty() -> None:
    assert fit_scale([], (), RATING) == RatingScale({"random": Skill(0.0, 0.001)}, RATING.draw_probability, 0, 0)


def test_bots_of_another_game_are_other_players() -> None:
    """A variant's results against a bot in its own game do not rate the bot in the baseline's game."""
    base = result("base", 20, random=(30, 0, 10), scripted=(8, 0, 32))
    wide = result("wide", 20, random=(30, 0, 10), scripted=(39, 0, 1))
    alone = fit_scale([base], (), RATING).skills["scripted"]
    scale = fit_scale([base, wide], (), RATING, {"wide": "wide's game"})
    assert scale.skills["scripted"].mu == pytest.approx(alone.mu, abs=1e-6)
    assert scale.skills["scripted of wide's game"].mu < 0 < scale.skills["scripted"].mu
    assert list(scale.bots()) == ["scripted of wide's game", "random", "scripted"]


def test_variant_with_another_number_of_heroes_has_its_own_game() -> None:
    rate = {"schedules.learning_rate.initial": 1}
    config = AblationConfig.model_validate({"name": "a", "preset": "laptop-5v5", "variants": {
        "base": {}, "faster": rate, "sees-less": {"game.observation.allied_creeps": 5},
        "small": {"game.heroes_per_team": 3}, "small-too": {"game.heroes_per_team": 3, **rate}}})
    assert other_games(config) == {"small": "small's game", "small-too": "small's game"}


def test_anchors_of_earlier_releases_are_read(tmp_path: Path) -> None:
    games = tuple(count_games([("random", "scripted", 0.0), ("random", "scripted", 0.5), ("random", "scripted", 0.0),
                               ("scripted", "scripted-easy", 1.0)]))
    assert games == (PairCounts("random", "scripted", 0, 1, 2), PairCounts("scripted", "scripted-easy", 1, 0, 0))
    assert sorted(games[0].games()) == [("random", "scripted", 0.0)] * 2 + [("random", "scripted", 0.5)]
    anchors = Anchors({"random": Skill(0.0, 0.1), "scripted": Skill(9.0, 1.0)}, 0.25, games)
    anchors.save(tmp_path / "anchors.json")
    assert Anchors.read(tmp_path / "anchors.json") == anchors
    (tmp_path / "old.json").write_text('{"skills": {"random": [0.0, 0.001]}, "draw_probability": 0.02}')
    assert Anchors.read(tmp_path / "old.json") == Anchors({"random": Skill(0.0, 0.001)}, 0.02)
    assert Anchors.read(tmp_path / "none.json") is None

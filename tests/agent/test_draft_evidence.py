import json

import numpy as np
import pytest

from five.agent.draft.advice import advise
from five.agent.draft.evidence import DraftEvidence, calibration_json
from five.agent.draft.summary import summarize_draft
from tests.agent.test_draft_solver import leaves

HEROES = ("axe", "lion", "sven", "viper")


def game(radiant: list[int], dire: list[int], winner: str = "radiant", said: object = None, **more: object
         ) -> dict[str, object]:
    record = {"lineup": [radiant, dire], "winner": winner, "outcome": "selfplay", "version": 7, **more}
    return record if said is None else {**record, "win_probability": said}


def test_pairs_are_counted_by_side() -> None:
    evidence = DraftEvidence(HEROES)
    evidence.add(game([0, 1], [2, 3]))
    evidence.add(game([0, 2], [1, 0]))  # training samples the teams independently, so a hero may be in both
    assert evidence.games == 2
    assert evidence.teams_with("axe") == 3 and evidence.teams_with("viper") == 1 and evidence.teams_with("nobody") == 0
    assert evidence.games_together("axe", "lion") == 2 and evidence.games_together("lion", "axe") == 2
    assert evidence.games_together("lion", "viper") == 0 and evidence.games_against("lion", "viper") == 1
    assert evidence.games_against("axe", "sven") == 2 and evidence.games_against("sven", "viper") == 0


def test_pair_of_both_teams_counts_once_a_game() -> None:
    """A mirror match has such pairs, and so does a hero pool that is too small for two teams."""
    evidence = DraftEvidence(HEROES)
    evidence.add(game([0, 1], [1, 0]))
    evidence.add(game([0, 1], [1, 2]))
    assert evidence.games_against("axe", "lion") == evidence.games_together("axe", "lion") == 2
    assert evidence.games_against("axe", "axe") == 1 and evidence.games_against("lion", "lion") == 2
    assert evidence.games_together("lion", "sven") == 1 and evidence.games_against("lion", "sven") == 1
    assert evidence.teams_with("axe") == 3 and evidence.teams_with("lion") == 4 and evidence.teams_with("sven") == 1


def test_records_without_line_up_are_ignored() -> None:
    evidence = DraftEvidence(HEROES)
    for record in ({}, {"lineup": None}, {"lineup": [[0, 1], [9, -1]]}, {"lineup": "axe"}):
        evidence.add(record)
    assert evidence.games == 0 and evidence.calibration().games == 0
    assert evidence.calibration().brier is None


def test_calibration_uses_self_play_only() -> None:
    evidence = DraftEvidence(HEROES)
    for winner in ("radiant", "radiant", "dire", "draw"):
        evidence.add(game([0], [1], winner, [0.6, 0.3]))  # combined: 0.65
    evidence.add(game([0], [1], "dire", [0.2, 0.9], version=9))  # 0.15
    for other in (game([0], [1], "dire", [0.6, 0.3], outcome="won"), game([0], [1], "dire", [0.6, None]),
                  game([0], [1], "", [0.6, 0.3]), game([0], [1], "dire", [2, 3])):
        evidence.add(other)
    found = evidence.calibration()
    assert (found.games, found.first, found.last) == (5, 7, 9)
    sure, doubtful = found.bins[6], found.bins[1]
    assert (sure.games, sure.predicted, sure.won) == (4, pytest.approx(0.65), pytest.approx(0.625))
    assert sure.at_least is not None and sure.at_least < 0.625 and (doubtful.games, doubtful.won) == (1, 0.0)
    assert found.brier == pytest.approx((2 * 0.35**2 + 0.65**2 + 0.15**2 + 0.15**2) / 5)
    assert found.brier_constant == pytest.approx(0.25 - 0.05)  # of 1, 1, 0, 0.5, 0
    assert found.error == pytest.approx((4 * 0.025 + 0.15) / 5)


def test_gain_error_is_that_of_the_differences() -> None:
    evidence, rng = DraftEvidence(HEROES), np.random.default_rng(0)
    p = rng.uniform(size=50)
    y = rng.choice([0.0, 0.5, 1.0], 50)
    for predicted, result in zip(p.tolist(), y.tolist(), strict=True):
        winner = {1.0: "radiant", 0.0: "dire", 0.5: "draw"}[result]
        evidence.add(game([0], [1], winner, [predicted, 1 - predicted]))
    found = evidence.calibration()
    differences = (y.mean() - y) ** 2 - (p - y) ** 2
    assert found.brier is not None and found.brier_constant is not None
    assert found.brier_constant - found.brier == pytest.approx(differences.mean())
    assert found.gain_error == pytest.approx(differences.std(ddof=1) / np.sqrt(50))


@pytest.mark.parametrize(("predictions", "games", "verdict"), [
    ((0.7, 0.3), 40, True), ((0.5, 0.5), 40, False), ((0.3, 0.7), 40, False), ((0.7, 0.3), 28, None)],
    ids=["better", "constant", "worse", "too few games"])
def test_verdict_needs_games_and_a_gain(predictions: tuple[float, float], games: int, verdict: bool | None) -> None:
    """Radiant wins every second game; the predictions are those of the games that it wins and loses."""
    evidence = DraftEvidence(HEROES)
    for number in range(games):
        p = predictions[number % 2]
        evidence.add(game([0], [1], ("radiant", "dire")[number % 2], [p, 1 - p]))
    assert evidence.calibration().is_informative is verdict
    assert calibration_json(evidence.calibration())["is_informative"] is verdict


def test_gain_smaller_than_its_noise_is_no_knowledge() -> None:
    """Predictions of 0.6 and 0.4 are right in 24 of 40 games."""
    evidence = DraftEvidence(HEROES)
    for number in range(40):
        winner = "radiant" if (number % 2 == 0) == (number < 24) else "dire"
        p = (0.6, 0.4)[number % 2]
        evidence.add(game([0], [1], winner, [p, 1 - p]))
    found = evidence.calibration()
    assert found.brier is not None and found.brier_constant is not None and found.brier < found.brier_constant
    assert found.is_informative is False


def test_counts_of_an_earlier_release_have_no_verdict() -> None:
    evidence = DraftEvidence(HEROES)
    for number in range(60):
        evidence.add(game([0], [1], ("radiant", "dire")[number % 2], [(0.9, 0.1)[number % 2]] * 2))
    tree = evidence.to_json()
    del tree["products"]
    found = DraftEvidence.from_json(tree)
    found.add(game([0], [1], "radiant", [0.9, 0.1]))
    assert found.calibration().games == 61 and found.calibration().is_informative is None
    assert DraftEvidence.from_json(json.loads(json.dumps(found.to_json()))).calibration() == found.calibration()


def test_evidence_json_round_trip() -> None:
    evidence = DraftEvidence(HEROES)
    evidence.add(game([0, 1], [2, 3], "dire", [0.5, 0.6]))
    again = DraftEvidence.from_json(json.loads(json.dumps(evidence.to_json())))
    assert again.calibration() == evidence.calibration() and again.games_together("axe", "lion") == 1
    again.add(game([0, 1], [2, 3], "dire", [0.5, 0.6]))
    assert again.games == 2
    for wrong in ({}, {**evidence.to_json(), "allied": [[1]]}, {**evidence.to_json(), "products": [1.0]},
                  {**evidence.to_json(), "products": [1e300, 0.0]}):
        with pytest.raises(ValueError):
            DraftEvidence.from_json(wrong)


def test_summary_contains_the_evidence() -> None:
    table = leaves(HEROES, 2)
    nothing = summarize_draft(table, DraftEvidence(HEROES), advise(table, dire=["lion"]), dire=["lion"])
    assert nothing["games"] == 0 and nothing["support"] is None
    assert all(choice["played"] is None and choice["rarest"] is None for choice in nothing["choices"])
    evidence = DraftEvidence(HEROES)
    for _ in range(3):
        evidence.add(game([0, 2], [1, 3]))
    picks = ["axe", "viper"], ["lion"]
    found = summarize_draft(table, evidence, advise(table, *picks), *picks)
    assert found["to_move"] == "D" and found["support"] == {"hero": "axe", "other": "viper", "allied": True, "games": 0}
    (sven,) = found["choices"]
    assert (sven["hero"], sven["played"]) == ("sven", 3)
    assert sven["rarest"] == {"hero": "sven", "other": "lion", "allied": True, "games": 0}
    assert sven["own"] == pytest.approx(1 - sven["win"])

import json

import pytest

from five.agent.draft.advice import advise
from five.agent.draft.evidence import DraftEvidence
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


def test_evidence_json_round_trip() -> None:
    evidence = DraftEvidence(HEROES)
    evidence.add(game([0, 1], [2, 3], "dire", [0.5, 0.6]))
    again = DraftEvidence.from_json(json.loads(json.dumps(evidence.to_json())))
    assert again.calibration() == evidence.calibration() and again.games_together("axe", "lion") == 1
    again.add(game([0, 1], [2, 3], "dire", [0.5, 0.6]))
    assert again.games == 2
    for wrong in ({}, {**evidence.to_json(), "allied": [[1]]}):
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

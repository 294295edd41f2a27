"""Slots shared by ratings and an anneal's guard: whose game is next, and who gets a result."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from five.services.evaluator import metrics
from five.services.evaluator.matches import Pairing, PairingResult, TeamPlayer
from five.services.evaluator.rated_games import RatedGames
from rapid.telemetry.metrics import snapshot

AGENT, BOT = TeamPlayer("version-7", version=7), TeamPlayer("scripted", 2)
RATED, GUARDED = Pairing(AGENT, BOT, 0, game="a"), Pairing(AGENT, TeamPlayer("version-3", version=3), 0)


class Calls:
    """Calls of the simulated parts, in order."""

    def __init__(self, guarded: Pairing | None = GUARDED, rated: Pairing | None = RATED, share: float = 0.0) -> None:
        self.made: list[str] = []
        self.ladder: Any = SimpleNamespace(last_rated=None, references=[])
        record = self.made.append
        guard: Any = SimpleNamespace(
            next_pairing=lambda: guarded, on_result=lambda result: result.pairing is GUARDED, played=1,
            drop=lambda: record("guard.drop"))
        loop: Any = SimpleNamespace(
            next_pairing=lambda: rated, on_result=lambda result: record("loop.on_result"),
            series=SimpleNamespace(last=lambda name: None), ladder=self.ladder)
        cameras: Any = SimpleNamespace(
            began=lambda slot, pairing, game: record(f"cameras.began {slot}"),
            ended=lambda slot: record(f"cameras.ended {slot}"), drop=lambda: record("cameras.drop"))
        recorder: Any = SimpleNamespace(
            began=lambda slot, player: record(f"recorder.began {slot} {player}"),
            ended=lambda slot: record(f"recorder.ended {slot}"), drop=lambda: record("recorder.drop"))
        cpu_limit: Any = SimpleNamespace(delay=lambda: 3.0)
        self.games = RatedGames(loop, guard, cameras, recorder, cpu_limit, share, np.random.default_rng(1))


@pytest.mark.parametrize(("guarded", "rated", "share", "expected"), [
    (GUARDED, RATED, 0.0, RATED), (GUARDED, RATED, 1.0, GUARDED), (GUARDED, None, 0.0, GUARDED),
    (None, RATED, 1.0, RATED), (None, None, 1.0, None)])
def test_share_decides_while_both_need_games(guarded: Pairing | None, rated: Pairing | None, share: float,
                                             expected: Pairing | None) -> None:
    assert Calls(guarded, rated, share).games.next_pairing() is expected


def test_complete_pairs_of_the_guard_are_shown_before_a_result() -> None:
    """An evaluator that has just started, or an attempt that begins, has pairs or none, but no result yet."""
    metrics.PAIRED.set(40)
    Calls().games.next_pairing()
    assert snapshot()["five_evaluator_guard_paired_games"] == 2


def test_only_rated_games_of_versions_are_recorded() -> None:
    calls = Calls()
    for slot, pairing in enumerate((RATED, GUARDED, Pairing(BOT, BOT, 0, game="b"), None)):
        calls.games.on_start(slot, pairing)
    assert calls.made == ["cameras.began 0", "recorder.began 0 version-7", "cameras.began 1", "cameras.began 2"]


def test_result_goes_to_the_guard_or_the_ladder() -> None:
    calls = Calls()
    for pairing in (GUARDED, RATED):
        calls.games.on_result(PairingResult(pairing, 1.0, 9.0, np.zeros(1), np.zeros(1), 4))
    assert calls.made == ["cameras.ended 4", "recorder.ended 4", "cameras.ended 4", "loop.on_result"]


def test_first_rating_is_not_limited() -> None:
    calls = Calls()
    assert calls.games.delay() == 0.0
    calls.ladder.last_rated = object()
    assert calls.games.delay() == 3.0


def test_lost_games_are_dropped_everywhere() -> None:
    calls = Calls()
    calls.games.drop()
    assert calls.made == ["recorder.drop", "cameras.drop", "guard.drop"]

"""Guard pairs: real games of one seed on both sides and under both rules, stored in real Redis."""

from typing import Any

import pytest
import redis

from dota.config import GameConfig, RandomisationConfig
from dota.vec_game import VecGame
from five.agent.anneal.pair_records import pair_seed, parse_pairs
from five.agent.anneal.variants import Variant
from five.services.evaluator.guard_loop import GuardLoop
from five.services.evaluator.matches import Matches, Pairing, PairingResult, TeamPlayer
from rapid.store.errors import Corrupt
from rapid.store.state import RunState
from tests.services.test_evaluator import GAME, Noop

RUN = "guarded"


class Run:
    """Guard with its own table, and an anneal set by the test."""

    def __init__(self, client: redis.Redis, **changes: Any) -> None:
        self.table = RunState(client, RUN).table("guard")
        self.document: Any = {"id": "late", "overrides": {"start_seconds": -20.0}, "base": 7, "began": 7,
                              "ramp": {"start": 7, "length": 10}, "guard": {"pairs": 3}, **changes}
        self.newest: int | None = 12
        self.now = 0.0
        self.guard = self.another()

    def another(self) -> GuardLoop:
        return GuardLoop(lambda: self.document, self.table, lambda: self.newest, GAME, self.look)

    def look(self) -> float:
        self.now += 10.0  # each poll of the document is due
        return self.now

    def all(self) -> list[Pairing]:
        found = []
        while (pairing := self.guard.next_pairing()) is not None:
            found.append(pairing)
        return found

    def end(self, pairing: Pairing, score: float) -> None:
        import numpy as np

        assert self.guard.on_result(PairingResult(pairing, score, 1.0, np.zeros(1), np.zeros(1), 0))


@pytest.fixture
def run(redis_client: redis.Redis) -> Run:
    return Run(redis_client)


def test_pairs_have_one_seed_both_sides_and_both_rules(run: Run) -> None:
    games = run.all()
    assert len(games) == 2 * 2 * 3
    newest, before = TeamPlayer("version-12", version=12), TeamPlayer("version-7", version=7)
    assert all(g.agent == newest and g.opponent == before for g in games)
    changed = GAME.model_copy(update={"start_seconds": -20.0})
    for rule in (None, changed):
        of = [g for g in games if g.rules == rule]
        assert sorted((g.seed, g.side) for g in of) == sorted(
            (pair_seed("late/1", n), side) for n in range(3) for side in (0, 1))
    for pairing in games:
        run.end(pairing, 1.0 if pairing.side == 0 else 0.5)
    kept = parse_pairs(run.table.all(), "late/1")
    assert sorted((p.rule, p.number) for p in kept) == sorted((r, n) for r in Variant for n in range(3))
    assert all(p.results == (1.0, 0.0) and p.score == 0.5 and (p.version, p.share) == (12, 0.5) for p in kept)
    assert run.guard.played == 6 and run.guard.next_pairing() is None


def test_lost_guard_games_are_replayed_under_their_number(run: Run) -> None:
    first, second = run.guard.next_pairing(), run.guard.next_pairing()
    assert first is not None and second is not None and first.seed == second.seed
    run.end(first, 1.0)
    assert run.table.all() == {}
    run.guard.drop()
    again = run.all()
    assert first.seed in {g.seed for g in again} and len(again) == 12
    # After a restart the guard continues after the stored pairs.
    for pairing in again[:4]:
        run.end(pairing, 0.5)
    run.guard = run.another()
    assert len(run.all()) == 8


def test_no_guard_game_before_a_version_of_the_change(run: Run) -> None:
    for newest in (None, 5, 7):
        run.newest = newest
        assert run.guard.next_pairing() is None
    run.newest = 8
    assert run.guard.next_pairing() is not None


@pytest.mark.parametrize("state", ["promoted", "aborted", "failed", "reverted"])
def test_ended_anneal_has_no_pairs(run: Run, state: str) -> None:
    run.document["state"] = state
    assert run.guard.next_pairing() is None
    run.document = None
    assert run.guard.next_pairing() is None
    run.document = {"what": "is this"}
    assert run.guard.next_pairing() is None


def test_new_attempt_ignores_late_results(run: Run) -> None:
    games = run.all()
    for pairing in games[:4]:
        run.end(pairing, 1.0)
    assert len(run.table.all()) == 2
    run.document |= {"attempt": 2, "began": 12, "revision": 2}
    assert run.guard.next_pairing() is None  # version 12 is from before this attempt
    assert run.table.all() == {}
    run.newest = 13
    again = run.all()
    assert {g.seed for g in again}.isdisjoint({g.seed for g in games}) and len(again) == 12
    assert not run.guard.on_result(PairingResult(games[5], 1.0, 1.0, run.now, run.now, 0))  # type: ignore[arg-type]


def test_new_rule_is_the_change_over_the_evaluated_game(redis_client: redis.Redis) -> None:
    run = Run(redis_client, overrides={"randomisation": {"gold": 0.5}})
    assert GAME.randomisation == RandomisationConfig()
    rules = {g.rules.randomisation.gold for g in run.all() if g.rules is not None}
    assert rules == {0.5}


async def test_real_games_are_played_from_their_seed_under_their_rule(run: Run) -> None:
    """Four seconds of every game: the changed rule begins 20 s earlier, and both games of a pair begin alike."""
    short = GAME.model_copy(update={"max_game_seconds": 4.0})
    games = VecGame(short, 3, 5)
    run.guard = GuardLoop(lambda: run.document, run.table, lambda: run.newest, short, run.look)
    seen: list[tuple[int | None, bool, float]] = []
    begun: dict[int, tuple[int, float, int]] = {}

    def on_start(slot: int) -> None:
        begun[slot] = (games.seed(slot), float(games.game_time[slot]), games.hash(slot))

    starts: list[tuple[int, float, int]] = []

    def on_result(result: PairingResult) -> None:
        seen.append((result.pairing.seed, result.pairing.rules is None, result.game_seconds))
        starts.append(begun[result.slot])
        assert run.guard.on_result(result)

    inference = Noop()
    await Matches(games, inference, 1).play(run.guard.next_pairing, on_result, on_start=on_start)
    assert len(seen) == 12 and inference.policies == {7, 12}
    for (seed, old, _), (played, began, _) in zip(seen, starts, strict=True):
        assert played == seed and began == pytest.approx(0.0 if old else -20.0, abs=0.01)
    for seed in {s for s, _, _ in seen}:
        for old in (True, False):
            of = [h for (s, o, _), (_, _, h) in zip(seen, starts, strict=True) if s == seed and o is old]
            assert len(of) == 2 and len(set(of)) == 1
    assert len(parse_pairs(run.table.all(), "late/1")) == 6
    # Later ordinary pairings have the unchanged rules.
    results: list[PairingResult] = []
    one = iter([Pairing(TeamPlayer("version-3", version=3), TeamPlayer("version-1", version=1), 0) for _ in range(3)])
    await Matches(games, inference, 1).play(lambda: next(one, None), results.append)
    assert all(r.game_seconds == pytest.approx(4.0, abs=0.2) for r in results)
    assert isinstance(short, GameConfig)


@pytest.mark.parametrize("name", ["late/1/new/first", "late"])
def test_damaged_pairs_and_documents_do_not_stop_ratings(run: Run, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run.table.set(name, {})
    assert run.guard.next_pairing() is None
    run.table.set(name, None)
    assert run.guard.next_pairing() is not None

    def fail() -> Any:
        raise Corrupt("the document is damaged")

    monkeypatch.setattr(run.guard, "read", fail)
    assert run.guard.next_pairing() is None

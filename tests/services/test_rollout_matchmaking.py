"""Matchmaking: assigned opponents, outages of the opponents service and reported results."""

import asyncio
from typing import Any

import numpy as np
import pytest

from five.clients.opponents import DRAWN, LOST, WON, Opponent
from five.services.rollout import matchmaking
from five.services.rollout.matchmaking import Match, Matchmaker, side_outcomes


class Service:
    """Opponents service that can be unavailable."""

    def __init__(self, opponent: Opponent = Opponent(-1, 0)) -> None:
        self.opponent = opponent
        self.away = False
        self.assigned: list[str] = []
        self.reports: list[tuple[str, int, Any, float]] = []
        self.failures = 0

    async def assign(self, game_id: str) -> Opponent:
        if self.away:
            raise ConnectionError("nobody answers")
        self.assigned.append(game_id)
        return self.opponent

    async def report(self, game_id: str, opponent_version: int, outcome: Any, game_seconds: float) -> bool:
        if self.failures:
            self.failures -= 1
            raise ConnectionError("nobody answers")
        self.reports.append((game_id, opponent_version, outcome, game_seconds))
        return True


def matchmaker(service: Service, scripted: float = 0.0) -> Matchmaker:
    return Matchmaker(service, scripted, ["scripted", "random"], np.random.default_rng(0))


def test_match_seats() -> None:
    both = Match("a").seats
    assert (both.policies, both.acting, both.trains) == ((-1, -1), (True, True), (True, True))
    past = Match("a", 12, 0).seats
    assert (past.policies, past.acting, past.trains) == ((12, -1), (True, True), (False, True))
    bot = Match("a", side=1, bot="scripted").seats
    assert (bot.policies, bot.acting, bot.trains) == ((-1, -1), (True, False), (True, False))


def test_outcomes_by_side() -> None:
    assert [side_outcomes(w) for w in (1, 2, 3)] == [("won", "lost"), ("lost", "won"), ("drawn", "drawn")]


async def test_game_keeps_its_assigned_opponent() -> None:
    service = Service(Opponent(4, 1))
    m = matchmaker(service)
    m.start()
    matches = [await m.next() for _ in range(5)]
    await m.close()
    assert [x.game_id for x in matches] == service.assigned[:5]
    assert len(set(service.assigned)) == len(service.assigned)
    assert {(x.opponent, x.side, x.bot) for x in matches} == {(4, 1, None)}


async def test_unavailable_opponents_service_means_self_play(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matchmaking, "ASSIGN_SECONDS", 0.1)
    service = Service(Opponent(4, 1))
    service.away = True
    m = matchmaker(service)
    m.start()
    loop = asyncio.get_running_loop()
    began = loop.time()
    matches = [await m.next() for _ in range(20)]
    assert loop.time() - began < 1.0
    assert all(x.opponent == -1 and x.bot is None for x in matches) and m.unassigned == 20
    service.away = False
    await asyncio.sleep(1.2)
    assert (await m.next()).opponent == 4  # once the service is available again
    await m.close()


async def test_results_are_reported_until_acknowledged() -> None:
    service = Service()
    service.failures = 1
    m = matchmaker(service)
    m.start()
    m.report_result(Match("selfplay"), "won", 1.0)
    m.report_result(Match("bot", side=0, bot="random"), "won", 1.0)
    for game, outcome in (("a", "won"), ("b", "lost"), ("c", "drawn")):
        m.report_result(Match(game, 7, 1), outcome, 600.0)
    await asyncio.sleep(1.3)
    await m.close()
    assert service.reports == [("a", 7, WON, 600.0), ("b", 7, LOST, 600.0), ("c", 7, DRAWN, 600.0)]


async def test_scripted_fraction_of_games() -> None:
    service = Service()
    m = matchmaker(service, scripted=0.5)
    m.start()
    matches = [await m.next() for _ in range(200)]
    await m.close()
    scripted = [x for x in matches if x.bot]
    assert 70 < len(scripted) < 130
    assert {x.bot for x in scripted} == {"scripted", "random"} and {x.side for x in scripted} == {0, 1}

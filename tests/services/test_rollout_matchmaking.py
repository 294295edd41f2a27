"""Matchmaking: assigned opponents, outages of the opponents service and reported results."""

import asyncio
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dota.rewards import SIGNALS
from five.clients.opponents import DRAWN, LOST, WON, Opponent
from five.services.rollout import matchmaking
from five.services.rollout.anneal_assignment import GameVariant
from five.services.rollout.matchmaking import GameRecord, Match, Matchmaker, side_outcomes
from rapid.rpc.errors import CallFailed, StatusCode
from tests.waiting import eventually_async


class Service:
    """Opponents service that can be unavailable."""

    def __init__(self, opponent: Opponent = Opponent(-1, 0)) -> None:
        self.opponent = opponent
        self.away = False
        self.requests = 0
        self.assigned: list[str] = []
        self.reports: list[tuple[str, int, Any, float]] = []
        self.drawn_by: list[str] = []
        self.failures = 0

    async def assign(self, game_id: str) -> Opponent:
        self.requests += 1
        if self.away:
            raise ConnectionError("nobody answers")
        self.assigned.append(game_id)
        return self.opponent

    async def report(self, game_id: str, opponent_version: int, outcome: Any, game_seconds: float,
                     drawn_game_id: str = "") -> bool:
        self.requests += 1
        if self.failures:
            self.failures -= 1
            raise ConnectionError("nobody answers")
        self.reports.append((game_id, opponent_version, outcome, game_seconds))
        self.drawn_by.append(drawn_game_id)
        return True


def matchmaker(service: Service) -> Matchmaker:
    return Matchmaker(service, ["scripted", "random"], np.random.default_rng(0))


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
    monkeypatch.setattr(matchmaking, "ASSIGN_SECONDS", 0.05)
    monkeypatch.setattr(matchmaking, "RETRY_SECONDS", 0.02)
    service = Service(Opponent(4, 1))
    service.away = True
    m = matchmaker(service)
    m.start()
    matches = [await m.next()]  # waits in vain; the others do not wait
    monkeypatch.setattr(matchmaking, "ASSIGN_SECONDS", 60.0)
    matches += await asyncio.wait_for(asyncio.gather(*(m.next() for _ in range(19))), 9.0)
    assert all(x.opponent == -1 and x.bot is None for x in matches) and m.unassigned == 20
    service.away = False
    await eventually_async(lambda: service.assigned)
    assert (await m.next()).opponent == 4  # once the service is available again
    await m.close()


async def test_games_wait_again_after_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the outage each wait is in vain, so only one game in ten seconds waits."""
    monkeypatch.setattr(matchmaking, "ASSIGN_SECONDS", 0.01)
    now = [100.0]
    monkeypatch.setattr(matchmaking, "time", SimpleNamespace(monotonic=lambda: now[0]))
    m = matchmaker(Service())  # not started, so no match arrives
    waits: list[float] = []
    wait_for = asyncio.wait_for

    async def recorded(waiting: Any, seconds: float) -> Any:
        waits.append(now[0])
        return await wait_for(waiting, seconds)

    monkeypatch.setattr(asyncio, "wait_for", recorded)
    for seconds in (0.0, 0.1, 9.9, 10.0, 10.1, 19.9, 20.5):
        now[0] = 100.0 + seconds
        assert (await m.next()).opponent == -1
    assert waits == [100.0, 110.0, 120.5] and m.unassigned == 7


async def test_unavailable_opponents_service_is_not_asked_all_the_time() -> None:
    service = Service()
    service.away, service.failures = True, 1 << 30
    m = matchmaker(service)
    m.start()
    m.report_result(Match("a", 7, 1), "won", 600.0)
    await asyncio.sleep(0.05)
    await m.close()
    assert service.requests == 2, "one assignment and one result within the time of a retry"


async def test_results_are_reported_until_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matchmaking, "RETRY_SECONDS", 0.01)
    service = Service()
    service.failures = 1
    m = matchmaker(service)
    m.start()
    m.report_result(Match("selfplay"), "won", 1.0)
    m.report_result(Match("bot", side=0, bot="random"), "won", 1.0)
    for game, outcome in (("a", "won"), ("b", "lost"), ("c", "drawn")):
        m.report_result(Match(game, 7, 1, drawn_by=f"{game}-drew"), outcome, 600.0)
    await eventually_async(lambda: len(service.reports) == 3)
    await m.close()
    assert service.reports == [("a", 7, WON, 600.0), ("b", 7, LOST, 600.0), ("c", 7, DRAWN, 600.0)]
    assert service.drawn_by == ["a-drew", "b-drew", "c-drew"]


async def test_result_of_another_epoch_is_dropped_and_counted() -> None:
    service = Service()
    stale = CallFailed(StatusCode.FAILED_PRECONDITION, "opponents:50051", "Report",
                       "this server is at epoch 2, the request at 1: the run has changed since")
    reported = service.report

    async def refuse_first(game_id: str, *arguments: Any) -> bool:
        if game_id == "a":
            raise stale
        return await reported(game_id, *arguments)

    service.report = refuse_first  # type: ignore[method-assign]
    m = matchmaker(service)
    assert m.stale == 0
    m.start()
    for game in ("a", "b"):
        m.report_result(Match(game, 0, 1), "won", 600.0)
    await asyncio.sleep(0.1)
    await m.close()
    assert m.stale == 1 and [r[0] for r in service.reports] == ["b"]


async def test_full_queue_of_results_drops_the_newest(caplog: pytest.LogCaptureFixture) -> None:
    m = matchmaker(Service())
    for game in range(4097):
        m.report_result(Match(f"game-{game}", 7, 1), "won", 600.0)
    assert caplog.messages == ["result dropped, queue full game=game-4096 queued=4096"]


async def test_group_plays_its_loaded_version_in_place_of_the_assigned_one() -> None:
    class Loaded:
        def __init__(self, version: int) -> None:
            self.version = version
            self.drawn: list[int] = []
            self.drawn_by = "first"

        def assign(self, drawn: int, game_id: str) -> int:
            self.drawn.append(drawn)
            return self.version

    service = Service(Opponent(4, 1))
    m = matchmaker(service)
    m.start()
    loaded: Any = Loaded(3)
    none: Any = Loaded(-1)
    match = await m.next(loaded)
    assert (match.opponent, match.drawn_by) == (3, "first") and m.unassigned == 0
    match = await m.next(none)
    assert (match.opponent, match.side) == (-1, 1) and m.unassigned == 1
    assert loaded.drawn == none.drawn == [4]
    assert (await m.next(None)).opponent == 4 and m.unassigned == 1
    for _ in range(10):
        service.opponent = Opponent(-1, 0)
        assert (await m.next(loaded)).opponent in (3, -1)
    assert set(loaded.drawn) == {4}  # self-play asks for no version
    await m.close()


def record(match: Match, **changes: Any) -> dict[str, Any]:
    """Return the record of a game that Radiant won, in which Radiant's hero has 10 and Dire's 4 of everything."""
    values = np.array([10.0, 4.0])[:, None, None]
    made = GameRecord(match, np.broadcast_to(values, (2, 2, len(SIGNALS))).copy(), **changes)
    statistics = np.broadcast_to(values, (2, 2, 2)).astype(np.float32)
    return made.finish(1, 612.345, 8, statistics, ("kills", "denies"))


@pytest.mark.parametrize(("match", "opponent", "outcome", "mean"), [
    (Match("g"), -1, "selfplay", 7.0), (Match("g", 5, 1), 5, "won", 10.0), (Match("g", 0, 0), 0, "lost", 4.0),
    (Match("g", -1, 1, "scripted"), "scripted", "won", 10.0), (Match("g", -1, 0, "random"), "random", "lost", 4.0)])
def test_record_is_that_of_the_side_that_learns(match: Match, opponent: int | str, outcome: str, mean: float) -> None:
    found = record(match)
    assert (found["game"], found["version"], found["opponent"], found["outcome"]) == ("g", 8, opponent, outcome)
    assert (found["winner"], found["game_seconds"]) == ("radiant", 612.3) and 0 <= found["wall_seconds"] < 60
    assert found["statistics"] == {"kills": mean, "denies": mean}
    assert found["rewards"] == dict.fromkeys(SIGNALS, mean)
    assert not {"lineup", "win_probability", "variant", "anneal"} & found.keys()


def test_record_has_what_is_known_of_the_game() -> None:
    lineup = np.array([[3, 4], [5, 6]], np.int16)
    found = record(Match("g"), lineup=lineup, predicted=[0.123456, 0.0], variant=GameVariant("new", "patch-1"))
    assert found["lineup"] == [[3, 4], [5, 6]] and found["win_probability"] == [0.1235, 0.0]
    assert (found["variant"], found["anneal"]) == ("new", "patch-1")
    half = record(Match("g"), predicted=[0.5, None])
    assert "win_probability" not in half


@pytest.mark.parametrize(("winner", "name"), [(1, "radiant"), (2, "dire"), (3, "draw")])
def test_winner_and_outcome_of_a_game(winner: int, name: str) -> None:
    made = GameRecord(Match("g", 5, 1), np.zeros((2, 1, len(SIGNALS))))
    found = made.finish(winner, 1.0, 8, np.zeros((2, 1, 0), np.float32), ())
    assert (found["winner"], found["outcome"]) == (name, side_outcomes(winner)[0])


async def test_scripted_fraction_of_games() -> None:
    service = Service()
    m = matchmaker(service)
    m.start()
    matches = [await m.next(scripted_fraction=0.5) for _ in range(200)]
    assert not any([(await m.next()).bot for _ in range(20)])
    await m.close()
    scripted = [x for x in matches if x.bot]
    assert 70 < len(scripted) < 130
    assert {x.bot for x in scripted} == {"scripted", "random"} and {x.side for x in scripted} == {0, 1}


@pytest.mark.parametrize(("position", "first"), [(0.0, 1.0), (0.25, 0.75), (1.0, 0.0), (7.0, 0.0), (-1.0, 0.5)])
async def test_bot_is_chosen_by_its_position(position: float, first: float) -> None:
    m = matchmaker(Service())
    bots = [(await m.next(scripted_fraction=1.0, scripted_bot=position)).bot for _ in range(400)]
    assert bots.count("scripted") / len(bots) == pytest.approx(first, abs=0.0 if first in (0.0, 1.0) else 0.1)
    assert set(bots) <= {"scripted", "random"}

"""Start of a group's games: what a slot gets, games from the middle, and lost servers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dota.config import RewardConfig
from dota.rewards import SIGNALS
from dota.vec_game import BOTS
from five.agent.schedules import Hyperparameters
from five.clients.inference import NEWEST
from five.clients.opponents import Opponent
from five.services.rollout.anneal_assignment import NO_ANNEAL, GameVariant
from five.services.rollout.env_slots import EnvSlots
from five.services.rollout.game_group import ring_capacity
from five.services.rollout.game_starter import GameStarter
from five.services.rollout.group_dependencies import GroupDependencies
from five.services.rollout.group_progress import GroupProgress
from five.services.rollout.matchmaking import GameRecord, Match, Matchmaker
from five.services.rollout.middle_games import GameSnapshot, SnapshotRing
from five.services.rollout.segment_builder import SegmentBuilder
from five.services.rollout.step_buffer import SIDES, StepBuffer
from tests.services.counting import GAME, HEROES, LAYOUT, STATE_SPECS, CountingGames, Versions
from tests.services.inference_server import InferenceServer
from tests.services.test_rollout import LEARNING, RATES, SAMPLES, UNROLL, Opponents, check_recurrence, play

LIMIT, HEALTH, VERSION = 100.0, 0.5, 7
NO_GAME = GameRecord(Match("none"), np.zeros(0))


class RefusingGames(CountingGames):
    """Counting games whose server refuses the first ``refusals`` resets. ``resets`` are the slots of each attempt."""

    def __init__(self, games: int, refusals: int = 0) -> None:
        super().__init__([[100]] * games)
        self.refusals = refusals
        self.resets: list[list[int]] = []

    async def reset(self, games: Any, *arguments: Any) -> Any:
        self.resets.append(games.tolist())
        if len(self.resets) <= self.refusals:
            raise ConnectionError("no server")
        return await super().reset(games, *arguments)


class Group:
    """A starter with its slots. ``paused`` counts its waits for the end of a pause."""

    def __init__(self, games: RefusingGames, matchmaker: Matchmaker, scripted: float, middle: float,
                 snapshots: SnapshotRing | None, assign_variant: Callable[[str, int], GameVariant]) -> None:
        n = len(games.lengths)
        self.games = games
        self.gate = SimpleNamespace(is_stopping=False)
        self.buffer = StepBuffer(LAYOUT.array_specs(), ring_capacity(UNROLL, SAMPLES), n, HEROES, len(SIGNALS))
        self.slots = EnvSlots(n, UNROLL, SAMPLES, STATE_SPECS, np.random.default_rng(0))
        self.records = [NO_GAME] * n
        self.progress = GroupProgress(newest_version=VERSION)
        self.paused = 0
        segments = SegmentBuilder(LAYOUT, LEARNING, RewardConfig(), self.buffer, 4 / 30, np.zeros((2, 1), np.int16))
        hyper = Hyperparameters(0.0, 0.0, 0.0, 1.0, scripted, game_seconds=LIMIT, middle_fraction=middle,
                                building_health=HEALTH)
        dependencies = GroupDependencies(
            games, None, matchmaker, None, self.gate,  # type: ignore[arg-type]
            lambda version, std: RATES, lambda version: hyper, assign_variant=assign_variant, snapshots=snapshots)
        self.starter = GameStarter(dependencies, self.buffer, self.slots, segments, self.records, self.progress,
                                   self.wait_while_paused)

    async def wait_while_paused(self) -> None:
        self.paused += 1

    async def start(self, step: int, *games: int, stagger: bool = False) -> None:
        await self.starter.start(step, np.array(games, np.int32), stagger)

    async def abandon(self, step: int, *games: int) -> None:
        await self.starter.abandon(step, np.array(games, np.int32))


@asynccontextmanager
async def group_of(games: int, *opponents: Opponent, refusals: int = 0, scripted: float = 0.0, middle: float = 0.0,
                   snapshots: SnapshotRing | None = None,
                   assign_variant: Callable[[str, int], GameVariant] = lambda game, version: NO_ANNEAL
                   ) -> AsyncIterator[Group]:
    matchmaker = Matchmaker(Opponents(*opponents), ["scripted"], np.random.default_rng(0))
    matchmaker.start()
    try:
        yield Group(RefusingGames(games, refusals), matchmaker, scripted, middle, snapshots, assign_variant)
    finally:
        await matchmaker.close()


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the seconds of each `asyncio.sleep`, which returns at once."""
    sleep = asyncio.sleep
    slept: list[float] = []

    async def quick(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", quick)
    return slept


async def test_new_game_fills_its_slot_only() -> None:
    async with group_of(2, Opponent(3, 1)) as group:
        await group.start(5, 1)
    record, slots = group.records[1], group.slots
    assert group.records[0] is NO_GAME and record.match.opponent == 3 and record.start_seconds is None
    assert record.lineup is not None and record.lineup.tolist() == [[1] * HEROES] * SIDES
    assert record.earned.shape == (SIDES, HEROES, len(SIGNALS)) and not record.earned.any()
    assert slots.policies.tolist() == [[NEWEST, NEWEST], [NEWEST, 3]]
    assert slots.acting.tolist() == [[False, False], [True, True]]
    assert (slots.start_step[1], slots.target[1], slots.limit[1]) == (5, UNROLL * SAMPLES, LIMIT)
    assert group.buffer.observation(5)["shared"][1, :, :3].tolist() == [[0, 0, 2], [0, 0, 3]]
    assert not group.games.controllers.any() and group.progress.abandoned_games == 0


async def test_first_games_are_staggered() -> None:
    """They differ in the length of the first segment, from one sample on, and in the limit. Later games do not."""
    async with group_of(4) as group:
        await group.start(0, 0, 1, 2, 3, stagger=True)
        assert group.slots.target.tolist() == [UNROLL, 2 * UNROLL] * 2
        assert group.slots.limit.tolist() == [LIMIT / 4, LIMIT / 2, 3 * LIMIT / 4, LIMIT]
        await group.start(9, 0)
    assert (group.slots.target[0], group.slots.limit[0]) == (UNROLL * SAMPLES, LIMIT)


async def test_bot_controls_its_side() -> None:
    async with group_of(2, scripted=1.0) as group:
        await group.start(0, 0, 1)
    for game, record in enumerate(group.records):
        controllers = group.games.controllers[game].tolist()
        assert controllers[record.match.side] == BOTS["scripted"] and controllers[1 - record.match.side] == 0


async def test_game_has_the_configuration_of_its_variant() -> None:
    variants = [GameVariant("old", "t/1"), GameVariant("new", "t/1", GAME)]
    given: list[tuple[str, int]] = []

    def assign(game: str, version: int) -> GameVariant:
        given.append((game, version))
        return variants[len(given) - 1]

    async with group_of(2, assign_variant=assign) as group:
        await group.start(0, 0, 1)
    assert [record.variant for record in group.records] == variants and group.games.rules == {0: None, 1: GAME}
    assert given == [(record.match.game_id, VERSION) for record in group.records]


async def test_game_begins_in_the_middle() -> None:
    """A game of another configuration than the run's begins at its beginning."""
    snapshots = SnapshotRing(4, 6.0, np.random.default_rng(0))
    snapshots.add(GameSnapshot(bytes([6]), 6.0))
    variants = [GameVariant("new", "t/1", GAME), NO_ANNEAL]
    async with group_of(2, middle=1.0, snapshots=snapshots, assign_variant=lambda *_: variants.pop(0)) as group:
        await group.start(0, 0, 1)
    assert group.games.branches == [(1, 6, HEALTH)]
    assert [record.start_seconds for record in group.records] == [None, 6.0]
    assert group.slots.limit.tolist() == [LIMIT, 6.0 + LIMIT]
    assert [record.lineup.tolist() for record in group.records if record.lineup is not None] == [
        [[hero] * HEROES] * SIDES for hero in (0, 101)]
    assert group.buffer.observation(0)["shared"][:, 0, 0].tolist() == [0, 6]


async def test_games_of_a_lost_server_are_restarted(slept: list[float]) -> None:
    async with group_of(3, refusals=1) as group:
        await group.start(4, 1)
    assert group.games.resets == [[1], [0, 1, 2]] and group.progress.abandoned_games == 3
    assert group.slots.start_step.tolist() == [4] * 3 and NO_GAME not in group.records
    assert (group.paused, slept) == (0, [])


async def test_abandoned_games_are_retried_until_they_start(slept: list[float]) -> None:
    """The other slots' games are abandoned once, when their server turns out to be lost."""
    async with group_of(3, refusals=6) as group:
        await group.abandon(4, 1)
    assert group.games.resets == [[1], *[[0, 1, 2]] * 6] and group.progress.abandoned_games == 3
    assert (group.paused, slept) == (6, [0.5, 1.0, 2.0, 4.0, 5.0, 5.0])


async def test_failure_is_reported_until_games_start(slept: list[float]) -> None:
    reported: list[str] = []
    async with group_of(3, refusals=2) as group:

        async def waited() -> None:
            reported.append(group.progress.failure)

        group.starter.wait_while_paused = waited
        await group.start(4, 1)
    assert reported == ["no server"] and group.progress.failure == ""


async def test_games_that_all_start_anew_are_staggered(slept: list[float]) -> None:
    """Otherwise all slots send at once from then on, as when the games' server starts after the rollout."""
    async with group_of(4, refusals=2) as group:
        await group.start(0, 0, 1, 2, 3, stagger=True)
        assert group.slots.target.tolist() == [UNROLL, 2 * UNROLL] * 2
        assert group.slots.limit.tolist() == [LIMIT / 4, LIMIT / 2, 3 * LIMIT / 4, LIMIT]
        await group.abandon(9, 0)
    assert (group.slots.target[0], group.slots.limit[0]) == (UNROLL * SAMPLES, LIMIT)


async def test_no_game_is_started_while_stopping() -> None:
    async with group_of(3) as group:
        group.gate.is_stopping = True
        await group.starter.abandon_all(4, ConnectionError("no server"))
    assert group.games.resets == [] and group.progress.abandoned_games == 3


async def test_all_games_of_a_lost_server_are_abandoned(slept: list[float]) -> None:
    """No new game begins while the server is away, and the process still ends at once."""
    games = CountingGames([[50], [50]])
    games.lose_at = {6}
    reset, failures = games.reset, [ConnectionError("no server")] * 6
    begun = []

    async def failing(*arguments: Any) -> Any:
        if games.steps >= 6 and failures:
            raise failures.pop()
        begun.append(games.steps)
        return await reset(*arguments)

    games.reset = failing  # type: ignore[method-assign]
    async with InferenceServer(Versions(0)) as server:
        done = await play(games, 20, [server])
    assert begun == [0, 6] and done.group.progress.abandoned_games == 2
    assert [s for s in slept if s >= 0.5] == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]  # longer each time, up to 5 s
    assert done.group.progress.games == 0


async def test_server_lost_at_the_reset_of_one_game_loses_all_games() -> None:
    """The game against a missing version is abandoned, but its server is gone: the next one has new games only."""
    games = CountingGames([[50], [50]])
    reset, resets = games.reset, list[list[int]]()

    async def failing(slots: Any, *arguments: Any) -> Any:
        resets.append(slots.tolist())
        if len(resets) == 2:
            raise ConnectionError("no server")
        return await reset(slots, *arguments)

    games.reset = failing  # type: ignore[method-assign]
    async with InferenceServer(Versions(7)) as server:
        done = await play(games, 20, [server], opponents=Opponents(Opponent(3, 1)))
    assert resets == [[0, 1], [0], [0, 1]] and done.group.progress.abandoned_games == 2
    assert check_recurrence(done.segments, [[50], [50]]) > 40

"""Rollout groups on a counting environment and a counting recurrence, through a real inference server."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import numpy as np
import pytest

from dota.config import RewardConfig
from dota.rewards import SIGNALS
from five.agent.config import LearnerConfig
from five.agent.learning.labels import GameOutcome
from five.agent.learning.samples import Arrays
from five.agent.learning.segments import Bootstrap, Segment, cut_segment
from five.agent.schedules import Hyperparameters
from five.clients.inference import InferenceClient
from five.clients.opponents import Opponent
from five.services.rollout.anneal_assignment import NO_ANNEAL, GameVariant
from five.services.rollout.env_slots import EnvSlots
from five.services.rollout.game_group import GameGroup, ring_capacity, split_games
from five.services.rollout.group_dependencies import GroupDependencies
from five.services.rollout.matchmaking import Matchmaker
from five.services.rollout.middle_games import SnapshotRing
from five.services.rollout.past_opponent import PastOpponent
from five.services.rollout.segment_builder import ScheduleValues, SegmentBuilder
from five.services.rollout.step_buffer import StepBuffer
from tests.agent.plain_samples import steps_of
from tests.services.counting import HEROES, LAYOUT, STATE_SPECS, CountingGames, Versions
from tests.services.inference_server import QUICK, RPC, InferenceServer

UNROLL, SAMPLES = 4, 2
LEARNING = LearnerConfig(lstm_unroll_length=UNROLL, samples_per_segment=SAMPLES)
RATES = ScheduleValues(0.0, 10.0, 2.0)


class Opponents:
    """Opponents service that assigns the given opponents, then self-play, and records reports."""

    def __init__(self, *given: Opponent) -> None:
        self.given = list(given)
        self.reports: list[tuple[str, int, Any]] = []

    async def assign(self, game_id: str) -> Opponent:
        return self.given.pop(0) if self.given else Opponent(-1, 0)

    async def report(self, game_id: str, opponent_version: int, outcome: Any, game_seconds: float,
                     drawn_game_id: str = "") -> bool:
        self.reports.append((game_id, opponent_version, outcome))
        return True


class SegmentSink:
    """Collects segments in place of the sender; runs ``at[step]`` before that step."""

    def __init__(self, games: CountingGames, at: dict[int, Callable[[], Any]] | None = None) -> None:
        self.segments: list[Segment[Arrays]] = []
        self.games = games
        self.at = dict(at or {})

    def put(self, segment: Segment[Arrays]) -> None:
        self.segments.append(segment)

    async def wait_for_capacity(self) -> None:
        action = self.at.pop(self.games.steps, None)
        if action is not None:
            result = action()
            if asyncio.iscoroutine(result):
                await result


class StepLimitGate:
    """Gate that stops after a number of steps and pauses at each of ``pauses``, where it awaits ``during_pause``."""

    def __init__(self, games: CountingGames, steps: int, pauses: Collection[int] = (),
                 during_pause: Callable[[], Awaitable[None]] | None = None) -> None:
        self.games = games
        self.steps = steps
        self.pauses = set(pauses)
        self.during_pause = during_pause

    @property
    def is_stopping(self) -> bool:
        return self.games.steps >= self.steps

    @property
    def is_paused(self) -> bool:
        return self.games.steps in self.pauses

    async def wait_until_active(self) -> None:
        if self.during_pause is not None:
            await self.during_pause()
        self.pauses.discard(self.games.steps)


class PlayResult:
    """Results of a group's play."""

    def __init__(self, group: GameGroup, sink: SegmentSink, opponents: Opponents, records: list[dict[str, Any]],
                 games: CountingGames) -> None:
        self.group = group
        self.segments = sink.segments
        self.variants = {segment.variant for segment in sink.segments}
        self.opponents = opponents
        self.records = records
        self.games = games


async def play(games: CountingGames, steps: int, servers: list[InferenceServer],
               at: dict[int, Callable[[], Any]] | None = None, opponents: Opponents | None = None,
               scripted: float = 0.0, game_seconds: float | list[float] = 8000.0, seed: int = 1,
               learning: LearnerConfig = LEARNING, middle: float = 0.0, snapshots: SnapshotRing | None = None,
               pauses: Collection[int] = (),
               during_pause: Callable[[GameGroup, SegmentSink], Awaitable[None]] | None = None,
               draw: Callable[[str, int], GameVariant] = lambda game, version: NO_ANNEAL,
               past: PastOpponent | None = None) -> PlayResult:
    opponents = opponents or Opponents()
    sink, records = SegmentSink(games, at), []  # type: ignore[var-annotated]
    rng = np.random.default_rng(seed)
    n = len(games.lengths)
    buffer = StepBuffer(LAYOUT.array_specs(), ring_capacity(UNROLL, SAMPLES), n, HEROES, len(SIGNALS))
    slots = EnvSlots(n, UNROLL, SAMPLES, STATE_SPECS, rng)
    segments = SegmentBuilder(LAYOUT, learning, RewardConfig(), buffer, 4 / 30, np.zeros((2, 1), np.int16))
    matchmaker = Matchmaker(opponents, ["scripted"], rng)
    matchmaker.start()
    config = RPC if len(servers) == 1 else QUICK
    client = InferenceClient([s.address for s in servers], config, LAYOUT.hash, sparse=("shared", "private"), epoch=1)
    gate = StepLimitGate(games, steps, pauses)

    def limit() -> float:
        return game_seconds.pop(0) if isinstance(game_seconds, list) else game_seconds

    dependencies = GroupDependencies(
        games, client, matchmaker, sink, gate,  # type: ignore[arg-type]
        lambda version, std: RATES, lambda version: Hyperparameters(0.0, 0.0, 0.0, 1.0, scripted, game_seconds=limit(),
                                                                    middle_fraction=middle),
        records.append, draw, snapshots, past=past)
    group = GameGroup(dependencies, buffer, slots, segments)
    if during_pause is not None:
        gate.during_pause = lambda: during_pause(group, sink)
    try:
        await asyncio.wait_for(group.play(), 60)
        await asyncio.sleep(0.05)
    finally:
        await matchmaker.close()
        await client.close()
    return PlayResult(group, sink, opponents, records, games)


def of_games(segments: list[Segment[Arrays]]) -> dict[tuple[int, int], list[Segment[Arrays]]]:
    """Return the segments in order by (env slot and side, episode)."""
    found = defaultdict(list)
    for segment in segments:
        shared = segment.arrays["shared"]
        found[int(shared[0, 2]), int(shared[0, 1])].append(segment)
    return found


def check_recurrence(segments: list[Segment[Arrays]], lengths: list[list[int]]) -> int:
    """Check that each step of a game occurs once, in order and with the state of all steps before it.

    Each sample must start from the state before its first step. Return the number of steps checked.
    """
    checked = 0
    for (place, episode), parts in of_games(segments).items():
        age, trace, count = 0, np.zeros(2, np.float32), 0
        for segment in parts:
            a = segment.arrays
            assert len(a["mask"]) == segment.samples * UNROLL
            assert a["mask"].sum() == steps_of(segment) * HEROES
            assert a["resets"].tolist() == [age == 0] + [False] * (len(a["mask"]) - 1)
            for t in range(steps_of(segment)):
                if t % UNROLL == 0:
                    assert a["state/trace"][t // UNROLL, 0].tolist() == trace.tolist()
                    assert a["state/count"][t // UNROLL].item() == count
                assert a["shared"][t, :3].tolist() == [age, episode, place]
                trace = np.float32(0.5) * trace + np.array([age, a["actions"][t, 0, 0]], np.float32)
                count += 1
                assert a["behaviour_values"][t, 0] == trace[0]
                assert a["behaviour_logp"][t, 0] == -a["versions"][t]
                age += 1
                checked += 1
        game = lengths[place // 2]
        assert age <= game[min(episode, len(game) - 1)]
    return checked


LENGTHS = [[21, 13], [9, 30], [100]]


_undisturbed: list[PlayResult] = []


async def play_undisturbed() -> PlayResult:
    """Return 50 steps of the games without any disturbance. They are played once, because they are always equal."""
    if not _undisturbed:
        async with InferenceServer(Versions(0)) as server:
            _undisturbed.append(await play(CountingGames(LENGTHS), 50, [server]))
    return _undisturbed[0]


async def test_recurrent_state_crosses_samples_and_segments() -> None:
    async with InferenceServer(Versions(0)) as server:
        done = await play(CountingGames(LENGTHS), 60, [server])
    assert check_recurrence(done.segments, LENGTHS) > 6 * 50
    ended = [k for k, parts in of_games(done.segments).items() if k[0] in (0, 1) and k[1] == 0]
    assert len(ended) == 2
    for key in ended:
        parts = of_games(done.segments)[key]
        assert sum(steps_of(s) for s in parts) == 21  # the whole game with its last segment
    assert max(steps_of(s) for s in done.segments) == UNROLL * SAMPLES
    assert done.group.progress.recoveries == 0


async def test_version_change_within_a_segment_is_recorded() -> None:
    versions = Versions(0)
    async with InferenceServer(versions) as server:

        async def publish() -> None:
            versions.publish(1)
            await asyncio.to_thread(server.models.refresh)

        done = await play(CountingGames(LENGTHS), 40, [server], {14: publish})
    check_recurrence(done.segments, LENGTHS)
    mixed = [s for s in done.segments if s.oldest_version != s.newest_version]
    assert mixed
    for segment in done.segments:
        steps = segment.arrays["versions"][:steps_of(segment)].tolist()
        assert steps == sorted(steps) and (segment.oldest_version, segment.newest_version) == (steps[0], steps[-1])


def same(a: list[Segment[Arrays]], b: list[Segment[Arrays]]) -> None:
    assert len(a) == len(b)
    for one, other in zip(a, b, strict=True):
        assert one.arrays.keys() == other.arrays.keys()
        for name in one.arrays:
            np.testing.assert_array_equal(one.arrays[name], other.arrays[name], err_msg=name)
        assert (one.reward_sum, one.reward_square_sum) == (other.reward_sum, other.reward_square_sum)


@pytest.mark.parametrize("moment", [1, 4, 9, 11, 12, 21])
async def test_losing_inference_changes_no_value(moment: int) -> None:
    """At the first and last step of a sample, a segment and a game, and in between."""
    undisturbed, versions = await play_undisturbed(), Versions(0)
    async with InferenceServer(versions) as first, InferenceServer(versions) as second:
        disturbed = await play(CountingGames(LENGTHS), 50, [first, second], {moment: first.stop})
    assert disturbed.group.progress.recoveries >= 1 and len(second.table) > 0
    check_recurrence(disturbed.segments, LENGTHS)
    same(undisturbed.segments, disturbed.segments)


async def test_states_are_rebuilt_by_replaying_recorded_actions() -> None:
    ours, theirs = Versions(0), Versions()
    theirs.bias = 3  # the other server would have chosen differently
    theirs.publish(0)
    async with InferenceServer(ours) as first, InferenceServer(theirs) as second:
        done = await play(CountingGames(LENGTHS), 50, [first, second], {18: first.stop})
    assert check_recurrence(done.segments, LENGTHS) > 200
    actions = np.concatenate([s.arrays["actions"][:steps_of(s), 0, 0] for s in of_games(done.segments)[4, 0]])
    assert actions[:8].tolist() == [1, 2, 3, 4, 5, 6, 0, 1] and actions[18:24].tolist() == [1, 2, 3, 4, 5, 6]


async def test_expired_sessions_change_no_value() -> None:
    undisturbed = await play_undisturbed()
    async with InferenceServer(Versions(0)) as server:

        def lose() -> None:
            server.table.close(list(server.table._slots)[:3])

        disturbed = await play(CountingGames(LENGTHS), 50, [server], {11: lose, 23: lose, 24: lose})
    same(undisturbed.segments, disturbed.segments)


async def test_failed_batch_changes_no_value() -> None:
    undisturbed = await play_undisturbed()
    async with InferenceServer(Versions(0)) as server:
        policy = server.builder.created[0]
        act, calls = policy.act, 0

        def sometimes(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls in (15, 16, 40):
                raise RuntimeError("the forward pass broke")
            return act(*args, **kwargs)

        policy.act = sometimes  # type: ignore[method-assign]
        disturbed = await play(CountingGames(LENGTHS), 50, [server])
    assert disturbed.group.progress.recoveries >= 2
    same(undisturbed.segments, disturbed.segments)


@pytest.mark.parametrize("scale", ["reward", "return"])
async def test_segments_contain_rewards_and_labels(scale: str) -> None:
    """Each segment equals one cut from what the game and the server are known to have returned."""
    learning = LEARNING.model_copy(update={"reward_scale": scale})
    async with InferenceServer(Versions(0)) as server:
        done = await play(CountingGames([[100], [21, 12]]), 40, [server], learning=learning)
    predicted = {"win_probability": np.full(1, 0.5), "net_worth_rank": np.full((1, 5), 0.2),
                 "building_events": np.full((1, 1), 0.1)}
    for side in (0, 1):
        episodes = [parts for (place, _), parts in sorted(of_games(done.segments).items()) if place == 2 + side]
        assert [[steps_of(s) for s in parts] for parts in episodes[:2]] == [[8, 8, 5], [8, 4]]
        for episode, parts in enumerate(episodes[:2]):
            age, running = 0, np.zeros(1)
            for i, got in enumerate(parts):
                ages = np.arange(age, age + steps_of(got))
                earned = ages * 0.006 * 0.6 ** ((ages + 1) / 600)  # Radiant's gold; Dire loses as much
                ends = i == len(parts) - 1
                end = GameOutcome(float(episode == side), np.array([0])) if ends else Bootstrap(
                    parts[i + 1].arrays["behaviour_values"][0], predicted)
                want = cut_segment(
                    {n: got.arrays[n] for n in ("actions", "behaviour_logp", "behaviour_values", "versions")},
                    np.arange(steps_of(got)), states={}, rewards=(earned if side == 0 else -earned)[:, None],
                    fallen=((ages == 4) & (side == 0)).astype(np.float32)[:, None], begins=age == 0, end=end,
                    config=learning, gae_horizon_seconds=RATES.gae_horizon_seconds, reward_std=RATES.reward_std,
                    running_return=running, timestep_seconds=4 / 30)
                for name, array in want.arrays.items():
                    np.testing.assert_allclose(got.arrays[name], array, rtol=1e-4, atol=1e-5, err_msg=name)
                assert got.reward_sum == pytest.approx(want.reward_sum, rel=1e-4)
                assert got.reward_square_sum == pytest.approx(want.reward_square_sum, rel=1e-4)
                assert got.reward_count == want.reward_count
                age += steps_of(got)


async def test_only_the_newest_version_learns_against_a_past_one() -> None:
    lengths = [[6, 6, 6, 6]]
    opponents = Opponents(Opponent(0, 1), Opponent(0, 0), Opponent(-1, 0))
    async with InferenceServer(Versions(0, 7)) as server:
        done = await play(CountingGames(lengths), 24, [server], opponents=opponents)
    by_game = of_games(done.segments)
    assert sorted(by_game) == [(0, 0), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)]
    for segment in done.segments:
        assert (segment.oldest_version, segment.newest_version) == (7, 7)
    # Radiant won episode 0, Dire episode 1: both times the training side.
    assert [(version, outcome) for _, version, outcome in opponents.reports] == [(0, 1), (0, 1)]
    assert [r["outcome"] for r in done.records] == ["won", "won", "selfplay", "selfplay"]
    assert [r["opponent"] for r in done.records] == [0, 0, -1, -1]


async def test_games_against_a_missing_version_are_abandoned() -> None:
    async with InferenceServer(Versions(7)) as server:
        done = await play(CountingGames([[50], [50]]), 20, [server], opponents=Opponents(Opponent(3, 1)))
    assert done.group.progress.abandoned_games == 1 and done.games.steps == 20
    check_recurrence(done.segments, [[50], [50]])


async def test_scripted_side_sends_no_segments() -> None:
    games = CountingGames([[9], [9]])
    async with InferenceServer(Versions(0)) as server:
        done = await play(games, 20, [server], scripted=1.0)
    bots = games.controllers != 0
    assert bots.sum(axis=1).tolist() == [1, 1]
    assert done.segments and all(r["opponent"] == "scripted" for r in done.records)
    for segment in done.segments:
        assert segment.arrays["behaviour_values"].shape == (segment.samples * UNROLL, HEROES)
    check_recurrence(done.segments, [[9], [9]])


async def test_lost_games_are_replaced() -> None:
    games = CountingGames([[30], [30]])
    games.lose_at = {13}
    async with InferenceServer(Versions(0)) as server:
        done = await play(games, 40, [server])
    assert games.episode.tolist()[0] >= 1
    assert check_recurrence(done.segments, [[30], [30]]) > 60


async def test_two_groups_share_an_inference_server() -> None:
    async with InferenceServer(Versions(0), queue_delay_seconds=0.002) as server:
        one, other = await asyncio.gather(play(CountingGames(LENGTHS), 50, [server]),
                                          play(CountingGames(LENGTHS[::-1]), 50, [server], seed=2))
    check_recurrence(one.segments, LENGTHS)
    check_recurrence(other.segments, LENGTHS[::-1])


async def test_game_record() -> None:
    async with InferenceServer(Versions(2)) as server:
        done = await play(CountingGames([[9]]), 9, [server])
    record = done.records[0]
    assert record["version"] == 2 and record["winner"] == "radiant" and record["game_seconds"] == 9.0
    # Hero numbers of slot 0, and the version's prediction at the first observation.
    assert record["lineup"] == [[0] * HEROES] * 2 and record["win_probability"] == [0.52, 0.52]
    assert record["statistics"]["last_hits"] == 4.5  # the mean of 9 and 0
    decay = sum(t * 0.006 * 0.6 ** ((t + 1) / 600) for t in range(9))
    assert record["rewards"]["gold"] == pytest.approx(decay / 2, rel=1e-3)


def test_games_are_split_over_groups() -> None:
    assert split_games(5, 2) == [3, 2] and split_games(1, 2) == [1] and split_games(24, 2) == [12, 12]

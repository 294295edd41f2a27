"""A group of games: progress, traces, stagger, pauses and lost inference."""

import asyncio
from collections.abc import Collection
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from five.clients.opponents import WON, Opponent
from five.services.rollout import game_group
from five.services.rollout.game_group import ring_capacity, split_games
from five.services.rollout.group_progress import GroupProgress
from five.services.rollout.past_opponent import PastOpponent
from five.services.rollout.step_buffer import SIDES
from rapid.telemetry import tracing
from tests.agent.plain_samples import steps_of
from tests.services.counting import HEROES, CountingGames, Versions
from tests.services.inference_server import InferenceServer
from tests.services.test_rollout import LEARNING, SAMPLES, UNROLL, Opponents, check_recurrence, of_games, play


async def test_progress_counts_steps_games_and_segments() -> None:
    async with InferenceServer(Versions(0, 3)) as server:
        done = await play(CountingGames([[9, 50], [50]]), 20, [server])
    progress = done.group.progress
    assert progress.team_steps == 2 * SIDES * 20 and progress.hero_steps == progress.team_steps * HEROES
    assert progress.games == len(done.records) == 1
    assert progress.segments == len(done.segments) > 4
    assert (progress.newest_version, progress.recoveries, progress.abandoned_games) == (3, 0, 0)
    assert progress.forward_us > 0 and not progress.is_idle
    assert min(progress.act_seconds, progress.step_seconds, progress.cut_seconds, progress.wait_seconds) > 0


async def test_group_without_a_step_has_no_totals() -> None:
    async with InferenceServer(Versions(0)) as server:
        done = await play(CountingGames([[50]]), 0, [server])
    totals = asdict(done.group.progress)
    assert (totals.pop("newest_version"), totals.pop("is_idle")) == (-1, False)
    assert not any(totals.values()), totals
    assert GroupProgress().is_idle, "a group that has not begun to play has nothing to send"


async def test_steps_of_a_bots_side_are_not_counted() -> None:
    async with InferenceServer(Versions(0)) as server:
        done = await play(CountingGames([[50]]), 10, [server], scripted=1.0)
    assert done.group.progress.team_steps == 10


async def test_newest_version_is_not_that_of_a_past_opponent() -> None:
    async with InferenceServer(Versions(0, 7)) as server:
        done = await play(CountingGames([[50]]), 10, [server], opponents=Opponents(Opponent(0, 1)))
    assert done.group.progress.newest_version == 7


async def test_first_segments_of_the_slots_end_at_different_samples() -> None:
    """The slots do not send all at once; a later game in a slot begins with a full segment."""
    async with InferenceServer(Versions(0)) as server:
        done = await play(CountingGames([[100], [100], [100], [30, 100]]), 60, [server])
    lengths = {key: [steps_of(s) for s in parts] for key, parts in of_games(done.segments).items() if key[0] % 2 == 0}
    full = UNROLL * SAMPLES
    assert lengths[0, 0][:2] == [UNROLL, full] and lengths[2, 0][:2] == [full, full]
    assert lengths[4, 0][:2] == [UNROLL, full] and lengths[6, 0][:2] == [full, full]
    assert lengths[6, 1][0] == full


async def test_outcome_is_that_of_each_side() -> None:
    """Winners rotate: Radiant, Dire, draw. The label is 1, 0 or one half."""
    async with InferenceServer(Versions(0)) as server:
        done = await play(CountingGames([[4]]), 12, [server])
    labels = {key: parts[-1].arrays["win_label"][0].item() for key, parts in of_games(done.segments).items()}
    assert labels == {(0, 0): 1.0, (1, 0): 0.0, (0, 1): 0.0, (1, 1): 1.0, (0, 2): 0.5, (1, 2): 0.5}
    assert [record["winner"] for record in done.records] == ["radiant", "dire", "draw"]


async def test_result_against_a_past_version_is_reported() -> None:
    """The past version is on Dire, which loses the first game."""
    opponents = Opponents(Opponent(0, 1))
    async with InferenceServer(Versions(0, 7)) as server:
        done = await play(CountingGames([[6, 50]]), 10, [server], opponents=opponents)
    assert opponents.reports == [(done.records[0]["game"], 0, WON)]


async def test_missing_version_is_not_played_again() -> None:
    """A version that was loaded once left the archive before its server restarted."""
    async def want(version: int) -> bool:
        return False

    past = PastOpponent(want, 100)
    past.version = 3
    async with InferenceServer(Versions(7)) as server:
        done = await play(CountingGames([[50], [50]]), 20, [server], past=past,
                          opponents=Opponents(*[Opponent(3, 1)] * 100))
    await past.close()
    assert done.group.progress.abandoned_games == 2 and done.games.steps == 20
    check_recurrence(done.segments, [[50], [50]])


async def test_prediction_of_each_side_is_that_of_its_first_step() -> None:
    versions = Versions(0)
    async with InferenceServer(versions) as server:

        async def publish() -> None:
            versions.publish(20)
            await asyncio.to_thread(server.models.refresh)

        done = await play(CountingGames([[9, 9]]), 18, [server], {5: publish})
    assert [record["win_probability"] for record in done.records] == [[0.5, 0.5], [0.7, 0.7]]


async def test_bots_side_has_no_prediction() -> None:
    async with InferenceServer(Versions(0)) as server:
        done = await play(CountingGames([[9]]), 18, [server], scripted=1.0)
    assert done.records and all("win_probability" not in record for record in done.records)


async def test_pauses_between_requests_grow_in_each_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failing inference is asked less and less often, at least every 5 s. The next outage starts with short pauses."""
    slept: list[float] = []

    async def quick(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(game_group, "asyncio", SimpleNamespace(sleep=quick))
    async with InferenceServer(Versions(0)) as server:
        policy = server.builder.created[0]
        act, failures = policy.act, {3: 8, 12: 2}  # by played step

        def failing(*arguments: Any, **options: Any) -> Any:
            if failures.get(games.steps, 0):
                failures[games.steps] -= 1
                raise RuntimeError("the forward pass broke")
            return act(*arguments, **options)

        policy.act = failing  # type: ignore[method-assign]
        games = CountingGames([[50]])
        done = await play(games, 20, [server])
    assert slept == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 0.1, 0.2]
    assert done.group.progress.recoveries == len(slept) and done.group.progress.abandoned_games == 0


@pytest.mark.parametrize("pauses", [(), (17,)], ids=["full segments", "cut by a pause"])
@pytest.mark.parametrize("scripted", [0.0, 1.0], ids=["self-play", "bots"])
async def test_unfinished_segment_has_its_own_sides_predictions(scripted: float, pauses: Collection[int]) -> None:
    """Each side of each game has another prediction; a bot's side has none."""
    async with InferenceServer(Versions(0)) as server:
        policy = server.builder.created[0]
        act = policy.act

        def predicting(obs: Any, state: Any, **options: Any) -> Any:
            found = act(obs, state, **options)
            by_side = 0.1 + 0.01 * obs["shared"][:, 2:3].float()
            return replace(found, aux={**found.aux, "win_probability": by_side})

        policy.act = predicting  # type: ignore[method-assign]
        done = await play(CountingGames([[100], [100], [100]]), 30, [server], scripted=scripted, pauses=pauses)
    labels = {side: {label for part in parts for label in part.arrays["win_label"].round(4).tolist()}
              for (side, _), parts in of_games(done.segments).items()}
    assert len(labels) == (6 if scripted == 0.0 else 3)
    assert {side: [round(label, 2) for label in found] for side, found in labels.items()} == {
        side: [round(0.1 + 0.01 * side, 2)] for side in labels}


def test_stage_seconds_add_up_also_after_an_error() -> None:
    progress = GroupProgress(step_seconds=1.0)
    for error in (None, ValueError("a fault")):
        before = progress.step_seconds
        try:
            with progress.timed("step"):
                if error is not None:
                    raise error
        except ValueError:
            pass
        assert progress.step_seconds > before
    assert progress.act_seconds == progress.cut_seconds == progress.wait_seconds == 0.0


async def test_group_without_a_broadcast_lists_no_games() -> None:
    async with InferenceServer(Versions(0)) as server:
        done = await play(CountingGames([[50]]), 4, [server])
    assert done.group.live_games() == []


@pytest.mark.parametrize(("games", "groups", "expected"), [
    (5, 2, [3, 2]), (7, 3, [3, 2, 2]), (2, 5, [1, 1]), (1, 1, [1])])
def test_games_are_split_evenly(games: int, groups: int, expected: list[int]) -> None:
    assert split_games(games, groups) == expected


def test_ring_holds_a_segment_and_the_sample_before_it() -> None:
    assert ring_capacity(16, 16) == 16 * 17 + 2


async def test_sampled_step_is_traced_once_until_its_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[tuple[Any, ...]] = []
    spans = [0]

    class Span:
        def __init__(self) -> None:
            spans[0] += 1
            self.traceparent = f"step-{spans[0]}"

        def __enter__(self) -> "Span":
            return self

        def __exit__(self, *_: object) -> None: ...

    def record(name: str, parent: str, begin: int, end: int, *_: Any) -> str:
        recorded.append((name, parent))
        assert begin <= end
        return f"{parent}/segment"

    monkeypatch.setattr(tracing, "step_span", lambda *_: Span())
    monkeypatch.setattr(tracing, "record", record)
    async with InferenceServer(Versions(0)) as server:
        done = await play(CountingGames([[100], [100]]), 20, [server])
    traced = [s for s in done.segments if s.traceparent]
    assert len(traced) == len(recorded) and recorded[0] == ("build segment", "step-1")
    assert [s.traceparent for s in traced] == [f"{parent}/segment" for _, parent in recorded]
    assert np.all([steps_of(s) for s in traced])
    assert len({parent for _, parent in recorded}) == len(recorded)  # each sampled step has one segment
    sides = {int(s.arrays["shared"][0, 2]) for s in done.segments}
    assert check_recurrence(done.segments, [[100], [100]]) > 0 and sides == {0, 1, 2, 3}, "a trace replaced a segment"


async def test_record_has_the_heroes_of_its_own_game() -> None:
    games = CountingGames([[50], [6, 50]])
    reset = games.reset

    async def with_lineups(started: Any, *arguments: Any) -> Any:
        await reset(started, *arguments)
        return np.array([[[10 * game], [10 * game + 1]] for game in started], np.int16)

    games.reset = with_lineups  # type: ignore[method-assign, assignment]
    async with InferenceServer(Versions(0)) as server:
        done = await play(games, 10, [server])
    assert [record["lineup"] for record in done.records] == [[[10], [11]]]


async def test_outcome_samples_follow_the_segments_after_a_games_end() -> None:
    """A game of 21 steps has 6 samples a side. The first one and another are sent once more with the outcome."""
    learning = LEARNING.model_copy(update={"outcome_samples_per_game": 2})
    async with InferenceServer(Versions(0)) as server:
        done = await play(CountingGames([[21, 100], [100]]), 40, [server], learning=learning)
    played = [s for s in done.segments if s.arrays["mask"].any()]
    assert check_recurrence(played, [[21, 100], [100]]) > 100
    outcomes = [s for s in done.segments if not s.arrays["mask"].any()]
    ids = [s.segment_id for s in done.segments]
    assert len(outcomes) == 4
    for side, won in enumerate((1.0, 0.0)):
        first, other = (s for s in outcomes if s.arrays["shared"][0, 2] == side)
        assert first.arrays["shared"][:, 0].tolist() == [0, 1, 2, 3]
        assert first.arrays["resets"].tolist() == [True, False, False, False]
        start = other.arrays["shared"][0, 0].item()
        assert start in range(UNROLL, 21, UNROLL) and not other.arrays["resets"].any()
        assert other.arrays["state/count"].item() == start
        for segment in (first, other):
            assert segment.arrays["shared"][0, 1] == 0 and segment.arrays["win_label"].tolist() == [won] * UNROLL
            assert (segment.reward_count, segment.samples) == (0, 1)
        between = ids.index(other.segment_id) - ids.index(first.segment_id)
        assert between > 1, "one with each segment"

"""Games that are cut at a scheduled game time: their segments continue by the value, and they have no outcome."""

import pytest

from five.clients.opponents import Opponent
from tests.agent.plain_samples import steps_of
from tests.services.counting import CountingGames, Versions
from tests.services.inference_server import InferenceServer
from tests.services.test_rollout import LEARNING, SAMPLES, UNROLL, Opponents, check_recurrence, of_games, play


async def test_game_is_cut_at_the_first_sample_after_its_limit() -> None:
    async with InferenceServer(Versions(0)) as server:
        done = await play(CountingGames([[100], [9, 100]]), 45, [server], game_seconds=10.0)
    assert check_recurrence(done.segments, [[100], [9, 100]]) > 100
    steps = {key: sum(map(steps_of, parts)) for key, parts in of_games(done.segments).items()}
    # A limit of 10 s, and of steps, is reached in the third sample; the step after it is played and dropped. The first
    # game of the first slot has half the limit, so that the slots do not stay in phase.
    assert [steps[0, episode] for episode in range(3)] == [2 * UNROLL, 3 * UNROLL, 3 * UNROLL]
    assert (steps[2, 0], steps[2, 1]) == (9, 3 * UNROLL)
    assert [record["outcome"] for record in done.records[:3]] == ["selfplay", "cut", "cut"]
    assert (done.records[1]["winner"], done.records[1]["game_seconds"]) == ("", 2 * UNROLL + 1)


async def test_last_segment_of_a_cut_game_bootstraps() -> None:
    """The value of the step after the segment is in its returns, and predictions are its labels."""
    limit = float(UNROLL * (1 + SAMPLES))  # the end of the second segment, which is the first full one
    learning = LEARNING.model_copy(update={"outcome_samples_per_game": 2})
    async with InferenceServer(Versions(0)) as server:
        cut = await play(CountingGames([[100]]), 20, [server], game_seconds=limit, learning=learning)
        whole = await play(CountingGames([[100]]), 20, [server])
    first, expected = of_games(cut.segments)[0, 0], of_games(whole.segments)[0, 0]
    for name in ("returns", "advantages", "win_label"):
        found = [row for segment in first for row in segment.arrays[name].ravel().tolist()]
        same = [row for segment in expected for row in segment.arrays[name].ravel().tolist()]
        assert found == pytest.approx(same[:len(found)]), name
    assert all(segment.arrays["mask"].any() for segment in cut.segments), "an outcome sample of a cut game"


async def test_game_that_ends_in_the_step_of_its_cut_has_its_outcome() -> None:
    opponents = Opponents(Opponent(0, 1), Opponent(0, 1))
    length = 2 * UNROLL + 1
    async with InferenceServer(Versions(0, 7)) as server:
        done = await play(CountingGames([[length, 100]]), 24, [server], opponents=opponents,
                          game_seconds=2.0 * UNROLL)
    assert [record["outcome"] for record in done.records] == ["won", "cut"]
    assert len(opponents.reports) == 1, "a cut game was reported"
    last = of_games(done.segments)[0, 0][-1]
    assert steps_of(last) == 1 and last.arrays["win_label"][0] == 1.0


async def test_limit_is_that_of_the_begin_of_a_game() -> None:
    async with InferenceServer(Versions(0)) as server:
        games = CountingGames([[100]])
        limits = [8.0, 100.0]
        done = await play(games, 30, [server], game_seconds=limits)
    assert [record["game_seconds"] for record in done.records] == [9.0]
    assert games.episode.tolist() == [1] and games.age.tolist() == [21]

"""A pause between two steps: complete samples are sent, and nothing else changes."""

from typing import Any

import numpy as np
import pytest

from five.agent.learning.samples import Arrays
from five.agent.learning.segments import Bootstrap, Segment, cut_segment
from five.clients.opponents import Opponent
from five.services.rollout.game_group import GameGroup
from tests.agent.plain_samples import steps_of
from tests.services.counting import CountingGames, Versions
from tests.services.inference_server import InferenceServer
from tests.services.test_rollout import (
    LEARNING,
    LENGTHS,
    RATES,
    SAMPLES,
    UNROLL,
    Opponents,
    PlayResult,
    SegmentSink,
    check_recurrence,
    of_games,
    play,
    play_undisturbed,
    same,
)

STEPS = 50
# A sample's first and last step, a segment's, a game's first and last, and in between.
MOMENTS = [0, 1, 3, 4, 7, 8, 9, 11, 20, 21, 22, 33]


def whole(parts: list[Segment[Arrays]]) -> dict[str, Any]:
    """Return a game's steps in order, without arrays that depend on segment boundaries."""
    return {name: np.concatenate([s.arrays[name][: steps_of(s)] for s in parts])
            for name in ("shared", "actions", "behaviour_logp", "behaviour_values", "versions", "resets")}


def same_games(paused: PlayResult, undisturbed: PlayResult) -> None:
    ours, theirs = of_games(paused.segments), of_games(undisturbed.segments)
    assert ours.keys() == theirs.keys()
    for key, parts in ours.items():
        for name, array in whole(parts).items():
            np.testing.assert_array_equal(array, whole(theirs[key])[name], err_msg=f"{key} {name}")
        assert sum(s.reward_count for s in parts) == sum(s.reward_count for s in theirs[key])
        assert sum(s.reward_sum for s in parts) == pytest.approx(sum(s.reward_sum for s in theirs[key]))


@pytest.mark.parametrize("moment", MOMENTS)
async def test_recurrent_state_survives_a_pause(moment: int) -> None:
    seen: list[dict[int, int]] = []

    async def during_pause(group: GameGroup, sink: SegmentSink) -> None:
        assert group.progress.is_idle
        sent = dict.fromkeys(range(len(LENGTHS)), 0)
        for (place, episode), parts in of_games(sink.segments).items():
            if episode == sink.games.episode[place // 2] and place % 2 == 0:
                sent[place // 2] = sum(steps_of(s) for s in parts)
        ages = {game: int(age) for game, age in enumerate(sink.games.age)}
        assert sent == {game: age - age % UNROLL for game, age in ages.items()}
        seen.append(sent)

    undisturbed = await play_undisturbed()
    async with InferenceServer(Versions(0)) as server:
        paused = await play(CountingGames(LENGTHS), STEPS, [server], pauses=[moment], during_pause=during_pause)
    assert len(seen) == 1
    same_games(paused, undisturbed)
    check_recurrence(paused.segments, LENGTHS)
    # Later segments end where they would have ended without the pause and are equal in every value.
    borders = {key: set(np.cumsum([steps_of(s) for s in parts]).tolist())
               for key, parts in of_games(paused.segments).items()}
    for key, parts in of_games(undisturbed.segments).items():
        assert set(np.cumsum([steps_of(s) for s in parts]).tolist()) <= borders[key]
        age = 0
        for segment in parts:
            twins = [s for s in of_games(paused.segments)[key]
                     if steps_of(s) == steps_of(segment) and s.arrays["shared"][0, 0] == segment.arrays["shared"][0, 0]]
            if twins:
                same([segment], twins)
            age += steps_of(segment)


async def test_cut_segment_bootstraps_from_its_boundary_step() -> None:
    async with InferenceServer(Versions(0)) as server:
        done = await play(CountingGames([[100]]), 30, [server], pauses=[17])
    predicted = {"win_probability": np.full(1, 0.5), "net_worth_rank": np.full((1, 5), 0.2),
                 "building_events": np.full((1, 1), 0.1)}
    for side in (0, 1):
        parts = of_games(done.segments)[side, 0]
        assert [steps_of(s) for s in parts] == [4, 8, 4, 4, 8]  # 17 steps were played: the third segment ends after 16
        running, age = np.zeros(1), 0
        for i, got in enumerate(parts[:3]):
            ages = np.arange(age, age + steps_of(got))
            earned = ages * 0.006 * 0.6 ** ((ages + 1) / 600)
            following = Bootstrap(parts[i + 1].arrays["behaviour_values"][0], predicted)
            want = cut_segment(
                {n: got.arrays[n] for n in ("actions", "behaviour_logp", "behaviour_values", "versions")},
                np.arange(steps_of(got)), states={}, rewards=(earned if side == 0 else -earned)[:, None],
                fallen=((ages == 4) & (side == 0)).astype(np.float32)[:, None], begins=age == 0, end=following,
                config=LEARNING, gae_horizon_seconds=RATES.gae_horizon_seconds, reward_std=RATES.reward_std,
                running_return=running, timestep_seconds=4 / 30)
            for name in ("advantages", "returns", "win_label", "rank_label", "building_label", "mask", "resets"):
                np.testing.assert_allclose(got.arrays[name], want.arrays[name], rtol=1e-4, atol=1e-5, err_msg=name)
            age += steps_of(got)


@pytest.mark.parametrize("moment", [9, 12, 14])
async def test_states_lost_in_a_pause_are_rebuilt(moment: int) -> None:
    undisturbed = await play_undisturbed()
    async with InferenceServer(Versions(0)) as server:

        async def during_pause(group: GameGroup, sink: SegmentSink) -> None:
            server.table.close(group.slots.sessions.reshape(-1).tolist())

        paused = await play(CountingGames(LENGTHS), STEPS, [server], pauses=[moment], during_pause=during_pause)
    assert paused.group.progress.recoveries == 1
    same_games(paused, undisturbed)


async def test_repeated_pauses_within_one_sample() -> None:
    undisturbed = await play_undisturbed()
    async with InferenceServer(Versions(0)) as server:
        paused = await play(CountingGames(LENGTHS), STEPS, [server], pauses=range(0, STEPS))
    same_games(paused, undisturbed)
    for parts in of_games(paused.segments).values():
        assert all(s.samples == 1 for s in parts)  # each boundary ends a segment, and no segment is empty
    assert SAMPLES > 1


async def test_pause_cuts_only_the_learning_side() -> None:
    async with InferenceServer(Versions(0, 7)) as server:
        past = await play(CountingGames([[100]]), 30, [server], opponents=Opponents(Opponent(0, 1)), pauses=[17])
        bot = await play(CountingGames([[100]]), 30, [server], scripted=1.0, pauses=[17])
    for done in (past, bot):
        (parts,) = of_games(done.segments).values()
        assert [steps_of(s) for s in parts] == [4, 8, 4, 4, 8]
        check_recurrence(done.segments, [[100]])


async def test_shutdown_sends_complete_samples() -> None:
    async with InferenceServer(Versions(0)) as server:
        done = await play(CountingGames([[100]]), 30, [server])
    assert [sum(steps_of(s) for s in parts) for parts in of_games(done.segments).values()] == [28, 28]

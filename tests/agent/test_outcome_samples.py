"""Outcome samples: which samples of a game are kept, and what the labelled segment holds."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from five.agent.config import BufferConfig, LearnerConfig
from five.agent.learning.buffer import SampleBuffer
from five.agent.learning.labels import GameOutcome
from five.agent.learning.learner import Learner
from five.agent.learning.outcome_samples import OutcomeSamples
from five.agent.learning.samples import Arrays
from five.agent.learning.segments import Segment
from five.agent.schedules import Hyperparameters
from tests.agent.plain_samples import add_sample, collate_arrays, split_segment
from tests.agent.standins import FavouriteGame, Rollout, TinyPolicy

UNROLL, H = 4, 2
OUTCOME = GameOutcome(1.0, np.array([1, 0]))


def segment_of(first: int, steps: int, variant: str = "") -> Segment[Arrays]:
    """Return a segment whose observation and version are the step's number, padded to whole samples."""
    samples = -(-steps // UNROLL)
    number = np.minimum(first + np.arange(samples * UNROLL), first + steps - 1)
    mask = np.zeros((len(number), H), np.float32)
    mask[:steps] = 1
    arrays = {"x": number.astype(np.float16), "versions": number.astype(np.int32), "mask": mask,
              "outcome_mask": np.zeros(len(number), np.float32), "win_label": np.full(len(number), 0.25, np.float32),
              "rank_label": np.full((len(number), H, 5), 0.2, np.float32), "resets": number == 0,
              "state/h": np.arange(first // UNROLL, first // UNROLL + samples, dtype=np.float32)[:, None]}
    return Segment(arrays, samples, 1.0, 1.0, steps * H, first, first + steps - 1, variant)


def finish(team: OutcomeSamples) -> list[Segment[Arrays]]:
    """Finish the game and return all labelled samples."""
    team.finish_game(OUTCOME)
    return list(iter(team.take, None))


def kept(found: list[Segment[Arrays]]) -> list[int]:
    """Return the numbers of the samples in the game."""
    return [int(segment.arrays["state/h"][0, 0]) for segment in found]


def test_labels_are_the_outcome_and_only_auxiliary_heads_learn() -> None:
    team = OutcomeSamples(8, np.random.default_rng(0))
    team.add(segment_of(0, 8))
    team.add(segment_of(8, 6, "new"))
    assert team.take() is None
    found = finish(team)
    assert kept(found) == [0, 1, 2, 3]
    for number, segment in enumerate(found):
        a = segment.arrays
        assert a["x"].tolist() == ([12, 13, 13, 13] if number == 3 else list(range(4 * number, 4 * number + 4)))
        assert not a["mask"].any() and a["outcome_mask"].tolist() == ([1, 1, 0, 0] if number == 3 else [1] * 4)
        assert (a["win_label"] == 1).all() and a["rank_label"].argmax(-1).tolist() == [[1, 0]] * 4
        assert a["resets"].tolist() == [number == 0, False, False, False]
        assert (segment.samples, segment.reward_count, segment.reward_sum, segment.reward_square_sum) == (1, 0, 0, 0)
        assert (segment.oldest_version, segment.newest_version) == (4 * number, min(4 * number + 3, 13))
        assert segment.variant == ("new" if number >= 2 else "")
    assert len({segment.segment_id for segment in found}) == 4


def test_kept_samples_are_copies() -> None:
    team = OutcomeSamples(1, np.random.default_rng(0))
    segment = segment_of(0, 4)
    team.add(segment)
    for array in segment.arrays.values():
        array[:] = 0
    assert finish(team)[0].arrays["x"].tolist() == [0, 1, 2, 3]


def test_first_sample_is_kept_and_the_others_are_uniform() -> None:
    counts: Counter[int] = Counter()
    team = OutcomeSamples(3, np.random.default_rng(0))
    for _ in range(900):
        for first in range(0, 40, 8):
            team.add(segment_of(first, 8))
        found = kept(finish(team))
        assert found[0] == 0 and len(set(found)) == 3
        counts.update(found)
    assert counts[0] == 900
    assert all(140 < counts[sample] < 260 for sample in range(1, 10))  # 200, and a deviation of 12


@pytest.mark.parametrize(("capacity", "samples"), [(0, []), (1, [0])])
def test_smallest_capacities(capacity: int, samples: list[int]) -> None:
    team = OutcomeSamples(capacity, np.random.default_rng(0))
    team.add(segment_of(0, 8))
    assert kept(finish(team)) == samples


def test_samples_of_an_abandoned_game_are_dropped() -> None:
    team = OutcomeSamples(2, np.random.default_rng(0))
    team.add(segment_of(0, 8))
    team.start_game()
    team.add(segment_of(4, 4))
    assert kept(finish(team)) == [1]
    assert finish(team) == []


def test_labelled_samples_wait_across_games_in_order() -> None:
    """The oldest game's samples leave when a third game ends."""
    team = OutcomeSamples(2, np.random.default_rng(0))
    for first in (0, 8, 16):
        team.add(segment_of(first, 8))
        team.finish_game(OUTCOME)
    assert kept(list(iter(team.take, None))) == [2, 3, 4, 5]


def win_loss_after_training(outcome_samples: int) -> float:
    """Play 32 games of 400 steps, use each sample once, and return the win head's loss at a game's first step, as a
    share of chance."""
    batch = 16
    config = LearnerConfig(lstm_unroll_length=UNROLL, samples_per_segment=2, batch_samples=batch, initial_hold_steps=0,
                           normalise_advantages=False, outcome_samples_per_game=outcome_samples)
    policy = TinyPolicy()
    learner, rollout = Learner(policy, config), Rollout(policy, config, games=8, seed=0, game=FavouriteGame)
    buffer = SampleBuffer(BufferConfig(capacity_samples=64, minimum_samples=batch, sampling="least_used"),
                          collate_arrays)
    received = consumed = 0
    for _ in range(100):
        for segment in rollout.play(16)[0]:
            for sample in split_segment(segment.arrays, segment.samples):
                received += add_sample(buffer, sample, sample["versions"], 0)
        while consumed + batch <= received and (found := buffer.sample(batch, 0)) is not None:
            learner.train_step(found.arrays, Hyperparameters(1e-2, 0.0, 0.0, 180.0))
            consumed += batch
    first = {"x": torch.tensor([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])}
    predicted = policy.act(first, policy.initial_state(2))[3]["win_probability"]
    won = torch.tensor([0.0, 1.0])[:, None].expand_as(predicted)
    return F.binary_cross_entropy(predicted, won).item() / math.log(2)


@pytest.mark.runs
def test_win_head_learns_from_outcome_samples() -> None:
    """A prediction as label carries the outcome back by one of 50 segments, so that the head stays near chance."""
    assert win_loss_after_training(0) > 0.8
    assert win_loss_after_training(8) < 0.5

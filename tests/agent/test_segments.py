import dataclasses

import numpy as np
import pytest
import torch

from five.agent.config import LearnerConfig
from five.agent.learning.gae import discount
from five.agent.learning.labels import GameOutcome
from five.agent.learning.samples import split_batch
from five.agent.learning.segments import Bootstrap, cut_segment
from tests.agent.plain_samples import split_segment, steps_of
from tests.agent.standins import Recorder, Rollout, TinyPolicy

H, N = 2, 3  # heroes, buildings
CONFIG = LearnerConfig(lstm_unroll_length=4, samples_per_segment=4)
LENGTH = 16


@dataclasses.dataclass
class Step:
    """Recorded step."""

    count: int
    state: float
    actions: np.ndarray
    logp: np.ndarray
    values: np.ndarray
    predictions: dict
    version: int
    rewards: np.ndarray
    outcome: GameOutcome | None
    fallen: np.ndarray


def play(lengths, steps, recorder=None, versions=lambda t: 7):
    """Play games of these lengths whose observation is the step number, and return segments and steps in order."""
    rng = np.random.default_rng(0)
    recorder = recorder or Recorder(CONFIG, 60.0)
    segments, played, waiting = [], [], []
    game = age = 0
    state = 0.0
    for t in range(steps):
        if age == 0:
            state = 0.0
        last = age + 1 == lengths[game % len(lengths)]
        predictions = {"win_probability": rng.uniform(size=H), "net_worth_rank": rng.dirichlet(np.ones(5), H),
                       "building_events": rng.uniform(size=(H, N))}
        step = Step(age, state, rng.integers(0, 9, (H, 6)).astype(np.int16), rng.normal(size=H).astype(np.float32),
                    rng.normal(size=H).astype(np.float32), predictions, versions(t), rng.normal(size=H),
                    GameOutcome(float(game % 2), np.array([1, 0])) if last else None,
                    (rng.uniform(size=N) < 0.1).astype(float))
        waiting.append(step)
        for segment in recorder.add(
                {"count": np.array([age], np.float16)}, {"count": np.full((H, 1), state, np.float32)}, step.actions,
                step.logp, step.values, predictions, step.version, step.rewards, step.outcome, step.fallen):
            segments.append(segment)
            played.append(waiting[: steps_of(segment)])
            waiting = waiting[steps_of(segment) :]
        state += 1.0
        age, game = (0, game + 1) if last else (age + 1, game)
    played.append(waiting)  # steps not yet cut, beginning with the last bootstrap step
    return segments, played


def slow_advantages(rewards, values, bootstrap, gamma, lam):
    """Return GAE as an explicit sum."""
    n = len(rewards)
    after = np.concatenate([values[1:], bootstrap[None]]).astype(np.float64)
    delta = rewards + gamma * after - values
    return np.stack([sum((gamma * lam) ** (k - t) * delta[k] for k in range(t, n)) for t in range(n)])


@pytest.mark.parametrize("lengths", [[1], [3], [4], [5, 9], [16], [17], [1, 40, 2], [1000]])
def test_state_continues_across_segments_and_resets(lengths):
    """Stored states and resets reproduce the step counts, as in TorchBeast's core-agent-state test."""
    segments, played = play(lengths, 200)
    assert sum(steps_of(s) for s in segments) > 200 - LENGTH - 1
    for segment, steps in zip(segments, played, strict=False):
        counted = []
        for sample in split_segment(segment.arrays, segment.samples):
            count = float(sample["state/count"][0, 0])
            for reset in sample["resets"]:
                counted.append(0.0 if reset else count)
                count = counted[-1] + 1
        assert counted[: steps_of(segment)] == [float(s.count) for s in steps]
        assert segment.arrays["count"][: steps_of(segment), 0].tolist() == counted[: steps_of(segment)]


def test_later_samples_have_nonzero_states():
    segments, _ = play([1000], 40)
    assert [s.arrays["state/count"][:, 0, 0].tolist() for s in segments] == [[0, 4, 8, 12], [16, 20, 24, 28]]
    assert [s.arrays["resets"].any() for s in segments] == [True, False]


def test_segment_is_complete_and_in_order():
    segments, played = play([5, 20, 16], 100)
    assert [steps_of(s) for s in segments] == [5, 16, 4, 16, 5, 16, 4, 16, 5]
    for segment, steps in zip(segments, played, strict=False):
        a, n = segment.arrays, steps_of(segment)
        np.testing.assert_array_equal(a["actions"][:n], np.stack([s.actions for s in steps]))
        np.testing.assert_array_equal(a["behaviour_logp"][:n], np.stack([s.logp for s in steps]))
        np.testing.assert_array_equal(a["behaviour_values"][:n], np.stack([s.values for s in steps]))
        assert a["resets"].tolist() == [steps[0].count == 0] + [False] * (len(a["resets"]) - 1)


def test_unfinished_segment_bootstraps_from_the_next_step():
    segments, played = play([1000], LENGTH + 1)
    steps, following = played[0], played[1][0]
    assert np.abs(following.values).min() > 0.05
    values = np.stack([s.values for s in steps])
    expected = slow_advantages(np.stack([s.rewards for s in steps]), values, following.values, discount(60.0), 0.95)
    np.testing.assert_allclose(segments[0].arrays["advantages"], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(segments[0].arrays["returns"], expected + values, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", [LENGTH, 10])
def test_final_segment_does_not_bootstrap(length):
    segments, played = play([length], length)
    values = np.stack([s.values for s in played[0]])
    expected = slow_advantages(np.stack([s.rewards for s in played[0]]), values, np.zeros(H), discount(60.0), 0.95)
    np.testing.assert_allclose(segments[0].arrays["advantages"][:length], expected, rtol=1e-5, atol=1e-5)


def test_rewards_are_scaled_and_summed_raw():
    segments, played = play([LENGTH], LENGTH, Recorder(CONFIG, 60.0, reward_std=4.0))
    raw, values = np.stack([s.rewards for s in played[0]]), np.stack([s.values for s in played[0]])
    expected = slow_advantages(raw / 4.0, values, np.zeros(H), discount(60.0), 0.95)
    np.testing.assert_allclose(segments[0].arrays["advantages"], expected, rtol=1e-5, atol=1e-5)
    assert segments[0].reward_sum == pytest.approx(raw.sum())
    assert segments[0].reward_square_sum == pytest.approx((raw**2).sum())
    assert segments[0].reward_count == raw.size


def test_return_scale_continues_across_segments():
    segments, played = play([20, 3], 46, Recorder(CONFIG.model_copy(update={"reward_scale": "return"}), 1.0))
    assert [steps_of(s) for s in segments] == [16, 4, 3, 16, 4, 3]
    gamma, running = discount(1.0), np.zeros(H)
    for segment, steps in zip(segments, played, strict=False):
        sums = []
        for step in steps:
            running = step.rewards if step.count == 0 else gamma * running + step.rewards
            sums.append(running)
        assert segment.reward_sum == pytest.approx(np.sum(sums))
        assert segment.reward_square_sum == pytest.approx(np.square(sums).sum())


def test_labels_come_from_outcomes_or_predictions():
    segments, played = play([1000], LENGTH + 1)
    following, a = played[1][0], segments[0].arrays
    np.testing.assert_allclose(a["win_label"], following.predictions["win_probability"].mean(), rtol=1e-6)
    np.testing.assert_allclose(
        a["rank_label"], np.broadcast_to(following.predictions["net_worth_rank"], (LENGTH, H, 5)), rtol=1e-6)
    gamma = discount(CONFIG.building_horizon_seconds)
    later = following.predictions["building_events"].mean(0)
    for t in reversed(range(LENGTH)):
        later = np.where(played[0][t].fallen > 0, 1.0, gamma * later)
        np.testing.assert_allclose(a["building_label"][t], later, rtol=1e-5)

    segments, _ = play([3], 6)
    for game, segment in enumerate(segments):
        a = segment.arrays
        assert a["win_label"].tolist() == [float(game)] * 4
        assert a["rank_label"][:3].argmax(-1).tolist() == [[1, 0]] * 3
        assert set(np.unique(a["rank_label"])) == {0.0, 1.0}


def test_versions_are_stored_per_step():
    segments, _ = play([1000], 20, versions=lambda t: 3 + t // 6)
    assert segments[0].arrays["versions"].tolist() == [3] * 6 + [4] * 6 + [5] * 4
    assert (segments[0].oldest_version, segments[0].newest_version) == (3, 5)


def test_last_sample_is_padded_with_mask_0():
    segments, played = play([6], 6)
    a = segments[0].arrays
    assert (segments[0].samples, steps_of(segments[0]), segments[0].reward_count) == (2, 6, 6 * H)
    assert a["mask"][:, 0].tolist() == [1] * 6 + [0] * 2
    assert a["state/count"].shape[0] == 2
    np.testing.assert_array_equal(a["actions"][6:], np.stack([played[0][5].actions] * 2))
    assert not a["resets"][6:].any() and np.isfinite(a["advantages"]).all()
    assert {len(array) for name, array in a.items() if not name.startswith("state/")} == {8}


def ring_steps(rows=(0, 1, 2), **changes):
    """Return steps in three rows of a ring of eight."""
    rng = np.random.default_rng(3)
    arrays = {"x": np.arange(8.0), "actions": np.zeros((8, H, 6), np.int16), "behaviour_logp": np.zeros((8, H)),
              "behaviour_values": rng.normal(size=(8, H)), "versions": np.arange(8, dtype=np.int32)}
    given = {"arrays": arrays, "rows": np.array(rows), "states": {"h": np.zeros((5, H, 1))},
             "rewards": np.ones((len(rows), H)), "fallen": np.zeros((len(rows), N)), "begins": False}
    learning = {"end": END, "config": CONFIG, "gae_horizon_seconds": 60.0, "reward_std": 1.0,
                "running_return": np.zeros(H), "timestep_seconds": 4 / 30}
    return {**given, **learning, **changes}


END = GameOutcome(1.0, np.array([0, 1]))


def test_ring_rows_are_copied_in_order():
    steps = ring_steps(rows=(6, 7, 0))
    segment = cut_segment(**steps)
    steps["arrays"]["x"][:], steps["states"]["h"][:] = -1, -1
    assert segment.arrays["x"].tolist() == [6, 7, 0, 0] and not segment.arrays["state/h"].any()
    assert (segment.oldest_version, segment.newest_version) == (0, 7)


@pytest.mark.parametrize(("changes", "words"), [
    ({"rewards": np.ones((4, H))}, r"rows \(3,\), rewards \(4, 2\)"),
    ({"fallen": np.zeros((2, N))}, r"fallen \(2, 3\)"),
    ({"rows": np.zeros(0, int), "rewards": np.ones((0, H)), "fallen": np.zeros((0, N))}, "at least 1"),
])
def test_mismatched_lengths_are_rejected(changes, words):
    with pytest.raises(ValueError, match=words):
        cut_segment(**ring_steps(**changes))


def test_terminated_segment_differs_from_a_cut_one():
    predictions = {"win_probability": np.zeros(H), "net_worth_rank": np.full((H, 5), 0.2),
                   "building_events": np.zeros((H, N))}
    ended = cut_segment(**ring_steps())
    cut = cut_segment(**ring_steps(end=Bootstrap(np.full(H, 5.0), predictions)))
    gamma = discount(60.0)
    difference = cut.arrays["advantages"][:3] - ended.arrays["advantages"][:3]
    np.testing.assert_allclose(difference[:, 0], [5 * gamma * (gamma * 0.95) ** (2 - t) for t in range(3)], rtol=1e-5)


def test_unroll_reproduces_behaviour_log_probabilities():
    """A recurrent policy's unroll of segments and samples gives ratio 1."""
    policy = TinyPolicy()
    segments, _ = Rollout(policy, CONFIG, games=3, seed=0).play(70)
    samples = [s for segment in segments for s in split_segment(segment.arrays, segment.samples)]
    assert len(samples) > 30
    batch = {k: torch.from_numpy(np.stack([s[k] for s in samples], axis=0 if k.startswith("state/") else 1))
             for k in samples[0]}
    observation, state, learning = split_batch(batch)
    unrolled = policy.unroll(observation, learning["actions"], state, learning["resets"])
    counts = learning["mask"] > 0
    torch.testing.assert_close(unrolled.logp[counts], learning["behaviour_logp"][counts], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(unrolled.values[counts], learning["behaviour_values"][counts], rtol=1e-5, atol=1e-6)

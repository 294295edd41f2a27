import numpy as np
import pytest
import torch

from five.config import LearnerConfig
from five.learning.auxiliary import Outcome
from five.learning.gae import discount, gae
from five.learning.samples import SegmentBuilder, Step, split_batch, split_segment
from tests.five.standins import Rollout, TinyPolicy

H, N = 2, 3  # heroes, buildings
CONFIG = LearnerConfig(lstm_unroll_length=4, samples_per_segment=4)


def predictions(rng):
    return {"win_probability": rng.uniform(size=H), "net_worth_rank": rng.dirichlet(np.ones(5), H),
            "building_events": rng.uniform(size=(H, N))}


class CountingGame:
    """Shows the number of its step; games have different lengths."""

    def __init__(self, lengths):
        self.lengths, self.game, self.t = lengths, 0, 0

    def step(self):
        last = self.t + 1 == self.lengths[self.game % len(self.lengths)]
        seen, reset = self.t, self.t == 0
        self.t = 0 if last else self.t + 1
        self.game += last
        return seen, reset, last


class CountingRecurrence:
    """A "network" whose state is the number of steps since its reset."""

    def act(self, state, reset):
        return (0.0 if reset else state) + 1.0

    def unroll(self, state, resets):
        out = []
        for reset in resets:
            state = (0.0 if reset else state) + 1.0
            out.append(state)
        return out


def play(lengths, steps, seed=0, builder=None, versions=None):
    rng = np.random.default_rng(seed)
    game, net = CountingGame(lengths), CountingRecurrence()
    builder = builder or SegmentBuilder(CONFIG, 60.0)
    state, segments, record = 0.0, [], []
    for t in range(steps):
        seen, reset, last = game.step()
        before = 0.0 if reset else state
        state = net.act(state, reset)
        step = Step(
            {"count": np.array([seen], np.float16)}, {"count": np.full((H, 1), before, np.float32)},
            rng.integers(0, 9, (H, 6)).astype(np.int16), rng.normal(size=H), rng.normal(size=H), predictions(rng),
            versions(t) if versions else 7, reset, rng.normal(size=H), last,
            Outcome(float(t % 2), np.array([1, 0])) if last else None,
            (rng.uniform(size=N) < 0.1).astype(float))
        record.append(step)
        done = builder.add(step)
        if done:
            segments.append(done)
    return segments, record, builder


@pytest.mark.parametrize("lengths", [[1], [3], [4], [5, 9], [16], [17], [1, 40, 2], [1000]])
def test_state_crosses_every_boundary(lengths):
    """A counting game and a counting recurrence: what each sample's stored state and resets give is what was seen,
    across samples, segments and games (after TorchBeast's core-agent-state test)."""
    segments, record, _ = play(lengths, 200)
    assert len(segments) >= 11
    t = 0
    for segment in segments:
        for sample in split_segment(segment.arrays, segment.samples):
            counted = CountingRecurrence().unroll(float(sample["state/count"][0, 0]), sample["resets"])
            expected = [float(s.observation["count"][0]) + 1 for s in record[t : t + 4]]
            assert counted == expected
            assert sample["count"][:, 0].tolist() == [e - 1 for e in expected]
            t += 4


def test_the_states_of_later_samples_are_not_zero():
    segments, _, _ = play([1000], 40)
    assert [s.arrays["state/count"][:, 0, 0].tolist() for s in segments] == [[0, 4, 8, 12], [16, 20, 24, 28]]


def test_a_segment_is_whole_and_in_order():
    segments, record, _ = play([5, 9], 100)
    flat = [step for step in record]
    for i, segment in enumerate(segments):
        part = flat[16 * i : 16 * (i + 1)]
        a = segment.arrays
        np.testing.assert_array_equal(a["actions"], np.stack([s.actions for s in part]))
        np.testing.assert_array_equal(a["behaviour_logp"],
                                      np.stack([s.behaviour_logp for s in part]).astype(np.float32))
        np.testing.assert_array_equal(a["resets"], [s.reset for s in part])
        assert a["mask"].all()
        assert (segment.samples, segment.steps) == (4, 16)
        assert segment.games_ended == sum(s.terminated for s in part)


def test_a_cut_segment_bootstraps_from_the_following_step():
    segments, record, _ = play([1000], 17)
    rewards = np.stack([s.rewards for s in record[:16]])
    values = np.stack([s.behaviour_values for s in record]).astype(np.float32)
    assert np.abs(values[16]).min() > 0.05
    advantages, returns = gae(rewards, values, np.zeros(16, bool), discount(60.0), 0.95)
    np.testing.assert_allclose(segments[0].arrays["advantages"], advantages, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(segments[0].arrays["returns"], returns, rtol=1e-5, atol=1e-6)


def test_a_segment_that_ends_with_its_game_is_ready_at_once_and_bootstraps_nothing():
    segments, record, _ = play([16], 16)
    values = np.zeros((17, H))
    values[:16] = np.stack([s.behaviour_values for s in record]).astype(np.float32)
    terminated = np.arange(16) == 15
    expected, _ = gae(np.stack([s.rewards for s in record]), values, terminated, discount(60.0), 0.95)
    np.testing.assert_allclose(segments[0].arrays["advantages"], expected, rtol=1e-5, atol=1e-6)


def test_nothing_flows_back_from_the_next_game():
    segments, record, _ = play([10], 17)
    short, _ = gae(np.stack([s.rewards for s in record[:10]]),
                   np.stack([s.behaviour_values for s in record[:11]]).astype(np.float32),
                   np.arange(10) == 9, discount(60.0), 0.95)
    np.testing.assert_allclose(segments[0].arrays["advantages"][:10], short, rtol=1e-5, atol=1e-6)


def test_rewards_are_divided_by_the_deviation_and_sent_raw():
    builder = SegmentBuilder(CONFIG, 60.0, reward_std=4.0)
    segments, record, _ = play([16], 16, builder=builder)
    raw = np.stack([s.rewards for s in record])
    values = np.zeros((17, H))
    values[:16] = segments[0].arrays["behaviour_values"]
    expected, _ = gae(raw / 4.0, values, np.arange(16) == 15, discount(60.0), 0.95)
    np.testing.assert_allclose(segments[0].arrays["advantages"], expected, rtol=1e-5, atol=1e-6)
    assert segments[0].reward_sum == pytest.approx(raw.sum())
    assert segments[0].reward_square_sum == pytest.approx((raw**2).sum())
    assert segments[0].reward_count == raw.size


def test_the_return_scale_sums_discounted_rewards_of_each_game():
    builder = SegmentBuilder(CONFIG.model_copy(update={"reward_scale": "return"}), 1.0)
    segments, record, _ = play([10], 40, builder=builder)
    gamma, running, sums = discount(1.0), np.zeros(H), []
    for step in record:
        running = step.rewards if step.reset else gamma * running + step.rewards
        sums.append(running)
    for i, segment in enumerate(segments):
        part = np.stack(sums[16 * i : 16 * (i + 1)])
        assert segment.reward_sum == pytest.approx(part.sum())
        assert segment.reward_square_sum == pytest.approx((part**2).sum())


def test_each_game_of_a_segment_is_labelled_apart():
    segments, record, _ = play([10], 17)
    a = segments[0].arrays
    np.testing.assert_array_equal(a["win_label"][:10], record[9].outcome.won)
    np.testing.assert_allclose(a["win_label"][10:], record[16].predictions["win_probability"].mean(), rtol=1e-6)
    np.testing.assert_array_equal(a["rank_label"][:10].argmax(-1), np.tile([1, 0], (10, 1)))
    assert set(np.unique(a["rank_label"][:10])) == {0.0, 1.0}
    np.testing.assert_allclose(
        a["rank_label"][10:], np.broadcast_to(record[16].predictions["net_worth_rank"], (6, H, 5)), rtol=1e-6)
    # 16 is a step of the game that steps 10-15 belong to: it ends at 19
    assert not record[16].reset


def test_versions_are_kept_by_step():
    segments, _, _ = play([1000], 20, versions=lambda t: 3 + t // 6)
    assert segments[0].arrays["versions"].tolist() == [3] * 6 + [4] * 6 + [5] * 4
    assert (segments[0].oldest_version, segments[0].newest_version) == (3, 5)


def test_flush_pads_with_steps_that_do_not_count():
    segments, record, builder = play([6], 6)
    assert not segments
    segment = builder.flush()
    a = segment.arrays
    assert (segment.samples, segment.steps, builder.pending) == (2, 6, 0)
    assert a["mask"][:, 0].tolist() == [1] * 6 + [0] * 2
    assert a["state/count"].shape[0] == 2
    np.testing.assert_array_equal(a["actions"][6:], np.stack([record[5].actions] * 2))
    assert not a["resets"][6:].any()
    assert np.isfinite(a["advantages"]).all()
    assert builder.flush() is None


def test_a_lost_game_is_dropped_and_counted():
    _, _, builder = play([1000], 10)
    assert builder.abandon() == 10
    assert (builder.pending, builder.dropped_steps) == (0, 10)
    segments, _, _ = play([5, 9], 40, builder=builder)
    assert len(segments) == 2


def test_the_builder_does_not_keep_the_callers_arrays():
    builder = SegmentBuilder(CONFIG, 60.0)
    rng = np.random.default_rng(0)
    observation, state = {"x": np.zeros(2, np.float16)}, {"h": np.zeros((H, 1), np.float32)}
    done = None
    for t in range(17):
        observation["x"][:] = t
        state["h"][:] = t
        done = done or builder.add(Step(observation, state, np.zeros((H, 6), np.int16), np.zeros(H), np.zeros(H),
                                        predictions(rng), 0, t == 0, np.zeros(H)))
    assert done.arrays["x"][:, 0].tolist() == list(range(16))
    assert done.arrays["state/h"][:, 0, 0].tolist() == [0, 4, 8, 12]


def test_games_out_of_order_are_refused():
    rng = np.random.default_rng(0)

    def step(reset, terminated=False, outcome=None):
        return Step({"x": np.zeros(1)}, {"h": np.zeros(1)}, np.zeros((H, 6)), np.zeros(H), np.zeros(H),
                    predictions(rng), 0, reset, np.zeros(H), terminated, outcome)

    builder = SegmentBuilder(CONFIG, 60.0)
    with pytest.raises(ValueError, match="without its outcome"):
        builder.add(step(True, terminated=True))
    builder.add(step(True))
    with pytest.raises(ValueError, match="begins before"):
        builder.add(step(True))
    with pytest.raises(ValueError, match="still going on"):
        builder.flush()
    builder.add(step(False, True, Outcome(1.0, np.array([0, 1]))))
    with pytest.raises(ValueError, match="without a reset"):
        builder.add(step(False))


def test_a_segment_that_does_not_divide_is_refused_by_name():
    with pytest.raises(ValueError, match="'x'"):
        split_segment({"x": np.zeros((10, 2))}, 4)
    with pytest.raises(ValueError, match="'state/h'"):
        split_segment({"state/h": np.zeros((8, 2))}, 4)


def test_a_batch_splits_by_name():
    observation, state, learning = split_batch({"x": 1, "state/h": 2, "actions": 3, "mask": 4, "shared_ids": 5})
    assert (observation, state, learning) == ({"x": 1, "shared_ids": 5}, {"h": 2}, {"actions": 3, "mask": 4})


def test_what_was_acted_is_what_is_unrolled():
    """Through builder and samples, a recurrent policy's log-probabilities come out as they went in: ratio 1."""
    policy = TinyPolicy()
    segments, _ = Rollout(policy, CONFIG, games=3, seed=0).play(70)
    samples = [s for segment in segments for s in split_segment(segment.arrays, segment.samples)]
    assert len(samples) > 30
    batch = {k: torch.from_numpy(np.stack([s[k] for s in samples], axis=0 if k.startswith("state/") else 1))
             for k in samples[0]}
    observation, state, learning = split_batch(batch)
    unrolled = policy.unroll(observation, learning["actions"], state, learning["resets"])
    torch.testing.assert_close(unrolled.logp, learning["behaviour_logp"], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(unrolled.values, learning["behaviour_values"], rtol=1e-5, atol=1e-6)

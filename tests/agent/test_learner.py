import copy
import json

import numpy as np
import pytest
import torch

from five.agent.config import BufferConfig, LearnerConfig
from five.agent.learning.buffer import SampleBuffer
from five.agent.learning.learner import Learner
from five.agent.learning.pacing import Pacer
from five.agent.schedules import Hyperparameters
from tests.agent.plain_samples import add_sample, collate_arrays, split_segment
from tests.agent.standins import HYPER, Rollout, TinyPolicy

CONFIG = LearnerConfig(lstm_unroll_length=4, samples_per_segment=4, batch_samples=16, initial_hold_steps=0,
                       gradient_clip_warmup_steps=3)


def stack(samples):
    return {k: np.stack([s[k] for s in samples], axis=0 if k.startswith("state/") else 1) for k in samples[0]}


def batch_of(policy, games=8, steps=20, seed=0):
    segments, _ = Rollout(policy, CONFIG, games, seed).play(steps)
    return stack([s for segment in segments for s in split_segment(segment.arrays, segment.samples)])


def parameters(learner):
    return torch.cat([p.detach().flatten() for p in learner.policy.parameters()])


def test_ratio_is_1_until_the_first_step():
    learner = Learner(TinyPolicy(), CONFIG)
    batch = batch_of(learner.policy)
    first, second = learner.train_step(batch, HYPER), learner.train_step(batch, HYPER)
    assert first["ratio_mean"] == pytest.approx(1, abs=1e-5)
    assert first["ratio_max"] == pytest.approx(1, abs=1e-4)
    assert first["clip_fraction"] == 0
    assert abs(second["ratio_max"] - 1) > 1e-3


def test_stored_behaviour_log_probabilities_are_used():
    batch = batch_of(TinyPolicy())
    shifted = {**batch, "behaviour_logp": batch["behaviour_logp"] - np.log(1.1).astype(np.float32)}
    metrics = Learner(TinyPolicy(), CONFIG).train_step(shifted, HYPER)
    assert metrics["ratio_mean"] == pytest.approx(1.1, rel=1e-4)


def test_stored_advantages_and_returns_are_used():
    batch = batch_of(TinyPolicy())
    batch["behaviour_values"] = batch["behaviour_values"] + 100
    one = Learner(TinyPolicy(), CONFIG).train_step(batch, HYPER)
    batch["behaviour_values"] = batch["behaviour_values"] - 200
    assert one == Learner(TinyPolicy(), CONFIG).train_step(batch, HYPER)


def test_stored_lstm_state_is_used():
    batch = batch_of(TinyPolicy())
    zeroed = {**batch, "state/h": np.zeros_like(batch["state/h"]), "state/c": np.zeros_like(batch["state/c"])}
    assert np.abs(batch["state/h"]).max() > 0.01
    assert Learner(TinyPolicy(), CONFIG).train_step(zeroed, HYPER)["ratio_max"] > 1.0001


def test_learner_overfits_a_single_batch():
    """The value fits the returns, and the policy moves to the rewarded actions."""
    batch = batch_of(TinyPolicy(), games=1, steps=40)
    rng = np.random.default_rng(0)
    batch["x"] = rng.normal(size=(4, 16, 8)).astype(np.float16)
    batch["advantages"] = rng.choice([-1.0, 1.0], batch["advantages"].shape).astype(np.float32)
    batch["returns"] = rng.normal(size=batch["returns"].shape).astype(np.float32)
    batch["state/h"], batch["state/c"] = (np.zeros((16, 2, 64), np.float32) for _ in range(2))
    policy = TinyPolicy(features=8, hidden=64)
    with torch.no_grad():
        tensors = {k: torch.from_numpy(v) for k, v in batch.items()}
        unrolled = policy.unroll({"x": tensors["x"]}, tensors["actions"],
                                 {"h": tensors["state/h"], "c": tensors["state/c"]}, tensors["resets"])
    batch["behaviour_logp"] = unrolled.logp.numpy()
    learner = Learner(policy, CONFIG)
    for _ in range(400):
        metrics = learner.train_step(batch, Hyperparameters(5e-3, 0.0, 0.0, 180.0))
    assert metrics["explained_variance"] > 0.98
    # Every ratio is at the clip bound, on the side of its advantage's sign.
    assert metrics["loss_policy"] < -0.17


def test_learner_solves_a_memory_game():
    """Rollout, segments, buffer, pacing and learner raise correct answers from half to nearly all."""
    config = CONFIG.model_copy(update={"batch_samples": 64, "adam_epsilon": 1e-5, "initial_hold_steps": 4})
    buffers = BufferConfig(capacity_samples=256, minimum_samples=64, max_age_versions=4)
    policy = TinyPolicy(seed=1)
    learner, rollout = Learner(policy, config), Rollout(policy, config, games=32, seed=1, horizon=2.0)
    buffer, pacer = SampleBuffer(buffers, collate_arrays), Pacer(buffers, 64)
    before = None
    share = 0.0
    for version in range(200):
        segments, rewards = rollout.play(16, version)
        asked = rewards[rewards != 0]
        share = 0.9 * share + 0.1 * (asked > 0).mean() if before is not None else (asked > 0).mean()
        before = share if before is None else before
        for segment in segments:
            learner.add_rewards(segment.reward_count, segment.reward_sum, segment.reward_square_sum)
            for sample in split_segment(segment.arrays, segment.samples):
                add_sample(buffer, sample, sample["versions"], version)
            pacer.on_received(segment.samples)
        while pacer.may_step(len(buffer)):
            drawn = buffer.sample(64, version)
            assert drawn.staleness.max() <= 4
            pacer.on_consumed(64)
            learner.train_step(drawn.arrays, HYPER)
        if share > 0.97:
            break
    assert before < 0.65
    assert share > 0.97, f"{share:.3f} right after {learner.gradient_steps} steps"


def test_resumed_step_is_bit_identical():
    learner = Learner(TinyPolicy(), CONFIG)
    batches = [batch_of(learner.policy, seed=i) for i in range(8)]
    for batch in batches[:6]:  # past the clip's warm-up
        learner.add_rewards(10, 1.0, 5.0)
        learner.train_step(batch, HYPER)
    learner.add_rewards(10, 2.0, 7.0)  # pending when the checkpoint is made
    state, extra = learner.state_dict(), json.loads(json.dumps(learner.extra()))
    resumed = Learner(TinyPolicy(seed=99), CONFIG)
    resumed.load_state_dict(state, extra)
    for batch in batches[6:]:
        assert learner.train_step(batch, HYPER) == resumed.train_step(batch, HYPER)
        assert torch.equal(parameters(learner), parameters(resumed))
    ours, theirs = learner.state_dict(), resumed.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("lost", ["adam/m/", "adam/v/", "clip/v/"])
def test_next_step_depends_on_every_stored_moment(lost):
    learner = Learner(TinyPolicy(), CONFIG)
    batches = [batch_of(learner.policy, seed=i) for i in range(7)]
    for batch in batches[:6]:
        learner.train_step(batch, HYPER)
    state = learner.state_dict()
    assert any(name.startswith(lost) for name in state)
    state = {name: torch.full_like(t, 1e-9) if name.startswith(lost) else t for name, t in state.items()}
    resumed = Learner(TinyPolicy(), CONFIG)
    resumed.load_state_dict(state, learner.extra())
    learner.train_step(batches[6], HYPER)
    resumed.train_step(batches[6], HYPER)
    assert not torch.equal(parameters(learner), parameters(resumed))


def test_checkpoint_before_the_first_step():
    learner = Learner(TinyPolicy(), CONFIG)
    resumed = Learner(TinyPolicy(seed=5), CONFIG)
    resumed.load_state_dict(learner.state_dict(), learner.extra())
    batch = batch_of(learner.policy)
    assert learner.train_step(batch, HYPER) == resumed.train_step(batch, HYPER)


def test_checkpoint_is_a_copy():
    learner = Learner(TinyPolicy(), CONFIG)
    batch = batch_of(learner.policy)
    learner.train_step(batch, HYPER)
    state = learner.state_dict()
    kept = {name: t.clone() for name, t in state.items()}
    learner.train_step(batch, HYPER)
    assert all(torch.equal(state[name], kept[name]) for name in state)


def test_checkpoint_of_another_model_is_rejected():
    learner, other = Learner(TinyPolicy(), CONFIG), Learner(TinyPolicy(hidden=8), CONFIG)
    before = parameters(learner).clone()
    with pytest.raises(ValueError, match="cell.weight_ih"):
        learner.load_state_dict(other.state_dict(), other.extra())
    with pytest.raises(ValueError, match=r"missing .*clip/v/value.bias"):
        learner.load_state_dict({k: v for k, v in learner.state_dict().items() if k != "clip/v/value.bias"},
                                learner.extra())
    assert torch.equal(parameters(learner), before)


@pytest.mark.parametrize(("spoil", "reason"), [
    ("returns", "loss is not finite: value"), ("advantages", "loss is not finite: policy"), ("x", "not finite")])
def test_step_with_nan_is_skipped_and_logged(spoil, reason, caplog):
    learner = Learner(TinyPolicy(), CONFIG)
    batch = batch_of(learner.policy)
    learner.train_step(batch, HYPER)
    assert learner.skip_reason == ""
    before = learner.state_dict()
    learner.add_rewards(4, 1.0, 2.0)
    bad = {**batch, spoil: batch[spoil].copy()}
    bad[spoil][0, 0] = np.nan
    metrics = learner.train_step(bad, HYPER)
    assert (metrics["skipped"], learner.skipped_steps, learner.gradient_steps) == (1.0, 1, 2)
    assert "gradient step 2 skipped" in caplog.text
    assert reason in learner.skip_reason
    after = learner.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert learner.extra()["pending_rewards"] == [4, 1.0, 2.0]
    metrics = learner.train_step(batch, HYPER)
    assert metrics["skipped"] == 0
    assert np.isfinite(list(metrics.values())).all()


def test_skipped_steps_of_a_checkpoint_have_no_reason():
    learner, resumed = Learner(TinyPolicy(), CONFIG), Learner(TinyPolicy(), CONFIG)
    batch = batch_of(learner.policy)
    bad = {**batch, "returns": np.full_like(batch["returns"], np.nan)}
    learner.train_step(bad, HYPER)
    resumed.load_state_dict(learner.state_dict(), learner.extra())
    assert (resumed.skipped_steps, resumed.skip_reason) == (1, "")
    resumed.train_step(batch, HYPER)
    assert (resumed.skipped_steps, resumed.skip_reason) == (1, "")
    resumed.train_step(bad, HYPER)
    assert (resumed.skipped_steps, resumed.skip_reason) == (2, "the loss is not finite: value")


def test_held_learning_rate_moves_no_parameter():
    learner = Learner(TinyPolicy(), CONFIG)
    batch = batch_of(learner.policy)
    before = parameters(learner).clone()
    learner.hold_steps = 2
    for _ in range(2):
        metrics = learner.train_step(batch, HYPER)
        assert (metrics["held"], metrics["learning_rate"]) == (1.0, 0.0)
    assert torch.equal(parameters(learner), before)
    state = learner.state_dict()
    assert state["adam/v/value.weight"].any()
    assert state["clip/v/value.weight"].any()
    assert state["policy/statistics.count"].any()
    assert learner.train_step(batch, HYPER)["held"] == 0
    assert not torch.equal(parameters(learner), before)


def test_new_run_holds_the_learning_rate():
    learner = Learner(TinyPolicy(), CONFIG.model_copy(update={"initial_hold_steps": 3}))
    batch = batch_of(learner.policy)
    assert [learner.train_step(batch, HYPER)["held"] for _ in range(5)] == [1, 1, 1, 0, 0]


def test_reward_sums_update_the_running_deviation():
    learner = Learner(TinyPolicy(), CONFIG)
    rewards = np.random.default_rng(0).normal(0.5, 3.0, 1000)
    for part in np.split(rewards, 4):
        learner.add_rewards(part.size, part.sum(), (part**2).sum())
    metrics = learner.train_step(batch_of(learner.policy), HYPER)
    assert metrics["reward_std"] == pytest.approx(rewards.std(), rel=1e-3)
    with pytest.raises(ValueError, match="finite"):
        learner.add_rewards(3, float("nan"), 1.0)


class Lockstep:
    """`reduce` of several learners in one process: it records their tensors first, then replays the mean."""

    def __init__(self):
        self.calls, self.means, self.at = [], None, 0

    def record(self, tensors):
        self.calls.append([t.clone() for t in tensors])

    def replay(self, tensors):
        for tensor, mean in zip(tensors, self.means[self.at], strict=True):
            tensor.copy_(mean)
        self.at += 1


@pytest.mark.parametrize("scope", ["rank", "all"])
def test_two_optimizers_equal_one_with_both_batches(scope):
    """With equal masks the mean of two half-batch gradients is that of the whole batch."""
    config = CONFIG.model_copy(update={
        "advantage_scope": scope, "normalise_advantages": scope == "all", "gradient_clip": 0.0})
    whole = batch_of(TinyPolicy(), games=8)
    size = whole["actions"].shape[1] // 2
    halves = [{k: (v[part] if k.startswith("state/") else v[:, part]) for k, v in whole.items()}
              for part in (slice(0, size), slice(size, 2 * size))]
    recorded = []
    for half in halves:
        lockstep = Lockstep()
        Learner(TinyPolicy(), config, all_reduce=lockstep.record).train_step(half, HYPER)
        recorded.append(lockstep.calls)
    if scope == "all":  # the first pass used each half's own advantages
        moments = [(a + b) / 2 for a, b in zip(recorded[0][0], recorded[1][0], strict=True)]
        recorded = []
        for half in halves:
            calls = []

            def reduce(tensors, calls=calls):
                if not calls:
                    tensors[0].copy_(moments[0])
                calls.append([t.clone() for t in tensors])

            Learner(TinyPolicy(), config, all_reduce=reduce).train_step(half, HYPER)
            recorded.append(calls)
    means = [[(a + b) / 2 for a, b in zip(one, two, strict=True)] for one, two in zip(*recorded, strict=True)]
    ranks = []
    for half in halves:
        lockstep = Lockstep()
        lockstep.means = means
        ranks.append(Learner(TinyPolicy(), config, all_reduce=lockstep.replay))
        ranks[-1].train_step(half, HYPER)
    alone = Learner(TinyPolicy(), config)
    alone.train_step(whole, HYPER)
    assert torch.equal(parameters(ranks[0]), parameters(ranks[1]))
    torch.testing.assert_close(ranks[0]._gradient, alone._gradient, rtol=1e-4, atol=1e-6)
    for name in ("mean", "squares"):
        one, both = (getattr(x.policy.statistics, name) for x in (ranks[0], alone))
        torch.testing.assert_close(one * (2 if name == "squares" else 1), both)


def test_nan_gradient_is_skipped_by_all_optimizers():
    def poisoned(tensors):
        tensors[0][0] = torch.nan  # the result of an average with another rank's NaN

    learner = Learner(TinyPolicy(), CONFIG, all_reduce=poisoned)
    metrics = learner.train_step(batch_of(learner.policy), HYPER)
    assert metrics["skipped"] == 1
    assert "gradient is not finite: place" in learner.skip_reason


@pytest.mark.parametrize("fused", [True, False])
def test_adam_matches_pytorch(fused):
    config = CONFIG.model_copy(update={"gradient_clip": 0.0, "fused_adam": fused})
    learner = Learner(TinyPolicy(), config)
    batch = batch_of(learner.policy)
    reference = copy.deepcopy(learner.policy)
    adam = torch.optim.Adam(reference.parameters(), lr=HYPER.learning_rate, betas=(0.9, 0.999), eps=1e-8)
    for _ in range(3):
        learner.train_step(batch, HYPER)
        for name, p in reference.named_parameters():
            p.grad = learner._flat.view(learner._gradient, name).clone()
        adam.step()
    ours = parameters(learner)
    theirs = torch.cat([p.detach().flatten() for p in reference.parameters()])
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)


def test_invalid_batch_is_rejected_by_name():
    learner = Learner(TinyPolicy(), CONFIG)
    batch = batch_of(learner.policy)
    with pytest.raises(ValueError, match="lacks mask"):
        learner.train_step({k: v for k, v in batch.items() if k != "mask"}, HYPER)
    with pytest.raises(ValueError, match="returns has shape"):
        learner.train_step({**batch, "returns": batch["returns"][..., :1]}, HYPER)
    with pytest.raises(ValueError, match="x has shape"):
        learner.train_step({**batch, "x": batch["x"][:2]}, HYPER)


@pytest.mark.gpu
def test_gpu_step_matches_the_cpu():
    cpu, gpu = Learner(TinyPolicy(), CONFIG), Learner(TinyPolicy(), CONFIG, "cuda")
    batch = batch_of(cpu.policy)
    pinned = {}
    for name, array in batch.items():
        pinned[name] = gpu.allocate(array.shape, array.dtype)
        pinned[name][:] = array
    for _ in range(5):
        one, two = cpu.train_step(batch, HYPER), gpu.train_step(pinned, HYPER)
    assert two["loss"] == pytest.approx(one["loss"], abs=1e-3)
    torch.testing.assert_close(parameters(gpu).cpu(), parameters(cpu), rtol=1e-2, atol=1e-3)
    resumed = Learner(TinyPolicy(seed=3), CONFIG, "cuda")
    resumed.load_state_dict(gpu.state_dict(), gpu.extra())
    resumed.train_step(pinned, HYPER)
    gpu.train_step(pinned, HYPER)
    torch.testing.assert_close(parameters(gpu), parameters(resumed), rtol=0, atol=1e-6)

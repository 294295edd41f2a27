"""The real policy from acting over segments and buffer to the learner."""

import json

import numpy as np
import pytest
import torch

from five.agent.config import BufferConfig, LearnerConfig
from five.agent.learning.buffer import SampleBuffer
from five.agent.learning.labels import GameOutcome
from five.agent.learning.learner import Learner
from five.agent.learning.ppo import ppo_loss
from five.agent.learning.samples import split_batch
from five.agent.model.policy import Policy
from five.agent.schedules import Hyperparameters
from tests.agent.model_cases import SMALL, layout, random_arrays
from tests.agent.plain_samples import add_sample, collate_arrays, split_segment
from tests.agent.standins import Recorder

CONFIG = LearnerConfig(lstm_unroll_length=8, samples_per_segment=3, batch_samples=6, initial_hold_steps=0,
                       gradient_clip_warmup_steps=2)
HYPER = Hyperparameters(1e-3, 0.01, 0.3, 180.0)


def play(policy, of, versions=lambda t: 0, teams=3, steps=50, seed=0, on_step=None, game=11):
    """Return samples of random games in which the policy acted, all teams in one batch."""
    rng, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    arrays = random_arrays(of, steps, teams, seed=seed)
    recorders = [Recorder(CONFIG) for _ in range(teams)]
    state, samples = policy.initial_state(teams), []
    for t in range(steps):
        if on_step:
            on_step(t)
        if t % game == 0:
            state = policy.initial_state(teams)
        acted = policy.act({k: torch.from_numpy(v[t]) for k, v in arrays.items()}, state, generator=generator)
        for i in range(teams):
            ended = GameOutcome(float(rng.integers(2)), np.arange(of.heroes)) if t % game == game - 1 else None
            for done in recorders[i].add(
                    {k: v[t, i] for k, v in arrays.items()}, {k: v[i].numpy() for k, v in state.items()},
                    acted.actions[i].numpy(), acted.logp[i].numpy(), acted.values[i].numpy(),
                    {k: v[i].numpy() for k, v in acted.aux.items()}, versions(t), rng.normal(size=of.heroes), ended):
                samples += split_segment(done.arrays, done.samples)
        state = acted.state
    return samples


def batch(samples, version=0):
    buffer = SampleBuffer(BufferConfig(capacity_samples=64, minimum_samples=1), collate_arrays)
    for sample in samples:
        assert add_sample(buffer, sample, sample["versions"], version)
    return buffer.sample(len(samples), version)


@pytest.mark.parametrize("heroes", [1, 5])
def test_ratio_is_1_for_the_current_version(heroes):
    of = layout(heroes)
    torch.manual_seed(0)
    learner = Learner(Policy(of, SMALL), CONFIG)
    samples = play(learner.policy, of)
    assert len(samples) == 3 * 4 * 2
    drawn = batch(samples)
    metrics = learner.train_step(drawn.arrays, HYPER)
    assert drawn.staleness.max() == 0
    assert metrics["ratio_mean"] == pytest.approx(1, abs=1e-5)
    assert metrics["ratio_max"] == pytest.approx(1, abs=1e-4)
    assert abs(learner.train_step(drawn.arrays, HYPER)["ratio_max"] - 1) > 1e-3


def test_lstm_state_survives_a_version_change():
    """Parameters change within a sample: the LSTM state continues, and each step stores the version that acted."""
    of = layout(1)
    torch.manual_seed(0)
    policy = Policy(of, SMALL)
    first = {name: t.clone() for name, t in policy.state_dict().items()}

    def swap(t):
        if t == 12:
            with torch.no_grad():
                for p in policy.parameters():
                    p.mul_(1.3)

    samples = play(policy, of, versions=lambda t: 3 + (t >= 12), teams=1, steps=25, on_step=swap, game=100)
    drawn = batch(samples, version=4)
    order = np.argsort([s["versions"].sum() for s in samples], kind="stable")
    assert [samples[i]["versions"].tolist() for i in order] == [[3] * 8, [3] * 4 + [4] * 4, [4] * 8]
    assert sorted(drawn.staleness.max(0).tolist()) == [0, 1, 1]
    assert all(s["state/h"].any() for s in samples[1:])
    policy.load_state_dict(first)
    for sample in samples:
        with torch.no_grad():
            unrolled = policy.unroll(
                {k: torch.from_numpy(sample[k])[:, None] for k in of.array_specs()},
                torch.from_numpy(sample["actions"])[:, None],
                {k[6:]: torch.from_numpy(v)[None] for k, v in sample.items() if k.startswith("state/")},
                torch.from_numpy(sample["resets"])[:, None])
        same = np.isclose(unrolled.logp[:, 0].numpy(), sample["behaviour_logp"], atol=1e-5).all(-1)
        assert same[sample["versions"] == 3].all()
        if (sample["versions"] == 4).any():
            assert not same[sample["versions"] == 4].all()


def test_step_updates_parameters_and_statistics():
    of = layout(1)
    learner = Learner(Policy(of, SMALL), CONFIG)
    drawn = batch(play(learner.policy, of))
    before = {name: t.clone() for name, t in learner.policy.state_dict().items()}
    learner.add_rewards(1e9, 0.0, 4e9)
    metrics = learner.train_step(drawn.arrays, HYPER)
    changed = {name for name, t in learner.policy.state_dict().items() if not torch.equal(before[name], t)}
    assert {"normaliser.count", "normaliser.mean", "rewards.squares", "value.weight"} <= changed
    assert metrics["reward_std"] == pytest.approx(2.0, rel=1e-3)
    assert metrics["skipped"] == 0
    assert np.isfinite(list(metrics.values())).all()


def test_resumed_step_is_bit_identical():
    of = layout(5)
    torch.manual_seed(0)
    learner = Learner(Policy(of, SMALL), CONFIG)
    drawn = batch(play(learner.policy, of, teams=1, steps=30))
    for _ in range(4):
        learner.train_step(drawn.arrays, HYPER)
    resumed = Learner(Policy(of, SMALL), CONFIG)
    resumed.load_state_dict(learner.state_dict(), json.loads(json.dumps(learner.extra())))
    for _ in range(2):
        assert learner.train_step(drawn.arrays, HYPER) == resumed.train_step(drawn.arrays, HYPER)
    ours, theirs = learner.state_dict(), resumed.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("scale", [1.0, 1e-8])
def test_bfloat16_keeps_the_gradient(scale):
    """The loss in bfloat16 and float32, as it is and with the weight of a paper-sized batch.

    No gradient underflows, and each parameter moves in nearly the same direction.
    """
    of = layout(1)
    torch.manual_seed(0)
    exact = Policy(of, SMALL)
    reduced = Policy(of, SMALL.model_copy(update={"precision": "bfloat16"}))
    reduced.load_state_dict(exact.state_dict())
    samples = play(exact, of, teams=6)
    arrays = {name: torch.from_numpy(np.array(array)) for name, array in batch(samples).arrays.items()}
    observation, state, learning = split_batch(arrays)
    found = []
    for policy in (exact, reduced):
        unrolled = policy.unroll(observation, learning["actions"], state, learning["resets"])
        (ppo_loss(unrolled, learning, CONFIG, 0.01).total * scale).backward()
        found.append({name: p.grad / scale for name, p in policy.named_parameters() if p.grad is not None})
    exactly, nearly = found
    assert exactly.keys() == nearly.keys()
    whole = [torch.cat([g.flatten() for g in gradients.values()]) for gradients in found]
    assert torch.nn.functional.cosine_similarity(*whole, dim=0) > 0.99
    for name, gradient in exactly.items():
        assert (nearly[name] != 0).any() == (gradient != 0).any(), name

import pytest
import torch

from five.agent.config import EntropyWeightsConfig, LearnerConfig
from five.agent.learning.ppo import normalise_advantages, ppo_loss
from tests.agent.standins import BUILDINGS, Unrolled

T, B, H = 4, 3, 2
PLAIN = LearnerConfig(normalise_advantages=False)


def case(log_ratio=0.0, advantages=1.0, seed=0):
    torch.manual_seed(seed)
    behaviour = -torch.rand(T, B, H)
    values = torch.randn(T, B, H)
    batch = {
        "behaviour_logp": behaviour, "behaviour_values": torch.zeros(T, B, H),
        "advantages": torch.full((T, B, H), float(advantages)), "returns": values.clone(),
        "mask": torch.ones(T, B, H), "win_label": torch.rand(T, B), "rank_label": torch.full((T, B, H, 5), 0.2),
        "building_label": torch.zeros(T, B, BUILDINGS), "outcome_mask": torch.zeros(T, B)}
    entropy = torch.rand(T, B, H).requires_grad_()
    unrolled = Unrolled((behaviour + log_ratio).requires_grad_(), entropy, values.requires_grad_(), {},
                        {"action": entropy}, torch.zeros(3, 0))
    return unrolled, batch


def policy_gradient(log_ratio, advantage):
    unrolled, batch = case(log_ratio, advantage)
    loss = ppo_loss(unrolled, batch, PLAIN, 0.0)
    loss.terms["policy"].backward()
    return loss, unrolled.logp.grad * T * B * H


def test_ratio_is_1_for_equal_log_probabilities():
    loss, gradient = policy_gradient(0.0, 2.0)
    assert loss.metrics["ratio_mean"] == pytest.approx(1.0, abs=1e-6)
    assert loss.metrics["ratio_max"] == 1.0
    assert loss.metrics["approx_kl"] == 0
    assert loss.metrics["clip_fraction"] == 0
    torch.testing.assert_close(gradient, torch.full((T, B, H), -2.0))  # the plain policy gradient


@pytest.mark.parametrize(("ratio", "advantage", "flows"), [
    (1.19, 1.0, True), (1.21, 1.0, False), (0.5, 1.0, True),  # beyond the clip there is no gradient
    (0.81, -1.0, True), (0.79, -1.0, False), (1.5, -1.0, True)])
def test_ratio_clip_blocks_the_gradient(ratio, advantage, flows):
    loss, gradient = policy_gradient(torch.tensor(ratio).log(), advantage)
    expected = -ratio * advantage if flows else 0.0
    torch.testing.assert_close(gradient, torch.full((T, B, H), expected), rtol=1e-4, atol=1e-6)
    clipped = min(max(ratio, 0.8), 1.2)
    assert loss.terms["policy"].item() == pytest.approx(-min(ratio * advantage, clipped * advantage), rel=1e-4)


def test_extreme_ratio_stays_finite():
    loss, gradient = policy_gradient(500.0, -1.0)
    assert loss.total.isfinite()
    assert gradient.isfinite().all()


def test_value_loss_is_half_the_squared_error():
    unrolled, batch = case(advantages=0.0)
    batch["returns"] = unrolled.values.detach() + 3.0
    loss = ppo_loss(unrolled, batch, PLAIN, 0.0)
    assert loss.terms["value"].item() == pytest.approx(4.5, rel=1e-5)
    assert loss.metrics["value_error"].item() == pytest.approx(3.0, rel=1e-5)
    assert loss.metrics["explained_variance"].item() == pytest.approx(1.0, abs=1e-5)  # a constant error does not count
    half = ppo_loss(unrolled, batch, PLAIN.model_copy(update={"value_loss_weight": 0.5}), 0.0)
    assert half.terms["value"].item() == pytest.approx(2.25, rel=1e-5)


def test_entropy_is_a_bonus():
    unrolled, batch = case(advantages=0.0)
    loss = ppo_loss(unrolled, batch, PLAIN, 0.01)
    loss.terms["entropy"].backward()
    assert loss.terms["entropy"].item() == pytest.approx(-0.01 * unrolled.entropy.mean().item(), rel=1e-5)
    assert (unrolled.entropy.grad < 0).all()


@pytest.mark.parametrize(("weights", "bonus"), [
    ({}, 0.5 + 0.25 + 2.0), ({"delay": 0.0}, 0.5 + 2.0), ({"delay": 0.5, "offset": 2.0}, 0.5 + 0.125 + 4.0),
    ({"action": 0.0, "delay": 0.0, "offset": 0.0, "unit": 0.0}, 0.0)])
def test_heads_are_weighted_in_the_entropy_bonus(weights, bonus):
    unrolled, batch = case(advantages=0.0)
    unrolled.entropies = {"action": torch.full((T, B, H), 0.5).requires_grad_(),
                          "delay": torch.full((T, B, H), 0.25).requires_grad_(),
                          "offset": torch.full((T, B, H), 2.0).requires_grad_()}
    config = PLAIN.model_copy(update={"entropy_weights": EntropyWeightsConfig(**weights)})
    loss = ppo_loss(unrolled, batch, config, 0.01)
    assert loss.terms["entropy"].item() == pytest.approx(-0.01 * bonus, rel=1e-5)
    loss.total.backward()
    gradient = unrolled.entropies["delay"].grad
    assert (gradient is not None and bool((gradient != 0).all())) == (weights.get("delay", 1.0) > 0)


def test_masked_steps_do_not_count():
    for config in (PLAIN, LearnerConfig()):
        results = []
        for garbage in (0.0, 1e3):
            unrolled, batch = case(0.1, 1.0)
            batch["advantages"] = torch.arange(T * B * H).view(T, B, H).float()
            batch["mask"][3] = 0
            for name in ("advantages", "returns", "behaviour_logp"):
                batch[name][3] += garbage
            loss = ppo_loss(unrolled, batch, config, 0.01)
            loss.total.backward()
            results.append((loss.total.detach(), unrolled.logp.grad))
            assert not unrolled.logp.grad[3].any()
            assert loss.metrics["masked_fraction"] == 0.25
        torch.testing.assert_close(results[0], results[1])


def test_fully_masked_batch_has_zero_loss():
    unrolled, batch = case(0.1)
    batch["mask"][:] = 0
    loss = ppo_loss(unrolled, batch, LearnerConfig(), 0.01)
    loss.total.backward()
    assert loss.total == 0
    assert unrolled.logp.grad.isfinite().all()


def test_advantages_are_normalised_over_the_mask():
    torch.manual_seed(0)
    advantages, mask = torch.randn(T, B, H) * 7 + 3, (torch.rand(T, B, H) < 0.6).float()
    normalised = normalise_advantages(advantages, mask)[mask > 0]
    assert normalised.mean().item() == pytest.approx(0, abs=1e-5)
    assert normalised.std(correction=0).item() == pytest.approx(1, rel=1e-5)


def test_advantages_are_normalised_over_all_optimizers():
    torch.manual_seed(0)
    parts, mask = [torch.randn(T, B, H), torch.randn(T, B, H) * 5 + 2], torch.ones(T, B, H)
    moments = []
    for part in parts:
        normalise_advantages(part, mask, lambda tensors: moments.append(tensors[0].clone()))
    mean = (moments[0] + moments[1]) / 2

    def reduce(tensors):
        tensors[0].copy_(mean)

    whole = normalise_advantages(torch.cat(parts), torch.cat([mask, mask]))
    torch.testing.assert_close(torch.cat([normalise_advantages(p, mask, reduce) for p in parts]), whole)
    assert not torch.allclose(normalise_advantages(parts[1], mask), whole[T:])


def test_equal_advantages_stay_finite():
    assert not normalise_advantages(torch.full((T, B, H), 3.0), torch.ones(T, B, H)).any()


def test_normalisation_can_be_disabled():
    unrolled, batch = case(0.0, 5.0)
    assert ppo_loss(unrolled, batch, PLAIN, 0.0).terms["policy"].item() == pytest.approx(-5)
    assert ppo_loss(unrolled, batch, LearnerConfig(), 0.0).terms["policy"].item() == pytest.approx(0, abs=1e-5)


def test_auxiliary_losses_are_weighted():
    unrolled, batch = case()
    unrolled.aux = {"win_probability": torch.zeros(T, B, H)}
    config = PLAIN.model_copy(update={"win_loss_weight": 0.5})
    assert ppo_loss(unrolled, batch, config, 0.0).terms["win_probability"].item() == pytest.approx(0.5 * 0.693147)

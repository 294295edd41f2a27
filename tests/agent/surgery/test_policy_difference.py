"""Difference of two policies: changes of logits and values, and KL, over the heroes that act."""

import pytest
import torch
from torch import Tensor

from five.agent.surgery.check import PolicyDifference, compare_policies
from tests.agent.surgery.agents import agent, load, recorded, trained

SPEC = agent(1)
Scores = dict[str, Tensor]


@pytest.fixture(scope="module")
def scores() -> Scores:
    """Scores of a policy; its second step has no available action."""
    play = recorded(SPEC, steps=3, teams=2)
    play.observation["available"][1] = 0
    return load(SPEC, trained(SPEC)).scores(
        {n: torch.from_numpy(a) for n, a in play.observation.items()}, torch.from_numpy(play.actions),
        {n: torch.from_numpy(a) for n, a in play.state.items()}, torch.from_numpy(play.resets))


@pytest.fixture
def one(scores: Scores) -> Scores:
    return copy_of(scores)


def copy_of(scores: Scores) -> Scores:
    return {name: tensor.clone() for name, tensor in scores.items()}


def difference(one: Scores, two: Scores) -> PolicyDifference:
    return compare_policies(one, two, SPEC, SPEC)


def test_equal_policies_do_not_differ(one: Scores) -> None:
    found = difference(one, copy_of(one)).model_dump()
    assert found.pop("largest") > 1 and set(found.values()) == {0.0}


def test_values_of_acting_heroes_are_compared(one: Scores) -> None:
    two = copy_of(one)
    two["values"][0, 0, 0] -= 0.5
    two["values"][2, 1, 0] += 0.25
    two["values"][1] += 100
    found = difference(one, two)
    acting = one["values"][[0, 2]]
    assert found.max_value_change == pytest.approx(0.5, rel=1e-5)
    assert found.mean_value_change == pytest.approx(0.75 / 4 / float(acting.std(unbiased=False)), rel=1e-5)
    assert found.max_logit_change == found.mean_kl == 0


def test_equal_values_have_a_least_deviation(one: Scores) -> None:
    one["values"][:] = 3.0
    two = copy_of(one)
    two["values"] += 0.001
    assert difference(one, two).mean_value_change == pytest.approx(1.0, rel=1e-2)


@pytest.mark.parametrize(("name", "change"), [("primary", 0.5), ("unit", -0.75), ("small", 2.0)])
def test_largest_change_of_a_logit(one: Scores, name: str, change: float) -> None:
    two = copy_of(one)
    at = tuple(two[name].isfinite().nonzero()[-1])
    two[name][at] += change
    found = difference(one, two)
    assert found.max_logit_change == pytest.approx(abs(change), rel=1e-5) and found.max_value_change == 0
    assert (found.mean_kl > 0) == (name == "primary")


@pytest.mark.parametrize("lost", ["one", "two"])
def test_choice_of_only_one_policy_differs_without_limit(one: Scores, lost: str) -> None:
    two = copy_of(one)
    changed = one if lost == "one" else two
    changed["unit"][tuple(two["unit"].isfinite().nonzero()[0])] = -torch.inf
    assert difference(one, two).max_logit_change == float("inf")


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("broken", ["one", "two"])
def test_value_that_is_not_finite_differs_without_limit(one: Scores, broken: str, value: float) -> None:
    two = copy_of(one)
    (one if broken == "one" else two)["values"][0, 0, 0] = value
    found = difference(one, two)
    assert found.max_value_change == float("inf") and found.largest < 1e6


def test_kl_is_the_mean_over_acting_heroes(one: Scores) -> None:
    two = copy_of(one)
    torch.manual_seed(0)
    two["primary"] += torch.randn_like(two["primary"])
    acting = [(t, b) for t in (0, 2) for b in (0, 1)]
    kl = []
    for t, b in acting:
        p, q = (x["primary"][t, b, 0].double() for x in (one, two))
        p, q = p[p.isfinite()].softmax(0), q[q.isfinite()].softmax(0)
        kl.append(float((p * (p / q).log()).sum()))
    assert len(kl) == 4 and difference(one, two).mean_kl == pytest.approx(sum(kl) / 4, rel=1e-6)


def test_a_shift_of_all_logits_is_no_difference(one: Scores) -> None:
    found = []
    for shift in range(1, 40):
        two = copy_of(one)
        two["primary"] += shift / 7
        found.append(difference(one, two).mean_kl)
    assert min(found) >= 0 and max(found) < 1e-6


def test_without_acting_heroes_only_targets_differ(one: Scores) -> None:
    one["primary"][:] = -torch.inf
    two = copy_of(one)
    two["values"] += 1
    two["unit"] += 0.5
    found = difference(one, two)
    assert (found.max_value_change, found.mean_value_change, found.mean_kl) == (0, 0, 0)
    assert found.max_logit_change == pytest.approx(0.5, rel=1e-4)


@pytest.mark.parametrize(("name", "scale"), [("values", 1000.0), ("small", 1000.0)])
def test_largest_counts_logits_and_values(one: Scores, name: str, scale: float) -> None:
    one[name] *= scale
    finite = one[name][[0, 2]][one[name][[0, 2]].isfinite()]
    assert difference(one, one).largest == pytest.approx(float(finite.abs().max()))


def test_values_of_idle_heroes_are_not_the_largest(one: Scores) -> None:
    one["values"][1] = 1e6
    assert difference(one, one).largest < 1e5


def test_auxiliary_predictions_are_compared(one: Scores) -> None:
    for name in [name for name in one if name.startswith("aux/")]:
        two = copy_of(one)
        two[name][..., -1] += 0.3
        found = difference(one, two)
        assert found.max_auxiliary_change == pytest.approx(0.3, rel=1e-4), name
        assert found.max_logit_change == found.max_value_change == 0


def test_targets_and_buildings_of_both_layouts_are_compared(one: Scores) -> None:
    """The policy after the plan has one creep slot and one building less on each side."""
    after = agent(1, {"allied_creeps": 4, "buildings": 3})
    of = [f"{group.name}:{i}" for group in SPEC.layout.groups.values() for i in range(group.count)]
    kept = [f"{group.name}:{i}" for group in after.layout.groups.values() for i in range(group.count)]
    two = copy_of(one)
    two["unit"] = one["unit"][..., [of.index(label) for label in kept]]
    two["aux/building_events"] = one["aux/building_events"][..., :-1]
    assert after.layout.units == len(kept) < len(of)
    found = compare_policies(one, two, SPEC, after)
    assert found.max_logit_change == found.max_auxiliary_change == 0
    back = compare_policies(two, one, after, SPEC)
    assert back.max_logit_change == back.max_auxiliary_change == 0
    two["unit"] = two["unit"].roll(1, -1)
    assert compare_policies(one, two, SPEC, after).max_logit_change > 0

"""Effects of factors on made-up runs."""

import math

import pytest

from five.ablation.config import AblationConfig
from five.ablation.effects import effects
from five.ablation.results import EvaluatedVersion, TrialRun
from five.ablation.training_records import measure_training

FACTORS = {name: {f"schedules.{name}": {"initial": 1.0}} for name in ("a", "b", "c", "d")}
TRUE = {"a": 2.0, "b": -1.0, "c": 0.0, "d": 0.5}


def config(seeds: list[int]) -> AblationConfig:
    return AblationConfig(name="x", seeds=seeds, factors=FACTORS)


def runs(design: AblationConfig, noise: float = 0.0, interaction: float = 0.0) -> list[TrialRun]:
    """Return a run of every trial, whose rating is 10 times its seed and the sum of the effects of its factors, with
    ``noise`` of alternating sign and an ``interaction`` of a and b."""
    found = []
    for index, trial in enumerate(design.trials()):
        changed = [name for name, values in FACTORS.items() if values.items() <= design.variants[trial.variant].items()]
        value = 10.0 * trial.seed + sum(TRUE[name] for name in changed) + noise * (-1) ** (index // 3)
        value += interaction * ("a" in changed and "b" in changed)
        found.append(TrialRun(trial.variant, trial.seed, [EvaluatedVersion(1, 1.0, 1.0, value, 1.0)],
                              measure_training([])))
    return found


def rating(run: TrialRun) -> float:
    return run.last.mu


@pytest.mark.parametrize("seeds", [[1], [1, 2]])
def test_effects_are_found(seeds: list[int]) -> None:
    design = config(seeds)
    found = effects(design, runs(design), rating)
    assert {name: effect.value for name, effect in found.items()} == pytest.approx(TRUE)
    assert found["c"].value == 0
    assert all(effect.half < 1e-6 and effect.seeds == 8 * len(seeds) for effect in found.values())


def test_an_interaction_of_two_changes_their_own_effects_alone() -> None:
    design = config([1])
    found = effects(design, runs(design, interaction=3.0), rating)
    assert {name: effect.value for name, effect in found.items()} == pytest.approx(
        {"a": 3.5, "b": 0.5, "c": 0.0, "d": 0.5})


def test_interval_is_of_student_s_t() -> None:
    """Eight runs leave three degrees of freedom: t is 3.182, and the difference of two means of four has a variance of
    half the runs'."""
    design = config([1])
    noisy = runs(design, noise=0.3)
    found = effects(design, noisy, rating)
    mean = sum(map(rating, noisy)) / 8
    left = sum((rating(run) - mean - sum(
        (effect.value / 2) * (1 if FACTORS[name].items() <= design.variants[run.variant].items() else -1)
        for name, effect in found.items())) ** 2 for run in noisy)
    assert left > 0
    assert [effect.half for effect in found.values()] == pytest.approx([3.182 * math.sqrt(left / 3 / 2)] * 4)


def test_few_runs_tell_nothing() -> None:
    design = config([1])
    some = runs(design)
    assert all(math.isnan(effect.value) for effect in effects(design, [], rating).values())
    assert all(math.isnan(effect.value) for effect in effects(design, some[:4], rating).values())
    assert all(math.isinf(effect.half) for effect in effects(design, some[:5], rating).values())


def test_runs_without_the_metric_are_ignored() -> None:
    design = config([1])
    some = runs(design)
    found = effects(design, some, lambda run: math.nan if run is some[-1] else run.last.mu)
    assert {name: effect.value for name, effect in found.items()} == pytest.approx(TRUE)
    assert {effect.seeds for effect in found.values()} == {7}

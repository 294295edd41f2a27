from pathlib import Path
from typing import Any

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from five.run.load import ConfigError
from five.sweep.config import read
from five.sweep.study import distributions
from tests.repository import ROOT
from tests.sweep.judge import BATCH, RATE, SMALL, write


@pytest.mark.parametrize(("changes", "told"), [
    ({"search": {"learning.batch_size": {"low": 1, "high": 2}}}, r"search\.learning\.batch_size\.low on laptop-1v1.*\n"
     r".*learning\.batch_size: unknown key; did you mean 'batch_samples'"),
    ({"search": {"learning.batch_samples": {"low": 0, "high": 2}}}, r"search\.learning\.batch_samples\.low.*\n"
     r"  learning\.batch_samples 0: .*greater than or equal to 1"),
    ({"search": {"schedules.team_spirit.initial": {"low": 0.5, "high": 1.5}}}, r"schedules\.team_spirit\.initial\.high"
     r".*\n.*team_spirit 1\.5: 0 to 1 is allowed"),
    ({"search": {"buffer.sampling": {"choices": ["oldest", "newest"]}}}, r"search\.buffer\.sampling\.choices\.1 on.*\n"
     r"  buffer\.sampling \"newest\""),
    ({"search": {"learning.batch_samples": {"low": 1.5, "high": 2.5}}}, r"learning\.batch_samples 1\.5: .*integer"),
    ({"search": {"learning.batch_samples": {"low": 1, "high": 2, "step": 0.5}}}, r"step 0\.5: this key takes whole"),
    ({"search": {"game.commit_windups": {"low": 0, "high": 1}}}, r"game\.commit_windups\.low"),
    ({"search": {RATE: {"low": 1.0}}}, rf"search\.{RATE}: low and high, or choices, are needed"),
    ({"search": {RATE: {"low": 2e-3, "high": 1e-3}}}, r"low 0\.002 must be below high 0\.001"),
    ({"search": {RATE: {"low": 0.0, "high": 1e-3, "log": True}}}, r"low 0\.0: with log it must be above 0"),
    ({"search": {RATE: {"low": 0.0, "high": 1.0, "step": 0.3}}}, r"step 0\.3: high - low \(1\) must be a multiple"),
    ({"search": {RATE: {"low": 1e-3, "high": 2e-3, "log": True, "step": 1e-3}}}, "step and log exclude each other"),
    ({"search": {RATE: {"low": 1e-3, "choices": [1e-3, 2e-3]}}}, "choices exclude low, high"),
    ({"search": {BATCH: {"choices": [8, 8]}}}, "choices must be unique"),
    ({"search": {"seed": {"low": 1, "high": 2}}}, r"search\.seed: every run has its own"),
    ({"search": {}}, r"search: .*at least 1"),
    ({"set": {"learning.batch_samples": 0}}, r"set on laptop-1v1.*\n  learning\.batch_samples 0"),
    ({"sampler": {"kind": "cma-es"}}, r"sampler\.kind: .*'tpe', 'gp' or 'random'"),
    ({"objective": ["scripted-hard"]}, "objective 'scripted-hard': evaluation.against lacks it"),
    ({"max_variants": None}, "max_variants or core_hours is needed"),
    ({"confirmation": {"seeds": [2, 3]}}, "confirmation.seeds must differ from seeds: 2"),
    ({"variants": {}}, "variants: Extra inputs"),
    ({"at_once": 2}, 'key "at_once" was renamed to "parallel_runs" in 0.2.0'),
])
def test_invalid_sweep_file_is_refused(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read(write(tmp_path / "s.yaml", **changes))


def test_key_decides_between_whole_and_real_numbers(tmp_path: Path) -> None:
    """A range of whole numbers for a key that takes real ones is continuous."""
    config = read(write(tmp_path / "s.yaml", search={
        "schedules.team_spirit.initial": {"low": 0, "high": 1}, "learning.batch_samples": {"low": 8, "high": 32,
                                                                                           "step": 8},
        "schedules.gae_horizon_seconds.initial": {"low": 10, "high": 100, "log": True},
        "game.hero_pool": {"choices": [["nevermore"], ["lina", "lich"]]}}))
    assert distributions(config) == {
        "schedules.team_spirit.initial": FloatDistribution(0.0, 1.0),
        "learning.batch_samples": IntDistribution(8, 32, step=8),
        "schedules.gae_horizon_seconds.initial": FloatDistribution(10.0, 100.0, log=True),
        "game.hero_pool": CategoricalDistribution(["[nevermore]", "[lina, lich]"])}


def test_budget_and_confirmation_may_change(tmp_path: Path) -> None:
    digest = read(write(tmp_path / "s.yaml")).digest
    for changes in ({"max_variants": 99}, {"core_hours": 2.0}, {"question": "why"}, {"confirmation": {"best": 1}}):
        assert read(write(tmp_path / "s.yaml", **changes)).digest == digest
    assert read(write(tmp_path / "s.yaml", minutes=5)).digest != digest


def test_shipped_sweeps_are_valid() -> None:
    """Each search contains the preset's own values, from which it starts."""
    found = [read(path) for path in (ROOT / "benchmarks/sweeps").glob("*.yaml")]
    assert {config.name for config in found} == {"laptop-5v5"}
    for config in found:
        default = config.default_values()
        assert default is not None and default.keys() == config.search.keys()
        for key, value in default.items():
            low, high = config.search[key].low, config.search[key].high
            assert low is not None and high is not None and low <= value <= high


def test_ablation_has_the_configuration_of_the_sweep(tmp_path: Path) -> None:
    config = read(write(tmp_path / "s.yaml", set={"services.play.enabled": False}))
    ablation = config.ablation({"v3": {BATCH: 16}}, [8])
    assert ablation.seeds == [8] and ablation.evaluation == config.evaluation and ablation.minutes == SMALL["minutes"]
    assert ablation.overrides("default") == ["services.play.enabled=false"]
    assert ablation.overrides("v3") == ["services.play.enabled=false", f"{BATCH}=16"]

"""run.overrides is validated at install against the same schema that the services use."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from five.run.load import load, presets
from tests.charts.rendering import Values, objects, refusal, run_config, variants
from tools.chart_schema import COMPUTED, replaced_keys

# The model's size decides the memory of Redis, which the chart knows of the presets only.
MEMORY = "redis.params.maxmemory=1gb"
REFUSED = {
    "an unknown key": ("services.rollout.gamez=1", "services.rollout", "gamez"),
    "an unknown key, deeper": ("services.controller.autoscaler.rollout.speed=1",
                               "services.controller.autoscaler.rollout", "speed"),
    "text for a whole number": ("services.rollout.games=many", "services.rollout.games", "integer"),
    "a value for a section": ("services.rollout=24", "services.rollout", "object"),
    "nothing for a section": ("services.optimizer=null", "services.optimizer", "object"),
    "too small": ("learning.batch_samples=0", "learning.batch_samples", "1"),
    "too large": ("services.rollout.groups=9", "services.rollout.groups", "8"),
    "too large a fraction": ("league.past_opponent_share=1.5", "league.past_opponent_share", "pattern"),
    "text for a fraction": ("buffer.sample_reuse=twice", "buffer.sample_reuse", "pattern"),
    "none of the names": ("services.rollout.encoding=gzip", "services.rollout.encoding", "sparse_zstd"),
    "none of the names, in a list": ("services.rollout.scripted_bots={smart}", "services.rollout.scripted_bots.0",
                                     "scripted-hard"),
    "no signal": ("rewards.weights.wins=1", "rewards.weights", "wins"),
    "half a ramp": ("schedules.team_spirit.ramps[0].start=5", "schedules.team_spirit.ramps.0", "length"),
}


def paths(tree: dict[str, Any], at: str = "") -> Iterator[str]:
    """Yield the path of every value that is not a mapping."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from paths(value, f"{at}{key}.")
        else:
            yield f"{at}{key}"


def without(tree: dict[str, Any], left_out: tuple[str, ...], at: str = "") -> dict[str, Any]:
    return {key: without(value, left_out, f"{at}{key}.") if isinstance(value, dict) else value
            for key, value in tree.items() if f"{at}{key}" not in left_out}


@pytest.mark.parametrize("case", REFUSED)
def test_is_refused_where_it_is(case: str, helm: str) -> None:
    given, path, reason = REFUSED[case]
    said = refusal(Values(case, sets=(f"run.overrides.{given}",)), helm)
    # helm 4 writes a path with slashes.
    assert f"run.overrides.{path}" in said.replace("/", "."), said
    assert reason in said, said


@pytest.mark.parametrize("path", COMPUTED)
def test_overrides_of_computed_values_are_refused(path: str) -> None:
    said = refusal(Values(path, sets=(f"run.overrides.{path}.of=any kind",)))
    assert f"run.overrides.{path}: the chart computes it from its own values; leave it out" in said, said


@pytest.mark.parametrize("path", replaced_keys())
def test_a_replaced_key_is_refused_with_the_new_one(path: str) -> None:
    """A value of 0 or false is refused too, which a template must not treat as absent."""
    error = refusal(Values(path, sets=(f"run.overrides.{path}=0",)))
    assert f"run.overrides: {replaced_keys()[path]}\n" in error and f'"{path}" was re' in error


def test_that_is_all_that_the_chart_computes_whatever_its_values() -> None:
    """Keys that the chart computes only under some values are checked for range: the schema cannot know the condition.
    """
    every = [{p.split(".of.")[0] for p in paths(yaml.safe_load(run_config(v)))} for v in variants()]
    assert set.intersection(*every) == set(COMPUTED)


@pytest.mark.parametrize("name", presets())
def test_a_preset_may_be_given_as_overrides(name: str, helm: str, tmp_path: Path) -> None:
    tree = without(yaml.safe_load(presets()[name].read_text()), COMPUTED)
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"run": {"overrides": tree}}))
    assert objects(Values(name, (str(file),), (f"run.preset={name}", MEMORY)), helm=helm)


def test_every_key_may_be_given_with_the_value_that_it_has(helm: str, tmp_path: Path) -> None:
    whole = load("gpu-node").model_dump(mode="json", by_alias=True)
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"run": {"overrides": without(whole, COMPUTED)}}))
    # Where versions are rated the chart computes the evaluator's address.
    sets = ("run.preset=gpu-node", "evaluator.enabled=false", MEMORY)
    assert objects(Values("every key", (str(file),), sets), helm=helm)


def test_fractions_on_the_command_line_reach_the_configuration(helm: str, tmp_path: Path) -> None:
    values = Values("fractions", sets=("run.overrides.league.past_opponent_share=0.3",
                                       "run.overrides.schedules.learning_rate.initial=2e-5",
                                       "run.overrides.game.start_seconds=-30.5",
                                       "run.overrides.buffer.sample_reuse=2"))
    file = tmp_path / "run.yaml"
    (text,) = (o["data"]["run.yaml"] for o in objects(values, "ConfigMap", helm) if "run.yaml" in o["data"])
    file.write_text(text)
    config = load(file)
    assert (config.league.past_opponent_share, config.schedules.learning_rate.initial) == (0.3, 2e-5)
    assert (config.game.start_seconds, config.buffer.sample_reuse) == (-30.5, 2)

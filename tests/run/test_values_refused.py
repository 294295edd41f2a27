"""Values that have a key's form and cannot work are refused with the key's path, before anything starts."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from five.ablation.config import read
from five.agent.anneal.document import AnnealPolicy
from five.agent.anneal.guard import GuardConfig
from five.run.config import RunConfig
from five.run.load import ConfigError, apply_overrides, load, validate
from five.run.reference import KeyReference, reference

TREE = load("laptop-1v1", ["game.mode=1v1_mid"]).model_dump(mode="json", by_alias=True)
# Keys with a value of their own in the tree: neither in items of a list nor in an absent section.
KEYS = [key for section in reference() for key in section.keys if "[]" not in key.path
        and not key.path.startswith("rpc.tls.")]
NUMBERS = [key for key in KEYS if key.type.startswith(("integer", "number"))]
SWITCHES = [key for key in KEYS if key.type.startswith("true | false")]


def refused(key: str, value: str) -> str:
    """Return the line that refuses a key's value; empty if the value is accepted."""
    try:
        validate(apply_overrides(TREE, [f"{key}={value}"]), "test")
    except ConfigError as error:
        return next((line for line in str(error).splitlines() if line.startswith(f"  {key} ")), f"no path in: {error}")
    return ""


def accepted(keys: list[KeyReference], values: tuple[str, ...]) -> list[str]:
    """Return the keys that accept one of the values, or refuse it without their path."""
    return [f"{key.path}={value}" for key in keys for value in values
            if refused(key.path, value).startswith("no path") or not refused(key.path, value)]


def test_every_number_refuses_non_numbers() -> None:
    assert len(NUMBERS) > 150
    assert accepted(NUMBERS, (".nan", ".inf", "-.inf", "true", "1:30", "1_000", "'1'", "yes")) == []


def test_every_integer_refuses_fractions_and_huge_values() -> None:
    integers = [key for key in NUMBERS if key.type.startswith("integer")]
    assert accepted(integers, ("1.0", "1.5", "99999999999999999999999", "0x" + "f" * 200)) == []


def test_every_switch_refuses_numbers_and_words() -> None:
    assert len(SWITCHES) > 20
    assert accepted(SWITCHES, ("1", "0", "yes", "off", "'true'")) == []


@pytest.mark.parametrize(("override", "path"), [
    ("rewards.weights={gold: .inf}", "rewards.weights.gold"), ("model.id_rows={unit: true}", "model.id_rows.unit"),
    ("schedules.team_spirit.ramps=[{start: 1, length: 2, from: 0, to: .nan}]", "schedules.team_spirit.ramps.0.to"),
    ("schedules.team_spirit.ramps=[{start: true, length: 2, from: 0, to: 1}]", "schedules.team_spirit.ramps.0.start"),
    ("lifecycle.watchdog_seconds=1e10", "lifecycle.watchdog_seconds"),  # sockets and gRPC: 32 bits of milliseconds
    ("store.timeout_seconds=1e9", "store.timeout_seconds"), ("rpc.keepalive_seconds=1e9", "rpc.keepalive_seconds"),
    ("lifecycle.heartbeat_seconds=1e-300", "lifecycle.heartbeat_seconds"),
    ("services.evaluator.cpu_share=1e-12", "services.evaluator.cpu_share"),
    ("services.optimizer.threads=1000000", "services.optimizer.threads"), ("model.lstm=10000000", "model.lstm"),
    ("services.play.address=somewhere", "services.play.address"),
    ("services.play.address=a:0", "services.play.address"),
    ("services.inference.addresses=[a]", "services.inference.addresses.0"),
    ("services.inference.addresses=['a:70000']", "services.inference.addresses.0"),
    ("services.optimizer.addresses=['a-{rank}.{x}:5']", "services.optimizer"),
    ("services.optimizer={addresses: ['a-{node}:65535'], ranks_per_node: 2, optimizers: 2}", "services.optimizer"),
    ("rating.sigma=1e300", "rating.sigma"), ("rating.beta=1e-300", "rating.beta"),  # their squares
    ("services.controller.autoscaler.rollout.target=1e-310", "services.controller.autoscaler.rollout.target"),
    ("rewards.weights={gold: 1e300}", "rewards: weights.gold"),
    ("services.controller.limits.requests_per_second=1e-310", "services.controller.limits.requests_per_second"),
    ("store.state_url=somewhere", "store.state_url"), ("store.params_url=http://a", "store.params_url"),
    ("store.state_url=redis://a:99999/0", "store.state_url"),
    ("learning.timestep_seconds=[1]", "learning.timestep_seconds"),
    ("game.start_seconds=-100", "game.start_seconds"),  # units' times begin at -99
])
def test_value_that_fails_only_in_use_is_refused(override: str, path: str) -> None:
    with pytest.raises(ConfigError) as error:
        load("laptop-1v1", [override])
    assert any(line.strip().startswith(path) for line in str(error.value).splitlines()), error.value


@pytest.mark.parametrize(("override", "keys"), [
    ("services.rollout={games: 257, groups: 2}", "services.rollout.games / groups"),
    ("services.evaluator.games=129", "services.evaluator.games")])
def test_more_games_than_fit_into_a_request_are_refused(override: str, keys: str) -> None:
    """The two teams of a game act in one request of their group."""
    with pytest.raises(ConfigError, match="max_batch 256 is below the 258 team-steps") as error:
        load("laptop-1v1", ["services.inference.max_batch=256", override])
    assert f"({keys})" in str(error.value)
    assert load("laptop-1v1", [override, "services.inference.max_batch=258"]).services.inference.max_batch == 258


def test_refused_url_keeps_its_password_secret() -> None:
    for url in ("redi://u:hunter2@a:1/0", "redis://u:hunter2@a:99999/0", "redis://u:hun/ter2@a:1x/0"):
        with pytest.raises(ConfigError) as error:
            load("laptop-1v1", [f"store.state_url='{url}'"])
        assert "store.state_url" in str(error.value) and "hun" not in str(error.value)


def test_largest_values_are_accepted() -> None:
    found = load("laptop-1v1", [f"seed={2**63 - 1}", "buffer.capacity_bytes=1099511627776",
                                "lifecycle.watchdog_seconds=2000000", "services.play.address='[::1]:50051'"])
    assert found.seed == 2**63 - 1 and found.lifecycle.watchdog_seconds == 2e6


def test_defaults_are_valid() -> None:
    assert RunConfig() == RunConfig.model_validate(RunConfig().model_dump(mode="json", by_alias=True))


@pytest.mark.parametrize("text", [
    "seeds: [-1]", "seeds: [true]", "seeds: [99999999999999999999]", "minutes: .nan", "minutes: .inf",
    "parallel_runs: true", "evaluation: {pairs: 2.5}", "set: {learning.ppo_clip: .nan}", "set: {seed: 1:30}"])
def test_ablation_is_refused_before_its_runs(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(f"name: trial\nvariants: {{one: {{}}}}\n{text}\n", encoding="utf-8")
    with pytest.raises(ConfigError):
        read(path)


@pytest.mark.parametrize("values", [{"gates": [True]}, {"slower": float("nan")}, {"tries": True}, {"tries": 2.0}])
def test_anneal_policy_refuses_other_types(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AnnealPolicy.model_validate(values)
    assert AnnealPolicy.model_validate({"gates": [0.5, 1]}).gates == (0.5, 1.0)
    with pytest.raises(ValidationError):
        GuardConfig.model_validate({"pairs": True})

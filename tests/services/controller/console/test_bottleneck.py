"""The bottleneck of a run: missing services first, then shares of time as the services report them."""

from types import SimpleNamespace
from typing import Any

import pytest

from five.services.controller.console.bottleneck import bottleneck
from five.services.rollout.group_progress import GroupProgress
from five.services.rollout.metrics import RolloutMeter
from rapid.store.leases import Instance

IDLE = {"busy_share": 0.2, "wait_share": 0.8}


def instance(kind: str, **stats: Any) -> Instance:
    return Instance(kind, f"{kind}-0", "", "", 0.0, 0.0, stats)


def services(*waits: float) -> list[Instance]:
    """Return one instance of each kind, with rollouts that wait for these shares of their time."""
    rollouts = [instance("rollout", inference_wait_share=share) for share in waits] or [instance("rollout")]
    return [instance("optimizer", inference_wait_share=1.0), instance("inference", inference_wait_share=1.0), *rollouts]


@pytest.mark.parametrize(("live", "text"), [
    ([], "no optimizer is up"), (["rollout", "inference"], "no optimizer is up"),
    (["optimizer", "rollout"], "no inference server is up"), (["optimizer"], "no inference server is up"),
    (["optimizer", "inference", "evaluator"], "no rollout is up")])
def test_missing_service_comes_first(live: list[str], text: str) -> None:
    assert bottleneck([instance(kind) for kind in live], {"busy_share": 0.99}) == text


def test_first_version_waits_for_samples() -> None:
    assert bottleneck(services(0.9), {}) == "filling the buffer for the first version"
    assert bottleneck(services(0.9), {"busy_share": 0.0}).startswith("inference")


@pytest.mark.parametrize(("busy", "text"), [
    (1.0, "the optimizer: it computes 100 %"), (0.86, "the optimizer: it computes 86 %"), (0.85, "inference")])
def test_busy_optimizer_comes_before_inference(busy: float, text: str) -> None:
    assert bottleneck(services(1.0), {"busy_share": busy, "wait_share": 1 - busy}).startswith(text)


@pytest.mark.parametrize(("waits", "text"), [
    ([], "the games: the optimizer waits 80 %"), ([0.5], "the games: the optimizer waits 80 %"),
    ([0.51], "inference: rollouts wait for it 51 %"), ([0.9, 0.3], "inference: rollouts wait for it 60 %"),
    ([0.9, 0.0], "the games: the optimizer waits 80 %")])
def test_mean_wait_of_rollouts_decides(waits: list[float], text: str) -> None:
    """Other services do not count, nor does a rollout that has not reported yet."""
    assert bottleneck([*services(*waits), instance("rollout")], IDLE).startswith(text)


def test_wait_is_read_from_a_rollouts_heartbeat() -> None:
    sender: Any = SimpleNamespace(unsent=0, throttled=SimpleNamespace(seconds=0.0))
    progress = [GroupProgress(act_seconds=1e6)]
    stats = RolloutMeter().recent(progress, sender)
    assert bottleneck([*services()[:2], instance("rollout", **stats)], IDLE).startswith("inference: rollouts wait")
    assert bottleneck(services(), {"busy_share": 0.2}) == "the games: the optimizer waits 0 % of the time for samples"

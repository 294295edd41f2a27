"""Trace of one game step through the processes of rollout, games, inference and optimizer."""

import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.test_services import Containers
from tests.telemetry.otlp_receiver import ReceivedSpan, Receiver, receiving

pytestmark = pytest.mark.slow
ACT, PLAY, PUSH = "five.v1.InferenceService/Act", "five.v1.EnvService/Play", "five.v1.ExperienceService/Push"
KINDS = ("controller", "dota_env", "inference", "optimizer", "opponents", "rollout")
# Spans of a step in which no game ends.
TREE = ["five-rollout internal game step",
        "  five-rollout internal wait",
        "  five-rollout internal act",
        f"    five-rollout client {ACT}",
        f"      five-inference server {ACT}",
        "        five-inference internal queue",
        "        five-inference internal batch",
        "          five-inference internal forward pass",
        "  five-rollout internal cut",
        "  five-rollout internal wait",
        "  five-rollout internal step",
        f"    five-rollout client {PLAY}",
        f"      five-dota-env server {PLAY}",
        "  five-rollout internal cut",
        "  five-rollout internal build segment",
        f"    five-rollout client {PUSH}",
        f"      five-optimizer server {PUSH}"]
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def containers(tmp_path: Path, receiver: Receiver) -> Iterator[Containers]:
    containers = Containers(tmp_path, f"tracing.endpoint={receiver.endpoint}", "tracing.sampled_steps=0.05",
                            "services.evaluator.enabled=false")
    yield containers
    containers.destroy()


def admitted(receiver: Receiver) -> list[ReceivedSpan]:
    """Return the optimizer's spans of segments whose gradient step has been exported too."""
    linked = {link for span in receiver.named("gradient step") for link in span.links}
    return [span for span in receiver.named(PUSH) if span.kind == "server" and span.id in linked]


@pytest.mark.timeout(600)
def test_step_is_one_trace_of_four_services(containers: Containers, receiver: Receiver) -> None:
    containers.start_redis()
    for kind in KINDS:
        containers.start(kind)

    def complete() -> list[ReceivedSpan]:
        traces = {span.trace for span in admitted(receiver)}
        return [root for root in receiver.named("game step") if root.trace in traces and receiver.tree(root) == TREE]

    containers.eventually(complete, "a step is traced until its gradient step", 300.0)
    assert {span.service for span in receiver.named("gradient step")} == {"five-optimizer"}

    httpx.get(f"http://127.0.0.1:{containers.rest_port}/v1/versions", timeout=30, headers={
        "Authorization": f"Bearer {containers.token}", "traceparent": CALLER}).raise_for_status()
    # Spans that wait for export are sent when a process ends.
    containers.processes["controller"].send_signal(signal.SIGTERM)
    assert containers.processes["controller"].wait(60) == 0, containers.logs()
    (request,) = receiver.named("GET /v1/versions")
    assert request.service == "five-controller" and f"00-{request.trace}-{request.parent}-01" == CALLER

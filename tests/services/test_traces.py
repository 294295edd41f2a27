"""The spans of a game step in the real rollout loop, inference server, games' server and optimizer."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from five.clients.experience import ExperienceClient
from five.services.optimizer.stored_arrays import SampleCollator
from five.services.optimizer.traced_collator import TracedCollator
from rapid.config import TracingConfig
from rapid.telemetry import tracing
from tests.services.counting import CountingGames
from tests.services.counting import Versions as CountingVersions
from tests.services.inference_server import InferenceServer
from tests.services.optimizer_cases import LAYOUT, Versions, feed, stored_segment, training, until
from tests.services.test_dota_env import GAME, SEED, random_actions
from tests.services.test_dota_env import Server as GamesServer
from tests.services.test_epochs import RPC, Optimizer, made
from tests.services.test_rollout import play
from tests.telemetry.otlp_receiver import Receiver, receiving

ACT, PLAY, PUSH = "five.v1.InferenceService/Act", "five.v1.EnvService/Play", "five.v1.ExperienceService/Push"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        tracing.start_tracing(TracingConfig(endpoint=receiver.endpoint, sampled_steps=1.0), "trial", "all", "0")
        yield receiver
    tracing.stop_tracing()


async def test_step_contains_its_request_and_its_segment(receiver: Receiver) -> None:
    async with InferenceServer(CountingVersions(0)) as server:
        done = await play(CountingGames([[21, 13], [9, 30], [100]]), 60, [server])
    await asyncio.to_thread(tracing.stop_tracing)
    roots = sorted(receiver.named("game step"), key=lambda span: span.span.start_time_unix_nano)
    assert len(roots) == 60 and len({root.trace for root in roots}) == 60
    sent = [segment for segment in done.segments if segment.traceparent]
    built = {f"00-{span.trace}-{span.id}-01": span for span in receiver.named("build segment")}
    assert sent and set(built) == {segment.traceparent for segment in sent}
    # The first step is in the first segment that is cut.
    tree = receiver.tree(roots[0])
    assert tree == ["five-all internal game step",
                    "  five-all internal wait",
                    "  five-all internal act",
                    f"    five-all client {ACT}",
                    f"      five-all server {ACT}",
                    "        five-all internal queue",
                    "        five-all internal batch",
                    "          five-all internal forward pass",
                    "  five-all internal cut",
                    "  five-all internal wait",
                    "  five-all internal step",
                    "  five-all internal cut",
                    "  five-all internal build segment"]
    for child in receiver.spans:
        parent = next((s for s in receiver.spans if s.trace == child.trace and s.id == child.parent), child)
        if child.name != "build segment":  # which follows its step
            assert parent.span.start_time_unix_nano <= child.span.start_time_unix_nano + 2000
            assert child.span.end_time_unix_nano <= parent.span.end_time_unix_nano + 2000


async def test_games_server_continues_the_step(receiver: Receiver) -> None:
    async with GamesServer() as server, server.client() as client:
        await client.open(2, SEED, GAME.model_dump_json())
        with tracing.step_span("game step"):
            await client.step(np.arange(2, dtype=np.int32), random_actions(np.random.default_rng(0), 2))
        await client.step(np.arange(2, dtype=np.int32), random_actions(np.random.default_rng(0), 2))
    await asyncio.to_thread(tracing.stop_tracing)
    (root,) = receiver.named("game step")
    assert receiver.tree(root) == ["five-all internal game step", f"  five-all client {PLAY}",
                                   f"    five-all server {PLAY}"]
    server_span = next(span for span in receiver.spans if span.kind == "server")
    assert server_span.attributes["five.request"] == "step" and int(server_span.attributes["five.core_us"]) > 0
    assert len(receiver.spans) == 3


async def test_segment_is_traced_until_its_acknowledgement(receiver: Receiver) -> None:
    optimizer = Optimizer(1)
    address = await optimizer.start()
    try:
        async with ExperienceClient([address], RPC, LAYOUT.hash, "trial", "rollout", epoch=1) as client:
            await client.push(replace(made(), traceparent=PARENT))
            await client.push(made())
            assert await client.flush(10)
    finally:
        await optimizer.stop()
    await asyncio.to_thread(tracing.stop_tracing)
    client_span, server_span = sorted(receiver.named(PUSH), key=lambda span: span.kind)
    assert f"00-{client_span.trace}-{client_span.parent}-01" == PARENT
    assert (server_span.kind, server_span.parent) == ("server", client_span.id)
    assert len(receiver.spans) == 2


def test_first_gradient_step_links_to_the_segment(receiver: Receiver, tmp_path: Path) -> None:
    run = training(tmp_path, Versions(), traced=TracedCollator(SampleCollator()))
    run.start()
    run.intake.admit(replace(stored_segment("traced"), traceparent=PARENT))
    feed(run, 3)
    until(run, 1)
    tracing.stop_tracing()
    (step,) = receiver.spans
    assert (step.name, step.parent, step.links) == ("gradient step", "", [PARENT.split("-")[2]])
    assert step.attributes == {"five.version": 1} and step.trace not in PARENT

"""Traces: propagation over gRPC, sampling, export to a real collector, and a collector that fails."""

import asyncio
import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest
from fastapi import APIRouter, FastAPI
from fastapi.testclient import TestClient

from five.cli.run_preparation import prepare
from five.local.cluster import free_ports
from five.protos.v1 import inference_pb2, inference_pb2_grpc
from five.run.load import ConfigError
from five.services.controller.http.traces import TraceMiddleware
from rapid.config import RpcConfig, TracingConfig
from rapid.rpc.server import serve
from rapid.rpc.unary_client import UnaryClient
from rapid.telemetry import tracing
from tests.rapid.test_rpc import ADD_INFERENCE, Inference
from tests.telemetry.otlp_receiver import Receiver, receiving

ROOT = Path(__file__).parents[2]
RPC = RpcConfig(require_token=False)
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver
    tracing.stop_tracing()


def start(endpoint: str, steps: float = 1.0, requests: float = 1.0) -> None:
    tracing.start_tracing(TracingConfig(endpoint=endpoint, sampled_steps=steps, sampled_requests=requests), "trial",
                          "dota_env", "7")


async def ask_for_model(address: str) -> None:
    client = UnaryClient([address], inference_pb2_grpc.InferenceServiceStub, "five.v1.InferenceService", RPC, None)
    try:
        await client.call("GetModel", lambda stub: stub.GetModel, inference_pb2.GetModelRequest())
    finally:
        await client.close()


async def test_unary_call_continues_the_trace(receiver: Receiver) -> None:
    start(receiver.endpoint)
    server = await serve("127.0.0.1:0", [(ADD_INFERENCE, Inference())], RPC)
    with tracing.step_span("game step", {"five.games": 4}) as step:
        assert step is not None
        await ask_for_model(f"127.0.0.1:{server.port}")
    await ask_for_model(f"127.0.0.1:{server.port}")  # outside of a trace
    await server.stop(0)
    await asyncio.to_thread(tracing.stop_tracing)
    call = "five.v1.InferenceService/GetModel"
    (root,) = receiver.named("game step")
    assert receiver.tree(root) == [f"five-dota-env {line}" if not line.startswith(" ") else line for line in (
        "internal game step", f"  five-dota-env client {call}", f"    five-dota-env server {call}")]
    assert len(receiver.spans) == 3 and root.attributes == {"five.games": 4}
    assert receiver.paths == {"/v1/traces"}


async def test_task_started_in_a_step_is_traced_until_its_end(receiver: Receiver) -> None:
    start(receiver.endpoint)
    ended = asyncio.Event()

    async def work() -> None:
        with tracing.span("during"):
            pass
        await ended.wait()
        assert tracing.traceparent() == ""
        with tracing.span("after"):
            pass

    with tracing.step_span("game step"):
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
    ended.set()
    await task
    await asyncio.to_thread(tracing.stop_tracing)
    assert {span.name for span in receiver.spans} == {"game step", "during"}


def test_failed_block_marks_its_span(receiver: Receiver) -> None:
    start(receiver.endpoint)
    with pytest.raises(LookupError), tracing.step_span("game step"):
        raise LookupError("no such game")
    tracing.stop_tracing()
    (span,) = receiver.spans
    assert span.span.status.code == 2 and span.span.status.message == "LookupError: no such game"


def test_shares_and_callers_decide_what_is_sampled(receiver: Receiver) -> None:
    start(receiver.endpoint, steps=0.25, requests=0.0)
    for _ in range(400):
        with tracing.step_span("game step"):
            pass
    for parent in ("", CALLER[:-1] + "0", "not a context", CALLER):
        with tracing.request_span("GET", parent):
            pass
    tracing.stop_tracing()
    assert 60 < len(receiver.named("game step")) < 140
    (request,) = receiver.named("GET")
    assert f"00-{request.trace}-{request.parent}-01" == CALLER


def test_rest_request_is_traced_by_its_route(receiver: Receiver) -> None:
    start(receiver.endpoint)
    app, router = FastAPI(), APIRouter()

    @router.get("/versions/{number}")
    def version(number: int) -> dict[str, str]:
        with tracing.span("lookup"):
            return {"traceparent": tracing.traceparent()}

    app.include_router(router, prefix="/v1")
    app.add_middleware(TraceMiddleware)
    client = TestClient(app)
    client.get("/v1/versions/3", headers={"traceparent": CALLER})
    client.get("/v1/nothing")
    client.get("/healthz")
    tracing.stop_tracing()
    (found,) = receiver.named("GET /v1/versions/{number}")
    assert found.kind == "server" and f"00-{found.trace}-{found.parent}-01" == CALLER
    assert found.attributes == {"http.request.method": "GET", "http.route": "/v1/versions/{number}",
                                "http.response.status_code": 200}
    assert [span.parent for span in receiver.named("lookup")] == [found.id]
    assert len(receiver.spans) == 3


def test_headers_come_from_the_environment_and_no_proxy_is_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch
                                                                ) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-scope-orgid=five")
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_ports(1)[0]}")
    start(f"{receiver.endpoint}/")
    with tracing.step_span("game step"):
        pass
    tracing.stop_tracing()
    assert receiver.headers[0]["x-scope-orgid"] == "five" and receiver.paths == {"/v1/traces"}


@pytest.mark.parametrize("status", [0, 404, 503])
def test_failing_collector_costs_one_warning(status: int, receiver: Receiver, caplog: pytest.LogCaptureFixture,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    from rapid.telemetry import tracing_export

    monkeypatch.setattr(tracing_export, "INTERVAL_SECONDS", 0.02)
    monkeypatch.setattr(tracing_export, "EXPORT_SECONDS", 0.1)
    receiver.status = status
    caplog.set_level(logging.INFO)
    start(receiver.endpoint if status else f"http://127.0.0.1:{free_ports(1)[0]}")
    for _ in range(10):
        with tracing.step_span("game step"):
            time.sleep(0.03)
    began = time.monotonic()
    tracing.stop_tracing()
    assert time.monotonic() - began < tracing_export.CLOSE_SECONDS + 5.0
    warnings = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(warnings) == 1 and "traces are lost" in warnings[0].getMessage()


def test_full_queue_drops_spans(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    from rapid.telemetry import tracing_export

    monkeypatch.setattr(tracing_export, "QUEUED_SPANS", 512)
    monkeypatch.setattr(tracing_export, "CLOSE_SECONDS", 0.1)
    receiver.status = 503
    start(receiver.endpoint)
    began = time.monotonic()
    for _ in range(3000):
        with tracing.step_span("game step"):
            pass
    assert time.monotonic() - began < 30.0  # no span waits for the collector


@pytest.mark.parametrize("url", ["collector:4318", "ftp://collector", "http://", "http://me:secret@collector:4318",
                                 "http://collector/?a=b"])
def test_unusable_endpoint_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(pydantic.ValidationError, match="endpoint") as refused:
        TracingConfig(endpoint=url)
    assert all("secret" not in str(error["msg"]) for error in refused.value.errors())


WITHOUT_PACKAGES = """
import sys
sys.modules["opentelemetry.sdk"] = None
from five.services.dota_env.__main__ import main
sys.argv[1:] = ["--config", "laptop-1v1", "--set", "tracing.endpoint=http://127.0.0.1:4318"]
main()
"""


def test_missing_packages_are_refused_before_the_start() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_PACKAGES], cwd=ROOT, capture_output=True, text=True,
                          timeout=60, env={"PYTHONPATH": "libs:."})
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.strip() == ("dota_env: tracing.endpoint is set, but the packages that export traces are not "
                                   "installed: in the checkout run make setup or pip install -e '.[tracing]', or "
                                   "set tracing.endpoint to null")


def test_five_train_refuses_missing_packages_before_it_makes_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                                       ) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)  # as where it is not installed
    with pytest.raises(ConfigError, match=r"make setup or pip install -e '\.\[tracing\]'"):
        prepare(None, ["tracing.endpoint=http://127.0.0.1:4318"], None, None, root=tmp_path)
    assert not list(tmp_path.iterdir())


def test_nothing_is_traced_while_tracing_is_off() -> None:
    tracing.start_tracing(TracingConfig(), "trial", "rollout", "0")
    assert not tracing.is_on() and tracing.traceparent() == "" and tracing.metadata() == ()
    found: list[Any] = [tracing.begin("x", CALLER), tracing.record("x", CALLER, 1, 2)]
    for block in (tracing.step_span("x"), tracing.span("x"), tracing.remote_span("x", CALLER),
                  tracing.request_span("x", CALLER)):
        with block as span:
            found.append(span)
    assert not any(found)

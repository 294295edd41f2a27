"""Access control of gRPC: each caller's token on every method of every service over a real connection."""

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import grpc.aio
import pytest
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor

from five.protos.v1 import (
    env_pb2,
    env_pb2_grpc,
    evaluator_pb2,
    evaluator_pb2_grpc,
    experience_pb2,
    experience_pb2_grpc,
    inference_pb2,
    inference_pb2_grpc,
    opponents_pb2,
    opponents_pb2_grpc,
    play_pb2,
    play_pb2_grpc,
)
from five.services.controller.http.tokens import RESERVED
from rapid.config import RpcConfig
from rapid.rpc.access import ACCESS, Audience, Caller, is_allowed, max_request_bytes
from rapid.rpc.caller_secret import derive_token
from rapid.rpc.callers import KnownCallers
from rapid.rpc.security import token_metadata
from rapid.rpc.server import serve
from tests.repository import ROOT

GENERATED = ((env_pb2, env_pb2_grpc), (evaluator_pb2, evaluator_pb2_grpc), (experience_pb2, experience_pb2_grpc),
             (inference_pb2, inference_pb2_grpc), (opponents_pb2, opponents_pb2_grpc), (play_pb2, play_pb2_grpc))
SERVICES: Mapping[ServiceDescriptor, Any] = {
    service: grpc_module for module, grpc_module in GENERATED
    for service in module.DESCRIPTOR.services_by_name.values()}
# The service for clients of others, which cannot send tokens (docs/dotaservice.md).
WITHOUT_TOKENS = {"DotaService"}
SECRETS = {caller: f"the-secret-of-{caller}" for caller in Caller}
# Every edge of docs/design.md, and what the `five` command asks a local run.
EDGES = {
    (Caller.ROLLOUT, Audience.DOTA_ENV), (Caller.ROLLOUT, Audience.INFERENCE), (Caller.ROLLOUT, Audience.OPTIMIZER),
    (Caller.ROLLOUT, Audience.OPPONENTS), (Caller.EVALUATOR, Audience.INFERENCE), (Caller.PLAY, Audience.INFERENCE),
    (Caller.CONTROLLER, Audience.EVALUATOR), (Caller.CONTROLLER, Audience.PLAY), (Caller.CLI, Audience.EVALUATOR),
    (Caller.CLI, Audience.OPPONENTS)}


def test_every_method_of_the_protos_has_its_callers() -> None:
    assert {s.full_name: {m.name for m in s.methods} for s in SERVICES} == {
        name: set(access.callers) for name, access in ACCESS.items()}
    files = [*ROOT.glob("protos/five/v1/*.proto"), *ROOT.glob("protos/valve/*.proto")]
    in_files = {name for path in files for name in re.findall(r"^service (\w+)", path.read_text(), re.M)}
    assert in_files == {name.rpartition(".")[2] for name in ACCESS} | WITHOUT_TOKENS, "a service that nobody imports"


def test_callers_and_servers_are_the_edges_of_the_design() -> None:
    assert {(caller, access.audience) for access in ACCESS.values() for callers in access.callers.values()
            for caller in callers} == EDGES
    assert all(RESERVED.fullmatch(name) for name in {*map(str, Caller), *map(str, Audience)} - {"cli"})


def test_unlisted_methods_are_denied() -> None:
    assert is_allowed(Caller.ROLLOUT, "/five.v1.ExperienceService/Push")
    for method in ("/five.v1.ExperienceService/Pull", "/five.v1.OtherService/Push", "", "/", "/Push",
                   "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"):
        assert not any(is_allowed(caller, method) for caller in Caller), method


def test_only_samples_and_observations_may_be_large() -> None:
    limits = {name: max_request_bytes([name], 64 << 20) for name in ACCESS}
    assert {name for name, limit in limits.items() if limit == 64 << 20} == {
        "five.v1.ExperienceService", "five.v1.InferenceService"}
    assert max_request_bytes(["five.v1.EnvService"], 1 << 20) == 1 << 20, "the configuration's limit stays the largest"
    assert max_request_bytes([], 5) == max_request_bytes(["other.Service"], 5) == 5


@pytest.fixture(params=SERVICES, ids=lambda service: str(service.name))
async def server(request: Any) -> AsyncIterator[tuple[ServiceDescriptor, int]]:
    """Serve a service whose methods are unimplemented, so that an admitted call answers UNIMPLEMENTED."""
    service, module = request.param, SERVICES[request.param]
    callers = KnownCallers.from_secrets(ACCESS[service.full_name].audience, SECRETS)
    add, servicer = (getattr(module, name) for name in (f"add_{service.name}Servicer_to_server",
                                                        f"{service.name}Servicer"))
    running = await serve("127.0.0.1:0", [(add, servicer())], RpcConfig(), callers)
    yield service, running.port
    await running.stop(0)


async def call(port: int, method: MethodDescriptor, token: str | None) -> tuple[str, str]:
    """Return status and details of a call with an empty request, or with an open stream of requests.

    gRPC reports some requests that it cannot send to a refusing server as INTERNAL, so nothing is sent on a stream.
    """
    request = message_factory.GetMessageClass(method.input_type)().SerializeToString()
    row = descriptor_pb2.MethodDescriptorProto()
    method.CopyToProto(row)
    kind = "stream" if row.client_streaming else "unary"
    path = f"/{method.containing_service.full_name}/{method.name}"
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        start: Any = getattr(channel, f"{kind}_{'stream' if row.server_streaming else 'unary'}")(path)
        running = start(None if kind == "stream" else request, metadata=token_metadata(token), timeout=10)
        return (await running.code()).name, await running.details()


async def test_each_caller_reaches_its_methods_only(server: tuple[ServiceDescriptor, int]) -> None:
    service, port = server
    access = ACCESS[service.full_name]
    for method in service.methods:
        for caller in Caller:
            code, details = await call(port, method, derive_token(SECRETS[caller], access.audience))
            if caller in access.callers[method.name]:
                assert code in ("UNIMPLEMENTED", "INTERNAL"), (method.name, caller, details)
            else:
                assert (code, details) == (
                    "PERMISSION_DENIED", f"caller {caller} is not allowed to call {service.full_name}/{method.name}")


async def test_tokens_of_other_servers_are_refused(server: tuple[ServiceDescriptor, int]) -> None:
    service, port = server
    others = [audience for audience in Audience if audience is not ACCESS[service.full_name].audience]
    for method in service.methods:
        for caller in Caller:
            for token in (*(derive_token(SECRETS[caller], audience) for audience in others), SECRETS[caller]):
                code, details = await call(port, method, token)
                assert code == "UNAUTHENTICATED", (caller, details)
        code, details = await call(port, method, None)
        assert code == "UNAUTHENTICATED", details

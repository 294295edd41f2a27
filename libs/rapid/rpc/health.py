"""Client of the standard gRPC health service, used by the chart's installation test."""

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from rapid.config import RpcConfig
from rapid.rpc.channel import channel

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def is_serving(target: str, config: RpcConfig, service: str = "", timeout: float = 2.0) -> bool:
    """Return whether the server at ``target`` reports that ``service`` ('' is the whole server) is ready. Blocks."""
    with channel(target, config) as connection:
        try:
            answer = health_pb2_grpc.HealthStub(connection).Check(
                health_pb2.HealthCheckRequest(service=service), timeout=timeout)
        except grpc.RpcError:
            return False
    return bool(answer.status == SERVING)

"""The standard gRPC health service: Check without a token, and its client, which the chart's installation test uses."""

from collections.abc import AsyncIterator
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from rapid.config import RpcConfig
from rapid.rpc.channel import channel

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


CHECK = "/grpc.health.v1.Health/Check"


class HealthHandler(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    """Handler of Health/Check, which reports to any caller whether this server is ready.

    It responds before it reads the request, because a caller without a token may send a request of any size. So the
    response is the same for every service name. Watch is UNIMPLEMENTED, because such a caller could hold any number of
    its endless streams.
    """

    def __init__(self, serving: bool) -> None:
        self._serving = serving
        self._shut_down = False

    def set_serving(self, serving: bool) -> None:
        """Set whether the server is ready."""
        self._serving = serving

    def shut_down(self) -> None:
        """Report from now on that the server is not ready."""
        self._shut_down = True

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Return the method's handler; None for other methods."""
        if handler_call_details.method != CHECK:
            return None
        return grpc.stream_stream_rpc_method_handler(
            self._check, response_serializer=health_pb2.HealthCheckResponse.SerializeToString)

    async def _check(self, _: Any, __: Any) -> AsyncIterator[health_pb2.HealthCheckResponse]:
        ready = self._serving and not self._shut_down
        yield health_pb2.HealthCheckResponse(status=SERVING if ready else NOT_SERVING)


def is_serving(target: str, config: RpcConfig, service: str = "", timeout: float = 2.0) -> bool:
    """Return whether the server at ``target`` reports that ``service`` ('' is the whole server) is ready. Blocks."""
    with channel(target, config) as connection:
        try:
            answer = health_pb2_grpc.HealthStub(connection).Check(
                health_pb2.HealthCheckRequest(service=service), timeout=timeout)
        except grpc.RpcError:
            return False
    return bool(answer.status == SERVING)

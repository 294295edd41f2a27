"""Channels to services."""

import asyncio
import json
import random
from collections.abc import Iterator
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import Message

from rapid.config import RpcConfig
from rapid.rpc.caller_secret import CallToken
from rapid.rpc.certificate_reload import CertificateReloader, ReloadingChannel
from rapid.rpc.retry_throttle import TOKEN_RATIO, TOKENS
from rapid.rpc.security import channel_credentials, token_metadata
from rapid.rpc.tls_diagnosis import remember_target, tls_failure

Options = list[tuple[str, Any]]


def connection_options(config: RpcConfig) -> Options:
    """Return the gRPC options that both ends of a connection share: sizes and keepalive."""
    return [
        ("grpc.max_send_message_length", config.max_message_bytes),
        ("grpc.max_receive_message_length", config.max_message_bytes),
        ("grpc.keepalive_time_ms", int(config.keepalive_seconds * 1000)),
        ("grpc.keepalive_timeout_ms", int(config.keepalive_timeout_seconds * 1000)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]


def channel_options(config: RpcConfig, server_name: str = "", retries: bool = False) -> Options:
    """Return the gRPC options of every channel: sizes, keepalive, reconnection, round robin over the servers of a name.

    ``server_name`` is expected in the certificate unless the configuration names one. With ``retries`` gRPC itself
    retries calls that reached no server, with throttling. Leave it off where `rapid.rpc.unary_client` retries, or the
    attempts multiply.
    """
    retry = {
        "maxAttempts": min(max(config.retries + 1, 2), 5),  # gRPC's limits
        "initialBackoff": f"{config.backoff_seconds}s",
        "maxBackoff": f"{config.max_backoff_seconds}s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE"],
    }
    policy: dict[str, Any] = {"name": [{}]}
    service_config: dict[str, Any] = {"methodConfig": [policy], "loadBalancingConfig": [{"round_robin": {}}]}
    if retries and config.retries:
        policy["retryPolicy"] = retry
        service_config["retryThrottling"] = {"maxTokens": int(TOKENS), "tokenRatio": TOKEN_RATIO}
    options: Options = [
        *connection_options(config),
        ("grpc.initial_reconnect_backoff_ms", int(config.backoff_seconds * 1000)),
        ("grpc.min_reconnect_backoff_ms", int(config.backoff_seconds * 1000)),
        ("grpc.max_reconnect_backoff_ms", int(config.max_backoff_seconds * 1000)),
        ("grpc.enable_retries", int(retries)),
        ("grpc.service_config", json.dumps(service_config)),
        # Without it, the channels of a process share one connection and its core.
        ("grpc.use_local_subchannel_pool", 1),
        # Servers are on the loopback or inside the cluster, where a proxy for the internet (http_proxy) cannot connect.
        ("grpc.enable_http_proxy", 0),
    ]
    if config.tls and (config.tls.server_name or server_name):
        options.append(("grpc.ssl_target_name_override", config.tls.server_name or server_name))
    return options


class Channel:
    """An asyncio channel with the metadata of its calls.

    Attributes: ``grpc`` for a generated stub; ``metadata`` and ``config.deadline_seconds`` for each call.
    """

    def __init__(self, target: str, config: RpcConfig, token: CallToken | None, server_name: str = "") -> None:
        self.target = target
        self.config = config
        self._token = token
        options = channel_options(config, server_name)
        self.grpc: grpc.aio.Channel
        if tls := config.tls:
            remember_target(target, tls, server_name)
            self.grpc = ReloadingChannel(
                lambda: grpc.aio.secure_channel(target, channel_credentials(tls), options=options),
                CertificateReloader(tls, f"calls to {target}"))
        else:
            self.grpc = grpc.aio.insecure_channel(target, options=options)

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Metadata of a call that starts now."""
        return token_metadata(self._token.value() if self._token else None)

    def stream(self, method: str, answer: type[Message]) -> Any:
        """Return the bidirectional method package.Service/Method, as a stub has it, but with requests as message bytes.

        `five.clients.wire.serialize_with_set` makes such bytes.
        """
        make: Any = self.grpc.stream_stream  # its type does not allow requests without a serializer
        return make(f"/{method}", response_deserializer=answer.FromString)

    async def close(self) -> None:
        """Close the connection, which ends every call on it."""
        await self.grpc.close(None)

    async def ready(self, timeout: float, until_refused: bool = False) -> None:
        """Wait until a server responds. Raise TimeoutError that names the address.

        With ``until_refused`` the wait also ends once every address of the target has failed, for callers that have
        another target; otherwise gRPC tries them again until the timeout.
        """
        failed = f"no server responds at {self.target} within {timeout:g} s"
        try:
            async with asyncio.timeout(timeout):
                if not until_refused or await self._connected():
                    await self.grpc.channel_ready()
                    return
                failed = f"no server accepts connections at {self.target}"
        except TimeoutError:
            pass
        reason = await asyncio.to_thread(tls_failure, self.target)
        raise TimeoutError(f"{failed}{reason and f': {reason}'}")

    async def _connected(self) -> bool:
        """Return whether the first attempt to connect succeeds."""
        state = self.grpc.get_state(try_to_connect=True)
        while state not in (grpc.ChannelConnectivity.READY, grpc.ChannelConnectivity.TRANSIENT_FAILURE):
            await self.grpc.wait_for_state_change(state)
            state = self.grpc.get_state(try_to_connect=True)
        return state is grpc.ChannelConnectivity.READY


def aio_channel(target: str, config: RpcConfig, token: CallToken | None = None, server_name: str = "") -> Channel:
    """Create a channel within an asyncio loop.

    ``target`` is host:port, unix:path or any gRPC name. ``server_name`` is the name in the server's certificate, if it
    differs.
    """
    return Channel(target, config, token, server_name)


class _AddToken(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor,  # type: ignore[type-arg]
                grpc.StreamUnaryClientInterceptor, grpc.StreamStreamClientInterceptor):  # type: ignore[type-arg]
    """Interceptor that adds the token to every call of a blocking channel."""

    def __init__(self, token: CallToken) -> None:
        self._token = token

    def _continue(self, continuation: Any, details: Any, request: Any) -> Any:
        metadata_now = token_metadata(self._token.value())

        class WithToken(grpc.ClientCallDetails):
            method = details.method
            timeout = details.timeout
            metadata = (*(details.metadata or ()), *metadata_now)
            credentials = details.credentials
            wait_for_ready = details.wait_for_ready
            compression = details.compression

        return continuation(WithToken(), request)

    intercept_unary_unary = _continue  # type: ignore[assignment]
    intercept_unary_stream = _continue  # type: ignore[assignment]
    intercept_stream_unary = _continue  # type: ignore[assignment]
    intercept_stream_stream = _continue  # type: ignore[assignment]


def channel(target: str, config: RpcConfig, token: CallToken | None = None) -> grpc.Channel:
    """Create a blocking channel for tools. Every call carries the token."""
    options = channel_options(config, retries=True)
    if config.tls:
        remember_target(target, config.tls)
    plain = (grpc.secure_channel(target, channel_credentials(config.tls), options) if config.tls
             else grpc.insecure_channel(target, options))
    return grpc.intercept_channel(plain, _AddToken(token)) if token else plain


def backoff(config: RpcConfig, rng: random.Random | None = None) -> Iterator[float]:
    """Yield pauses between attempts in seconds, without end: they double to the maximum, each with up to half as
    jitter."""
    uniform = (rng or random).uniform
    pause = config.backoff_seconds
    while True:
        pause = min(pause, config.max_backoff_seconds)
        yield uniform(pause / 2, pause)
        pause *= 2

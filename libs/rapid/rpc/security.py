"""Bearer tokens and TLS credentials."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import grpc

from rapid.config import TlsConfig
from rapid.rpc.certificate_reload import CertificateReloader, tls_files_error

TOKEN_HEADER = "authorization"  # noqa: S105
_SCHEME = "Bearer "


def token_metadata(token: str | None) -> tuple[tuple[str, str], ...]:
    """Return the call metadata that carries a token."""
    return ((TOKEN_HEADER, _SCHEME + token),) if token else ()


def presented_token(metadata: Iterable[tuple[str, str | bytes]] | None) -> str:
    """Return the bearer token in a call's metadata, '' without one."""
    for key, value in metadata or ():
        if key == TOKEN_HEADER:
            text = value if isinstance(value, str) else value.decode("utf-8", "replace")
            return text.removeprefix(_SCHEME) if text.startswith(_SCHEME) else ""
    return ""


def _read(path: str, what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"rpc.tls.{what} {path}: {error.strerror or error}") from None


def server_credentials(tls: TlsConfig) -> grpc.ServerCredentials:
    """Return credentials of a server that reload their files when they change.

    Raises ValueError that names a missing or unusable file.
    """
    if not tls.certificate:
        raise ValueError("rpc.tls: a server needs certificate and key")
    reloader = CertificateReloader(tls, "this server")

    def read() -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration(
            [(_read(tls.key, "key"), _read(tls.certificate, "certificate"))],
            _read(tls.authority, "authority") if tls.authority else None)

    def read_again() -> Any:  # called at every handshake; None, which the stubs lack, keeps the configuration
        return read() if reloader.due() else None

    first = read()
    if trouble := tls_files_error(tls):  # gRPC would report that it cannot listen
        raise ValueError(trouble)
    return grpc.dynamic_ssl_server_credentials(first, read_again, tls.require_client_certificate)


def channel_credentials(tls: TlsConfig) -> grpc.ChannelCredentials:
    """Return credentials of a client. Raise ValueError that names a missing file."""
    return grpc.ssl_channel_credentials(
        _read(tls.authority, "authority") if tls.authority else None,
        _read(tls.key, "key") if tls.key else None,
        _read(tls.certificate, "certificate") if tls.certificate else None)

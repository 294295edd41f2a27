"""Who may call: bearer tokens and TLS credentials."""

import hmac
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import grpc

from rapid.config import RpcConfig, TlsConfig
from rapid.rpc.renewed import Renewal

TOKEN_VARIABLE = "FIVE_TOKEN"  # noqa: S105 - the variable's name, not a token
ALSO_VARIABLE = "FIVE_TOKEN_ALSO"
TOKEN_HEADER = "authorization"  # noqa: S105
_SCHEME = "Bearer "


def load_token(config: RpcConfig) -> str | None:
    """The bearer token of the run, from ``rpc.token_file`` or the environment. None: there is none.

    Raises ValueError when the file cannot be read or is empty. The message never holds the token.
    """
    if config.token_file:
        try:
            token = Path(config.token_file).expanduser().read_text().strip()
        except OSError as error:
            raise ValueError(f"rpc.token_file {config.token_file}: {error.strerror or error}") from None
        if not token:
            raise ValueError(f"rpc.token_file {config.token_file} is empty")
        return token
    return os.environ.get(TOKEN_VARIABLE, "").strip() or None


def other_token() -> str | None:
    """A second token that servers take, from the environment, while the run's is changed: the next one before it is
    sent, the last one after. None: there is none."""
    return os.environ.get(ALSO_VARIABLE, "").strip() or None


def require_token(config: RpcConfig, token: str | None) -> str | None:
    """``token``, once it is clear that the configuration allows it to be absent.

    Raises ValueError when ``rpc.require_token`` is on and there is none.
    """
    if token is None and config.require_token:
        raise ValueError(f"no token: set {TOKEN_VARIABLE} or rpc.token_file, or switch rpc.require_token off to let "
                         "anyone who reaches the port call")
    return token


def new_token() -> str:
    """A fresh random token."""
    return secrets.token_urlsafe(32)


def write_token(path: Path) -> str:
    """A token kept in ``path``, readable by its owner only; one that is there already is kept."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        token = path.read_text().strip()
        if token:
            return token
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
    token = new_token()
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")
    return token


def token_metadata(token: str | None) -> tuple[tuple[str, str], ...]:
    """What a call carries to be let in."""
    return ((TOKEN_HEADER, _SCHEME + token),) if token else ()


def is_authorised(expected: str | None, presented: str | None, also: str | None = None) -> bool:
    """Whether the value of an authorization header carries the expected token, or ``also``; compared in constant time.

    Without an expected token everyone is.
    """
    if expected is None:
        return True
    if presented is None or not presented.startswith(_SCHEME):
        return False
    given = presented[len(_SCHEME):].encode()
    return any([hmac.compare_digest(given, token.encode()) for token in (expected, also) if token])


def presented_token(metadata: Iterable[tuple[str, str | bytes]] | None) -> str | None:
    """The authorization header of a call's metadata."""
    for key, value in metadata or ():
        if key == TOKEN_HEADER:
            return value if isinstance(value, str) else value.decode("utf-8", "replace")
    return None


def _read(path: str, what: str) -> bytes:
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise ValueError(f"rpc.tls.{what} {path}: {error.strerror or error}") from None


def server_credentials(tls: TlsConfig) -> grpc.ServerCredentials:
    """Credentials of a server, whose files are read again when they change. Raises ValueError naming the file that is
    missing or not given."""
    if not tls.certificate:
        raise ValueError("rpc.tls: a server needs certificate and key")
    renewal = Renewal(tls, "this server")

    def read() -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration(
            [(_read(tls.key, "key"), _read(tls.certificate, "certificate"))],
            _read(tls.authority, "authority") if tls.authority else None)

    def read_again() -> Any:  # asked at every handshake; None, which the stubs do not know of, leaves it as it is
        return read() if renewal.due() else None

    return grpc.dynamic_ssl_server_credentials(read(), read_again, tls.require_client_certificate)


def channel_credentials(tls: TlsConfig) -> grpc.ChannelCredentials:
    """Credentials of a client. Raises ValueError naming the file that is missing."""
    return grpc.ssl_channel_credentials(
        _read(tls.authority, "authority") if tls.authority else None,
        _read(tls.key, "key") if tls.key else None,
        _read(tls.certificate, "certificate") if tls.certificate else None)

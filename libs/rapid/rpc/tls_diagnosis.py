"""Diagnosis of failed TLS connections: the certificate, the dialled name, and the names in the certificate.

gRPC reports a refused certificate like any server that does not respond, and for a name with several addresses often
with another address's error. So this module repeats the handshake with Python's own TLS.
"""

import ipaddress
import logging
import math
import socket
import ssl
import threading
import time
from typing import Any, NamedTuple

from rapid.address import split_address
from rapid.config import TlsConfig
from rapid.rpc.certificate_reload import tls_files_error

log = logging.getLogger(__name__)
TIMEOUT = 2.0  # seconds per handshake
CACHE_SECONDS = 30.0  # validity of a result
WAIT = 0.25  # seconds that a failed call waits for the result; it is logged in any case
_PARTIAL_CHAIN = 0x80000  # X509_V_FLAG_PARTIAL_CHAIN: a trusted leaf certificate is enough

_lock = threading.Lock()
_dialled: dict[str, tuple[TlsConfig, str]] = {}
_found: dict[str, tuple[float, str]] = {}
_logged: dict[str, str] = {}


def remember_target(target: str, tls: TlsConfig, server_name: str = "") -> None:
    """Record that ``target`` is dialled by TLS, so that `tls_failure` can diagnose it."""
    with _lock:
        if _dialled.get(target) != (tls, server_name):
            _found.pop(target, None)
        _dialled[target] = (tls, server_name)


def tls_failure(target: str) -> str:
    """Return what is wrong with TLS at a dialled target; '' when nothing is wrong or the diagnosis takes too long.

    Only the call that starts a diagnosis waits for it. Other calls return the last result.
    """
    with _lock:
        known = _dialled.get(target)
        at, reason = _found.get(target, (-math.inf, ""))
        now = time.monotonic()
        if known is None or now - at < CACHE_SECONDS:
            return reason
        _found[target] = now, reason
    thread = threading.Thread(target=_diagnose, args=(target, *known), name="tls-diagnosis", daemon=True)
    thread.start()
    thread.join(WAIT)
    with _lock:
        return _found.get(target, (0.0, ""))[1]


def _diagnose(target: str, tls: TlsConfig, server_name: str) -> None:
    reason = diagnose_handshake(target, tls, server_name)
    with _lock:
        _found[target] = (time.monotonic(), reason)
        new = reason != _logged.get(target, "")
        _logged[target] = reason
    if new and reason:
        log.error("TLS: %s", reason)


def diagnose_handshake(target: str, tls: TlsConfig, server_name: str = "", timeout: float = TIMEOUT) -> str:
    """Return why either side refuses a handshake with ``target`` (host:port), or why this side's files are unusable;
    '' when the handshake works or nothing listens.

    ``server_name`` is expected in the certificate unless the configuration names one. Blocks for at most ``timeout``
    seconds in each of three handshakes.
    """
    host, port = split_address(target.rpartition("/")[2])
    if not host or not port.isdigit():
        return ""
    if trouble := tls_files_error(tls):
        return trouble
    name = tls.server_name or server_name or host
    try:
        first = _handshake(host, int(port), name, _context(tls, verify=False), timeout)
        names = _names(host, int(port), name, first.der, tls, timeout)
        has = f"the certificate of {target} has the names {', '.join(names)}" if names else (
            f"the certificate of {target} has no names")
        try:
            _handshake(host, int(port), name, _context(tls, verify=True), timeout)
        except ssl.SSLCertVerificationError as error:
            trusted = tls.authority or "the machine's own authorities"
            return f"{has}, and is not trusted by {trusted} (rpc.tls.authority): {error.verify_message}"
    except ssl.SSLError as error:
        return f"{target} does not speak this side's TLS: {error.reason or error}"
    except OSError:
        return ""
    if not any(name_matches(one, name) for one in names):
        return f"{has}, and not {name}, by which it was dialled: issue one that has it too"
    if first.refused:
        own = f"the certificate {tls.certificate}" if tls.certificate else (
            "no certificate (rpc.tls.certificate is not set)")
        return f"{target} refuses this side, which shows {own}: {first.refused}"
    return ""


def name_matches(name: str, dialled_name: str) -> bool:
    """Return whether a certificate's name, an address or a DNS name that may begin with ``*.``, matches the dialled
    name."""
    try:
        return ipaddress.ip_address(name) == ipaddress.ip_address(dialled_name)
    except ValueError:
        pass
    if name.startswith("*."):
        first, _, rest = dialled_name.partition(".")
        return bool(first) and rest.lower() == name[2:].lower() and "." in rest.rstrip(".")
    return name.lower() == dialled_name.lower()


def _context(tls: TlsConfig, verify: bool) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=tls.authority or None) if verify else ssl.SSLContext(
        ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # compared here, so that the error can list the certificate's names
    context.verify_mode = ssl.CERT_REQUIRED if verify else ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    if tls.certificate:
        context.load_cert_chain(tls.certificate, tls.key)
    return context


class _Handshake(NamedTuple):
    """Result of a handshake: the peer's certificate, parsed (if trusted) and raw, and the peer's objection to this
    side's."""

    certificate: dict[str, Any]
    der: bytes
    refused: str


def _handshake(host: str, port: int, name: str, context: ssl.SSLContext, timeout: float) -> _Handshake:
    """Perform a handshake. Raises OSError; ssl.SSLError is one."""
    with socket.create_connection((host, port), timeout) as plain, \
            context.wrap_socket(plain, server_hostname=name) as connection:
        certificate, der = connection.getpeercert() or {}, connection.getpeercert(binary_form=True) or b""
        # A server refuses this side's certificate after the handshake; otherwise it sends its first frame.
        try:
            refused = "" if connection.recv(1) else "it closes the connection"
        except TimeoutError:
            refused = ""
        except OSError as error:
            refused = getattr(error, "reason", None) or str(error)
        return _Handshake(dict(certificate), der, refused)


def _names(host: str, port: int, name: str, der: bytes, tls: TlsConfig, timeout: float) -> list[str]:
    """Return the names in a certificate. Python parses only trusted ones, so this handshake trusts exactly that one."""
    context = _context(tls, verify=False)
    context.load_verify_locations(cadata=der)
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VerifyFlags(_PARTIAL_CHAIN)
    try:
        certificate = _handshake(host, port, name, context, timeout).certificate
    except ssl.SSLCertVerificationError:
        return []  # expired: the next handshake reports why
    return [value for _, value in certificate.get("subjectAltName", ())]

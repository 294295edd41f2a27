"""Callers that a server knows, by hashes of their tokens.

A JSON file holds, for each kind of server and each caller, the SHA-256 hashes of the accepted tokens. It contains no
secret. While a secret is rotated, its caller has the hashes of the old and of the new one.
"""

import hmac
import json
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints, TypeAdapter, ValidationError

from rapid.config import RpcConfig
from rapid.rpc.access import Audience, Caller
from rapid.rpc.caller_secret import derive_token
from rapid.rpc.certificate_reload import FileWatcher

log = logging.getLogger(__name__)
FILE_VARIABLE = "FIVE_CALLERS_FILE"
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
_FILE = TypeAdapter(dict[str, dict[str, list[Sha256]]])  # names that this release does not know are ignored


class KnownCallers:
    """Callers of one server, by the hashes of their tokens."""

    def __init__(self, hashes: Mapping[Caller, Sequence[str]]) -> None:
        self._hashes = dict(hashes)

    @classmethod
    def from_secrets(cls, audience: Audience, secrets: Mapping[Caller, str]) -> "KnownCallers":
        """Create it from the callers' secrets, for programs that embed a server."""
        return cls({caller: [token_hash(secret, audience)] for caller, secret in secrets.items()})

    def hashes(self) -> Mapping[Caller, Sequence[str]]:
        """Return the hashes of the accepted tokens."""
        return self._hashes

    def find(self, token: str) -> Caller | None:
        """Return the caller that owns the token; None for an unknown token. Every hash is compared in constant time."""
        presented = sha256(token.encode()).hexdigest()
        found = None
        for caller, hashes in self.hashes().items():
            for known in hashes:
                if hmac.compare_digest(known, presented):
                    found = caller
        return found


class CallersFile(KnownCallers):
    """Callers of the servers of one kind, in a file that is read again when it changes. An unusable new file changes
    nothing.

    Safe to share between threads. Raises ValueError when the file cannot be used.
    """

    def __init__(self, path: str, audience: Audience, named: str = "rpc.callers_file") -> None:
        """``named`` is the origin of the path, for messages."""
        self._path = Path(path).expanduser()
        self._audience = audience
        self._what = f"{named} {path}"
        self._files = FileWatcher(str(self._path))  # before the file is read, so that no change is missed
        self._lock = threading.Lock()
        super().__init__(self._read())

    def _read(self) -> dict[Caller, Sequence[str]]:
        try:
            known = _FILE.validate_json(self._path.read_bytes())
        except OSError as error:
            raise ValueError(f"{self._what}: {error.strerror or error}") from None
        except ValidationError as error:
            wrong = error.errors(include_input=False)[0]  # without the input, which may be a token
            raise ValueError(f"{self._what}: {'.'.join(map(str, wrong['loc']))}: {wrong['msg']}") from None
        own = known.get(self._audience, {})
        found: dict[Caller, Sequence[str]] = {c: own[c] for c in Caller if own.get(c)}
        if not found:
            raise ValueError(f'{self._what}: no caller of "{self._audience}" is listed')
        return found

    def hashes(self) -> Mapping[Caller, Sequence[str]]:
        """Return the hashes that the file has now."""
        with self._lock:
            if (hashes := self._files.reload(self._read, "new file of callers is unusable")) is not None:
                self._hashes = hashes
                log.info("callers reloaded hashes=%d", sum(map(len, hashes.values())))
            return self._hashes


def load_callers(config: RpcConfig, kind: str, environment: Mapping[str, str] = os.environ) -> CallersFile | None:
    """Return the callers of a server of this kind, from ``rpc.callers_file`` or FIVE_CALLERS_FILE.

    Return None for a kind that does not serve calls, and without a file. Raises ValueError for an unusable file.
    """
    if kind not in list(Audience):
        return None
    if config.callers_file:
        return CallersFile(config.callers_file, Audience(kind))
    path = environment.get(FILE_VARIABLE, "").strip()
    return CallersFile(path, Audience(kind), FILE_VARIABLE) if path else None


def require_callers(config: RpcConfig, callers: KnownCallers | None) -> KnownCallers | None:
    """Return ``callers``. Raise ValueError when they are absent and ``rpc.require_token`` is on."""
    if callers is None and config.require_token:
        raise ValueError(f"no callers: set {FILE_VARIABLE} or rpc.callers_file, or switch rpc.require_token off to let "
                         "anyone who reaches the port call")
    return callers


def token_hash(secret: str, audience: Audience) -> str:
    """Return the hash by which servers of the kind ``audience`` know the owner of ``secret``."""
    return sha256(derive_token(secret, audience).encode()).hexdigest()


def callers_text(secrets: Mapping[Caller, Sequence[str]]) -> str:
    """Return the text of a file of callers. ``secrets`` has the accepted secrets of each caller.

    The chart and the scripts of compose and Kubernetes write the same text.
    """
    return _text({audience: {caller: [token_hash(secret, audience) for secret in accepted]
                             for caller, accepted in secrets.items()} for audience in Audience})


def with_secrets(text: str, secrets: Mapping[Caller, str]) -> str:
    """Return the text of a file of callers that also accepts these secrets."""
    known = _FILE.validate_json(text)
    for audience in Audience:
        for caller, secret in secrets.items():
            known.setdefault(audience, {}).setdefault(caller, []).append(token_hash(secret, audience))
    return _text(known)


def _text(tree: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    return json.dumps(tree, sort_keys=True, separators=(",", ":"))

"""Client of the controller's REST API."""

import ipaddress
import itertools
import json
import time
import urllib.parse
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from rapid.atomic_file import replacing

TOKEN_VARIABLE = "FIVE_OPERATOR_TOKEN"  # noqa: S105  (the variable's name)
TRIES = 4  # attempts of a request without an answer, or while Redis is unavailable
LONGEST_PAUSE = 5.0
FOLLOW_SECONDS = 60.0  # for which a stream, once received, may be unavailable: a controller or Redis restarts


class ApiError(RuntimeError):
    """A refused or unanswered request. The message is for the user."""


class NoResponse(ApiError):
    """A request without a response. The controller may have carried it out."""


class Document(NamedTuple):
    """A document and its entity tag."""

    value: Any
    tag: str


class ControllerClient:
    """Client of a controller at ``url``, http(s)://host:port, with a token.

    Every change carries an idempotency key, so that it can be sent again if its response was lost. Raises ApiError for
    an invalid URL, and for an unusable proxy in the environment.
    """

    def __init__(self, url: str, token: str, timeout: float = 35.0) -> None:
        self.url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}
        self._timeout = timeout
        try:
            address = httpx.URL(self.url)
            if address.scheme not in ("http", "https") or not address.host:
                raise ValueError("http://HOST:PORT or https://HOST:PORT is expected")
            self._trust_env = not is_loopback(self.url)
        except (httpx.InvalidURL, ValueError) as error:
            raise ApiError(f"{url!r} is not a controller's URL: {error}") from None
        if self._trust_env:
            _require_usable_proxies()

    def get(self, path: str, **parameters: Any) -> Any:
        """Return the JSON of GET /v1/<path>. Parameters that are None are left out. Raises ApiError."""
        return _json(self._ask("GET", path, parameters, None))

    def document(self, path: str) -> Document:
        """Return GET /v1/<path> with its entity tag. Raises ApiError."""
        answer = self._ask("GET", path, {}, None)
        return Document(_json(answer), answer.headers["ETag"])

    def post(self, path: str, body: dict[str, Any], *, patience: float = 0.0, **parameters: Any) -> Any:
        """Return the JSON of POST /v1/<path>. Without a response it is sent again, under the same idempotency key, for
        at least ``patience`` seconds. Raises ApiError."""
        return _json(self._ask("POST", path, parameters, body, patience=patience))

    def put(self, path: str, body: dict[str, Any], match: str | None = None, **parameters: Any) -> Any:
        """Return the JSON of PUT /v1/<path>, conditional on the entity tag ``match``. Raises ApiError."""
        return _json(self._ask("PUT", path, parameters, body, {"If-Match": match} if match else {}))

    def delete(self, path: str) -> None:
        """Send DELETE /v1/<path>. Raises ApiError."""
        self._ask("DELETE", path, {}, None)

    def follow(self, last: str = "") -> Iterator[tuple[str, Any]]:
        """Yield kind and data of each message of GET /v1/stream, without end. Resume after a lost connection.

        Raises ApiError for a refusal, and if the stream is unavailable: at the start after `TRIES` attempts, later
        after `FOLLOW_SECONDS`.
        """
        failures, until = 0, 0.0
        while True:
            try:
                headers = {**self._headers, **({"Last-Event-ID": last} if last else {})}
                with httpx.stream("GET", f"{self.url}/v1/stream", headers=headers,
                                  timeout=httpx.Timeout(self._timeout), trust_env=self._trust_env) as answer:
                    if answer.is_success:
                        failures = 0
                        try:
                            for fields in _messages(answer.iter_lines()):
                                last = fields.get("id", last)
                                if "event" in fields:
                                    yield fields["event"], json.loads(fields["data"])
                        finally:
                            until = time.monotonic() + FOLLOW_SECONDS
                    else:
                        answer.read()
                        failures += 1
                        if answer.status_code != 503 or (failures >= TRIES and time.monotonic() >= until):
                            raise self._refusal(answer)
            except httpx.HTTPError as error:
                failures += 1
                if failures >= TRIES and time.monotonic() >= until:
                    raise self._no_response(error) from None
            time.sleep(min(2.0 ** failures / 2, LONGEST_PAUSE))

    def save(self, path: str, file: Path) -> int:
        """Write the bytes of GET /v1/<path> to a file, atomically. Return their number. Raises ApiError."""
        written = 0
        try:
            with httpx.stream("GET", f"{self.url}/v1/{path}", headers=self._headers,
                              timeout=httpx.Timeout(self._timeout), trust_env=self._trust_env) as answer:
                if not answer.is_success:
                    answer.read()
                    raise self._refusal(answer)
                with replacing(file) as out:
                    for piece in answer.iter_bytes():
                        written += out.write(piece)
        except httpx.HTTPError as error:
            raise self._no_response(error) from None
        return written

    def _ask(self, method: str, path: str, parameters: dict[str, Any], body: dict[str, Any] | None,
             more: dict[str, str] | None = None, patience: float = 0.0) -> httpx.Response:
        headers = {**self._headers, **(more or {})}
        if method != "GET":
            headers["Idempotency-Key"] = str(uuid.uuid4())
        given = {name: value for name, value in parameters.items() if value is not None}
        until = time.monotonic() + patience
        for attempt in itertools.count(1):
            last = attempt >= TRIES and time.monotonic() >= until
            try:
                answer = httpx.request(method, f"{self.url}/v1/{path}", params=given, json=body, headers=headers,
                                       timeout=self._timeout, trust_env=self._trust_env)
            except httpx.HTTPError as error:
                if last:
                    raise self._no_response(error) from None
                time.sleep(0.3 if attempt < TRIES else 1.0)
                continue
            if answer.status_code != 503 or last:
                break
            time.sleep(_retry_seconds(answer))
        if not answer.is_success:
            raise self._refusal(answer)
        return answer

    def _no_response(self, error: httpx.HTTPError) -> ApiError:
        return NoResponse(f"the controller at {self.url} does not answer: {error}")

    @staticmethod
    def _refusal(answer: httpx.Response) -> ApiError:
        """Return the error of problem details (RFC 9457), or of a redirect, which is not followed."""
        request = f"{answer.request.method} {answer.request.url.path}"
        if answer.has_redirect_location:
            return ApiError(f"{request}: {answer.status_code}, the server redirects to {answer.headers['Location']}; "
                            "give the controller's own address")
        try:
            problem = answer.json()
            text = f"{problem['title']} ({answer.status_code}): {problem['detail']}"
            text += "".join(f"\n  {wrong['where']}: {wrong['what']}" for wrong in problem.get("errors") or ())
        except (ValueError, KeyError, TypeError):
            text = f"{answer.status_code} {answer.text[:500]}"
        return ApiError(f"{request}: {text}")


def _json(answer: httpx.Response) -> Any:
    """Return the JSON of a response. Raises ApiError for another one, as of a proxy's login page."""
    try:
        return answer.json()
    except ValueError:
        raise ApiError(f"{answer.request.method} {answer.request.url} was not answered with JSON: is this the "
                       "controller's address?") from None


def _retry_seconds(answer: httpx.Response) -> float:
    """Return the pause that a response asks for, `LONGEST_PAUSE` at most. A proxy may send a date, which counts as a
    second."""
    given = answer.headers.get("Retry-After", "")
    return min(float(given), LONGEST_PAUSE) if given.isascii() and given.isdigit() else 1.0


def _require_usable_proxies() -> None:
    """Raise ApiError if httpx refuses a proxy of the environment, which it reads for each request."""
    try:
        httpx.Client(trust_env=True).close()
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise ApiError(f"a proxy in http_proxy, https_proxy or all_proxy cannot be used: {error}") from None


def is_loopback(url: str) -> bool:
    """Return whether ``url`` names this machine: a proxy of the environment (http_proxy) cannot connect to it."""
    host = urllib.parse.urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _messages(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    """Yield the fields of each server-sent event."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line:
            if fields:
                yield fields
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")

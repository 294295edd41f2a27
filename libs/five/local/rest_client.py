"""Client of the controller's REST API."""

import ipaddress
import json
import time
import urllib.parse
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx

TOKEN_VARIABLE = "FIVE_OPERATOR_TOKEN"  # noqa: S105  (the variable's name)
TRIES = 4  # of a request that finds no answer, or a store that is away
LONGEST_PAUSE = 5.0


class Refused(RuntimeError):
    """The controller said no, or nothing answered; the message is for the user."""


class Document(NamedTuple):
    """A document and the tag of the state that was read."""

    value: Any
    tag: str


class Controller:
    """Requests with a token. ``url`` is http(s)://host:port.

    Every change carries an idempotency key, so that it can be sent again when its answer was lost.
    """

    def __init__(self, url: str, token: str, timeout: float = 35.0) -> None:
        self.url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}
        self._timeout = timeout
        self._trust_env = not is_loopback(self.url)

    def get(self, path: str, **parameters: Any) -> Any:
        """The JSON of GET /v1/<path>; parameters that are None are left out. Raises Refused."""
        return self._ask("GET", path, parameters, None).json()

    def document(self, path: str) -> Document:
        """GET /v1/<path> with its tag. Raises Refused."""
        answer = self._ask("GET", path, {}, None)
        return Document(answer.json(), answer.headers["ETag"])

    def post(self, path: str, body: dict[str, Any], **parameters: Any) -> Any:
        """The JSON of POST /v1/<path>. Raises Refused."""
        return self._ask("POST", path, parameters, body).json()

    def put(self, path: str, body: dict[str, Any], match: str | None = None, **parameters: Any) -> Any:
        """The JSON of PUT /v1/<path>, if the document still is in the state of that tag. Raises Refused."""
        return self._ask("PUT", path, parameters, body, {"If-Match": match} if match else {}).json()

    def delete(self, path: str) -> None:
        """DELETE /v1/<path>. Raises Refused."""
        self._ask("DELETE", path, {}, None)

    def follow(self, last: str = "") -> Iterator[tuple[str, Any]]:
        """Messages of GET /v1/stream, kind and data, without end. Goes on after a loss where it was. Raises Refused
        when the controller says no, or nothing answers for a while."""
        failures = 0
        while True:
            try:
                headers = {**self._headers, **({"Last-Event-ID": last} if last else {})}
                with httpx.stream("GET", f"{self.url}/v1/stream", headers=headers,
                                  timeout=httpx.Timeout(self._timeout), trust_env=self._trust_env) as answer:
                    if answer.is_error:
                        answer.read()
                        raise self._refusal(answer)
                    failures = 0
                    for fields in _messages(answer.iter_lines()):
                        last = fields.get("id", last)
                        if "event" in fields:
                            yield fields["event"], json.loads(fields["data"])
            except httpx.HTTPError as error:
                failures += 1
                if failures >= TRIES:
                    raise self._silent(error) from None
            time.sleep(min(2.0 ** failures / 2, LONGEST_PAUSE))

    def save(self, path: str, file: Path) -> int:
        """The bytes of GET /v1/<path> into a file, whole or not at all; returns how many. Raises Refused."""
        beside, written = file.with_name(f".{file.name}.part"), 0
        try:
            with httpx.stream("GET", f"{self.url}/v1/{path}", headers=self._headers,
                              timeout=httpx.Timeout(self._timeout), trust_env=self._trust_env) as answer:
                if answer.is_error:
                    answer.read()
                    raise self._refusal(answer)
                with beside.open("wb") as out:
                    for piece in answer.iter_bytes():
                        written += out.write(piece)
            beside.replace(file)
        except httpx.HTTPError as error:
            raise self._silent(error) from None
        finally:
            beside.unlink(missing_ok=True)
        return written

    def _ask(self, method: str, path: str, parameters: dict[str, Any], body: dict[str, Any] | None,
             more: dict[str, str] | None = None) -> httpx.Response:
        headers = {**self._headers, **(more or {})}
        if method != "GET":
            headers["Idempotency-Key"] = str(uuid.uuid4())
        given = {name: value for name, value in parameters.items() if value is not None}
        for left in reversed(range(TRIES)):
            try:
                answer = httpx.request(method, f"{self.url}/v1/{path}", params=given, json=body, headers=headers,
                                       timeout=self._timeout, trust_env=self._trust_env)
            except httpx.HTTPError as error:
                if not left:
                    raise self._silent(error) from None
                time.sleep(0.3)
                continue
            if answer.status_code != 503 or not left:
                break
            time.sleep(min(float(answer.headers.get("Retry-After", 1)), LONGEST_PAUSE))
        if answer.is_error:
            raise self._refusal(answer)
        return answer

    def _silent(self, error: httpx.HTTPError) -> Refused:
        return Refused(f"the controller at {self.url} does not answer: {error}")

    @staticmethod
    def _refusal(answer: httpx.Response) -> Refused:
        """What problem details (RFC 9457) say, for a person."""
        request = f"{answer.request.method} {answer.request.url.path}"
        try:
            problem = answer.json()
            text = f"{problem['title']} ({answer.status_code}): {problem['detail']}"
            text += "".join(f"\n  {wrong['where']}: {wrong['what']}" for wrong in problem.get("errors") or ())
        except (ValueError, KeyError, TypeError):
            text = f"{answer.status_code} {answer.text[:500]}"
        return Refused(f"{request}: {text}")


def is_loopback(url: str) -> bool:
    """Return whether ``url`` names this machine: a proxy of the environment (http_proxy) cannot connect to it."""
    host = urllib.parse.urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _messages(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    """Fields of each message of a stream of server-sent events."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line:
            if fields:
                yield fields
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")

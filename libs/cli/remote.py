"""The controller's REST face, as the command line calls it."""

from typing import Any

import httpx


class Refused(RuntimeError):
    """The controller said no, or nothing answered; the message is for the user."""


class Controller:
    """Requests with the run's token. ``url`` is http(s)://host:port."""

    def __init__(self, url: str, token: str, timeout: float = 10.0) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}
        self._timeout = timeout

    def get(self, path: str, **parameters: Any) -> Any:
        """The JSON of GET /v1/<path>. Raises Refused."""
        return self._ask("GET", path, parameters, None)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """The JSON of POST /v1/<path>. Raises Refused."""
        return self._ask("POST", path, {}, body)

    def put(self, path: str, body: dict[str, Any]) -> Any:
        """The JSON of PUT /v1/<path>. Raises Refused."""
        return self._ask("PUT", path, {}, body)

    def _ask(self, method: str, path: str, parameters: dict[str, Any], body: dict[str, Any] | None) -> Any:
        try:
            answer = httpx.request(method, f"{self._url}/v1/{path}", params=parameters, json=body,
                                   headers=self._headers, timeout=self._timeout)
        except httpx.HTTPError as error:
            raise Refused(f"the controller at {self._url} does not answer: {error}") from None
        if answer.is_error:
            try:
                detail = answer.json().get("detail", answer.text)
            except ValueError:
                detail = answer.text
            raise Refused(f"{method} /v1/{path}: {detail}")
        return answer.json()

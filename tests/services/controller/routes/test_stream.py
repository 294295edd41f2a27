"""The event stream of a run: content, resumption, permissions, and lifetime."""

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import redis

from five.run.config.controller import LimitsConfig
from five.services.controller.http.tokens import FixedTokens, TokenEntry, token_hash
from rapid.store.series import Series
from rapid.store.state import Status
from tests.services.live_controller import OPERATOR, RUN, VIEWER, LiveController, bearer, live, problem
from tests.waiting import eventually


@pytest.fixture
def rest(redis_client: redis.Redis, redis_url: str) -> Iterator[LiveController]:
    with live(redis_url) as found:
        yield found


class Listener:
    """Client of the stream that reads in a thread."""

    def __init__(self, rest: LiveController, token: str = VIEWER, **headers: str) -> None:
        self.messages: list[dict[str, str]] = []
        self.comments = 0
        self.ended = threading.Event()
        self._client = httpx.Client(timeout=httpx.Timeout(20.0))
        self._request = self._client.build_request("GET", f"{rest.url}/v1/stream", headers={
            **bearer(token), **{k.replace("_", "-"): v for k, v in headers.items()}})
        self.answer = self._client.send(self._request, stream=True)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        fields: dict[str, str] = {}
        try:
            for line in self.answer.iter_lines():
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif "event" in fields:
                    self.messages.append(fields)
                    fields = {}
                else:
                    fields = {}
        except httpx.HTTPError:
            pass
        self.ended.set()

    def wait(self, count: int) -> list[tuple[str, Any]]:
        eventually(lambda: len(self.messages) >= count, 30, f"{count} messages", details=lambda: str(self.messages))
        return [(m["event"], json.loads(m["data"])) for m in self.messages]

    def close(self) -> None:
        self.answer.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._client.close()


def test_stream_sends_changes_and_resumes(rest: LiveController) -> None:
    rest.state.events.append("test", "before", {})
    listener = Listener(rest)
    assert listener.answer.headers["content-type"].startswith("text/event-stream")
    assert [(kind, data["status"]) for kind, data in listener.wait(1)] == [("status", "starting")]
    rest.state.transition(Status.RUNNING, "test")
    Series(rest.state.redis, RUN).append("versions", {"version": 5})
    told = listener.wait(4)
    assert [kind for kind, _ in told].count("version") == 1 and ("event", "run.running") in [
        (kind, data.get("what")) for kind, data in told]
    assert [data["status"] for kind, data in told if kind == "status"] == ["starting", "running"]
    last = [m["id"] for m in listener.messages if "id" in m][-1]
    listener.close()

    rest.state.events.append("test", "meanwhile", {"n": 1})
    Series(rest.state.redis, RUN).append("versions", {"version": 6})
    again = Listener(rest, Last_Event_ID=last)
    told = again.wait(3)
    assert {(kind, data.get("what") or data.get("values", {}).get("version")) for kind, data in told} == {
        ("event", "meanwhile"), ("version", 6), ("status", None)}
    again.close()
    problem(rest.ask("GET", "/v1/stream", headers={"Last-Event-ID": "garbage"}), 422, "invalid")


def test_stream_clients_are_limited_and_release_slots(redis_client: redis.Redis, redis_url: str
                                                                     ) -> None:
    with live(redis_url, LimitsConfig(streams=2)) as rest:
        listeners = [Listener(rest, OPERATOR) for _ in range(2)]
        for listener in listeners:
            listener.wait(1)
        problem(rest.ask("GET", "/v1/stream"), 429, "too-many-requests")
        listeners[0].close()
        slots = rest.context.stream_slots
        eventually(lambda: slots.taken <= 1, 10, "a stream's slot to be free", details=lambda: f"taken: {slots.taken}")
        third = Listener(rest, OPERATOR)
        third.wait(1)
        third.close()
        listeners[1].close()


def test_one_viewer_cannot_take_all_streams(redis_client: redis.Redis, redis_url: str) -> None:
    with live(redis_url, LimitsConfig(streams=8)) as rest:
        listeners = [Listener(rest) for _ in range(8)]
        assert [listener.answer.status_code for listener in listeners] == [200] * 2 + [429] * 6
        listeners.append(Listener(rest, OPERATOR))
        assert listeners[-1].answer.status_code == 200
        for listener in listeners:
            if listener.answer.status_code == 200:
                listener.close()


def test_stream_ends_when_its_token_is_revoked(redis_client: redis.Redis, redis_url: str) -> None:
    tokens = FixedTokens([TokenEntry(name="ada", role="viewer", sha256=token_hash(OPERATOR))])
    with live(redis_url) as rest:
        rest.context.authenticator._tokens = tokens
        listener = Listener(rest, OPERATOR)
        listener.wait(1)
        tokens._entries = []
        assert listener.ended.wait(30)


def test_idle_stream_sends_heartbeats(rest: LiveController, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("five.services.controller.routes.stream.HEARTBEAT_SECONDS", 0.2)
    listener = Listener(rest)
    eventually(lambda: listener.comments >= 2, 10, "two heartbeats", details=lambda: f"received: {listener.comments}")
    assert len(listener.messages) == 1
    listener.close()

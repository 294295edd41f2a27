"""A live game's bytes while the caller's token is checked again, and recordings by name."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from five.services.controller.games.live_hub import GameFeed
from five.services.controller.http.problems import Problem
from rapid.blobs import Ref
from rapid.store.errors import Corrupt
from rapid.store.live_channel import LiveMessage
from tests.services.controller.routes.conftest import Api
from tests.services.live_controller import RUN, VIEWER, problem

GAME = "0123456789abcdef"


@pytest.fixture
def feed(api: Api) -> Iterator[GameFeed]:
    """Return the feed of a game with two chunks that has ended."""
    hub = api.context.live_hub
    portal: Any = api.client.portal
    feed = portal.call(hub.watch, GAME)
    for kind, body in (("header", b"H"), ("chunk", b"0"), ("chunk", b"1"), ("end", b"")):
        portal.call(hub.receive, LiveMessage(kind, "rollout/0", GAME, body))
    yield feed
    portal.call(hub.leave, feed)


def fail_after(calls: int, error: Exception, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``call``, which raises ``error`` after a number of calls."""
    made: list[Any] = []

    def attempt(*arguments: Any) -> Any:
        made.append(arguments)
        if len(made) > calls:
            raise error
        return call(*arguments)
    return attempt


@pytest.mark.parametrize(("error", "data"), [
    (None, b"H01FVEN"), (redis.ConnectionError("the store is restarting"), b"H01FVEN"),
    (Problem(401, "revoked"), b"H")])
def test_live_stream_ends_with_the_game_or_the_token(api: Api, feed: GameFeed, monkeypatch: pytest.MonkeyPatch,
                                                     error: Exception | None, data: bytes) -> None:
    """A store that is away ends no stream."""
    gate = api.context.authenticator
    if error is not None:
        monkeypatch.setattr(gate, "authenticate", fail_after(1, error, gate.authenticate))
    answer = api.ask("GET", f"/v1/games/{GAME}/live", VIEWER)
    assert (answer.status_code, answer.content) == (200, data)
    assert feed.viewers == 1 and api.context.live_slots.taken == 0, "the viewer has not left"


@pytest.mark.parametrize(("after", "data"), [(1, b"H1FVEN"), (2, b"HFVEN"), (1 << 31, b"HFVEN")])
def test_live_stream_begins_at_a_chunk(api: Api, feed: GameFeed, after: int, data: bytes) -> None:
    assert api.ask("GET", f"/v1/games/{GAME}/live", VIEWER, params={"after": after}).content == data


def test_position_in_a_live_stream_is_limited(api: Api) -> None:
    for after in (-1, (1 << 31) + 1, "x"):
        problem(api.ask("GET", f"/v1/games/{GAME}/live", VIEWER, params={"after": after}), 422, "invalid")


def test_recordings_are_read_by_name(api: Api) -> None:
    blobs = api.context.blobs
    assert blobs is not None and api.ask("GET", "/v1/replays", VIEWER).json() == {"replays": []}
    blobs.put(b"recording", f"{RUN}/replays/version-1.view")
    assert api.ask("GET", "/v1/replays", VIEWER).json() == {"replays": [
        {"name": "version-1", "bytes": 9, "facts": {}}]}
    answer = api.ask("GET", "/v1/replays/version-1", VIEWER)
    assert answer.content == b"recording" and answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["cache-control"] == "no-store"
    problem(api.ask("GET", "/v1/replays/version-2", VIEWER), 404, "not-found")
    api.context.blobs = None
    problem(api.ask("GET", "/v1/replays/version-1", VIEWER), 404, "not-found")


@pytest.mark.parametrize(("error", "status", "kind"), [
    (OSError("no route to the volume"), 503, "unavailable"), (Corrupt("the name is damaged"), 404, "not-found")])
def test_unreadable_recording_names_the_reason(api: Api, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int,
                                               kind: str) -> None:
    def fail(name: str) -> Ref:
        raise error

    monkeypatch.setattr(api.context.blobs, "ref", fail)
    assert str(error) in problem(api.ask("GET", "/v1/replays/version-1", VIEWER), status, kind)["detail"]


@pytest.mark.parametrize("path", ["/v1/replays", "/v1/draft/tables", "/v1/draft"])
def test_unavailable_blob_store_is_named(api: Api, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    def fail(prefix: str) -> list[str]:
        raise OSError("no route to the volume")

    monkeypatch.setattr(api.context.blobs, "refs", fail)
    refused = api.ask("GET", path, VIEWER)
    assert "no route to the volume" in problem(refused, 503, "unavailable")["detail"]
    assert int(refused.headers["Retry-After"]) > 0

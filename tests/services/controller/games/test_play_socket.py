"""A person's web socket on a game of the test: messages, limits, and how either side ends it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from five.clients.play import PlayClient
from five.protos.v1 import play_pb2, play_pb2_grpc
from five.services.controller.games import play_socket
from five.services.controller.games.play_socket import PlaySocket, parse_message, response_json
from five.services.controller.http.auth import Caller, Role
from five.services.controller.http.problems import Problem
from rapid.rpc.errors import StatusCode
from rapid.rpc.server import serve
from tests.services.inference_server import RPC
from tests.waiting import eventually_async

ADA = Caller("ada", Role.OPERATOR, "0" * 64)
STOP = json.dumps({"type": "order", "n": 1, "kind": "stop"})


class Game(play_pb2_grpc.PlayServiceServicer):
    """A game that sends what the test puts into ``responses``: a status code ends it with that failure, None well."""

    def __init__(self) -> None:
        self.responses: asyncio.Queue[play_pb2.JoinResponse | StatusCode | None] = asyncio.Queue()
        self.requests: list[play_pb2.JoinRequest] = []
        self.left = asyncio.Event()

    async def Join(self, request_iterator: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        async def read() -> None:
            async for request in request_iterator:
                self.requests.append(request)

        reading = asyncio.create_task(read())
        try:
            while (response := await self.responses.get()) is not None:
                if isinstance(response, StatusCode):
                    await context.abort(response, "ended by the test")
                yield response
        finally:
            reading.cancel()
            self.left.set()


@dataclass
class Played:
    """The two ends of a socket."""

    browser: ClientConnection
    game: Game

    async def say(self, text: str | bytes) -> None:
        await self.browser.send(text)

    async def read(self) -> dict[str, Any]:
        return dict(json.loads(await asyncio.wait_for(self.browser.recv(), 10)))

    async def closed(self) -> tuple[int, str]:
        """Wait for the end of the socket. Return its code and reason."""
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                await asyncio.wait_for(self.browser.recv(), 10)
        assert closed.value.rcvd is not None
        return closed.value.rcvd.code, closed.value.rcvd.reason


@asynccontextmanager
async def playing(revalidate: Callable[[], Caller] = lambda: ADA, role: Role = Role.OPERATOR) -> AsyncIterator[Played]:
    """Serve a game and a web socket to it. At the end the handler must have returned without an exception."""
    game = Game()
    server = await serve("127.0.0.1:0", [(play_pb2_grpc.add_PlayServiceServicer_to_server, game)], RPC)
    client = PlayClient(f"127.0.0.1:{server.port}", RPC, "trial")
    errors, over = list[BaseException](), asyncio.Event()

    async def handler(socket: WebSocket) -> None:
        await socket.accept()
        try:
            await PlaySocket(socket, client.join("0" * 32, "ada"), revalidate, role).run()
        except BaseException as error:
            errors.append(error)
            raise
        finally:
            over.set()

    config = uvicorn.Config(Starlette(routes=[WebSocketRoute("/", handler)]), port=0, lifespan="off",
                            log_level="error", ws="websockets-sansio", ws_max_size=10_000)
    config.load()
    web = uvicorn.Server(config)
    web.lifespan = config.lifespan_class(config)
    await web.startup()
    try:
        port = web.servers[0].sockets[0].getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}/", compression=None) as browser:
            yield Played(browser, game)
        await asyncio.wait_for(over.wait(), 10)
        assert errors == []
    finally:
        await web.shutdown()
        await client.close()
        await server.stop(0)


def sample(metric: Any) -> float:
    """Return the value of a metric without labels."""
    return float(next(iter(metric.collect())).samples[0].value)


async def test_messages_of_the_game_reach_the_browser_in_order() -> None:
    before, sockets = sample(play_socket.FORWARDED), sample(play_socket.SOCKETS)
    async with playing() as played:
        for frame in (b"abc", b"de"):
            played.game.responses.put_nowait(play_pb2.JoinResponse(frame=frame))
        played.game.responses.put_nowait(play_pb2.JoinResponse(ack=play_pb2.Ack(n=3, frame=9, ok=True)))
        assert await played.browser.recv() == b"abc" and await played.browser.recv() == b"de"
        assert await played.read() == {"type": "ack", "n": 3, "frame": 9, "ok": True, "reason": ""}
        assert sample(play_socket.FORWARDED) - before == 5 and sample(play_socket.SOCKETS) - sockets == 1
        played.game.responses.put_nowait(None)
        assert await played.closed() == (1000, "")
    assert sample(play_socket.SOCKETS) == sockets


@pytest.mark.parametrize(("failure", "code", "reason"), [
    (StatusCode.NOT_FOUND, 4004, "over"), (StatusCode.UNAVAILABLE, 1011, "away"), (StatusCode.INTERNAL, 1011, "away")])
async def test_failure_of_the_game_is_told_before_the_end(failure: StatusCode, code: int, reason: str) -> None:
    async with playing() as played:
        played.game.responses.put_nowait(failure)
        assert await played.read() == {"type": "refused", "reason": reason}
        assert (await played.closed())[0] == code


async def test_leave_message_ends_both_connections() -> None:
    async with playing() as played:
        await played.say(STOP)
        await eventually_async(lambda: len(played.game.requests) == 2)
        await played.say(json.dumps({"type": "leave"}))
        assert await played.closed() == (1000, "")
        await asyncio.wait_for(played.game.left.wait(), 10)
        assert [request.WhichOneof("what") for request in played.game.requests] == ["join", "order"]


@pytest.mark.parametrize("abruptly", [False, True])
async def test_browser_that_closes_leaves_the_game(abruptly: bool) -> None:
    async with playing() as played:
        await played.say(STOP)
        await eventually_async(lambda: len(played.game.requests) == 2)
        if abruptly:
            played.browser.transport.abort()
        else:
            await played.browser.close()
        await asyncio.wait_for(played.game.left.wait(), 10)


async def test_unreadable_messages_are_refused_and_counted() -> None:
    before = sample(play_socket.UNREADABLE)
    async with playing() as played:
        for text in ("{", "x" * 4097):
            await played.say(text)
            assert await played.read() == {"type": "refused", "reason": "unreadable"}
        await played.say(STOP)
        await eventually_async(lambda: len(played.game.requests) == 2, what="the message after unreadable ones")
    assert sample(play_socket.UNREADABLE) - before == 2


async def test_message_above_the_servers_size_ends_the_socket() -> None:
    """The server closes the socket itself."""
    async with playing() as played:
        await played.say(STOP)
        await eventually_async(lambda: len(played.game.requests) == 2)
        await played.say("x" * 10_001)
        assert (await played.closed())[0] == 1009
        await asyncio.wait_for(played.game.left.wait(), 10)


async def test_binary_messages_end_the_socket() -> None:
    async with playing() as played:
        await played.say(b"\0")
        assert await played.closed() == (1003, "text messages only")


@pytest.mark.parametrize(("seconds", "allowed"), [(0.0, False), (0.999, False), (1.0, True), (1.5, True)])
async def test_messages_of_each_second_are_limited(monkeypatch: pytest.MonkeyPatch, seconds: float, allowed: bool
                                                   ) -> None:
    clock = SimpleNamespace(now=50.0)
    monkeypatch.setattr(play_socket, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(play_socket, "MAX_MESSAGES_PER_SECOND", 3)
    async with playing() as played:
        for number in range(3):
            await played.say(STOP)
            await eventually_async(lambda number=number: len(played.game.requests) == 2 + number,
                                   what="a message within the limit")
        clock.now += seconds
        for number in range(3):
            await played.say(STOP)
            if not allowed:
                break
            await eventually_async(lambda number=number: len(played.game.requests) == 5 + number,
                                   what="a message of the next second")
        if allowed:
            await played.say(STOP)  # the fourth of its second
        assert await played.closed() == (1008, "too many messages")
        assert len(played.game.requests) == (7 if allowed else 4)


def test_a_person_may_send_240_messages_a_second() -> None:
    assert play_socket.MAX_MESSAGES_PER_SECOND == 240


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.VIEWER])
async def test_revoked_session_ends_the_socket(monkeypatch: pytest.MonkeyPatch, role: Role) -> None:
    monkeypatch.setattr(play_socket, "REVALIDATE_SECONDS", 0.001)
    answers: list[Caller | Exception] = [ADA, OSError("the store is away"), ADA, Problem(401, "revoked")]

    def revalidate() -> Caller:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with playing(revalidate, role) as played:
        assert await played.closed() == (1008, "the session has ended")
        assert answers == []


async def test_a_lower_role_ends_playing_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play_socket, "REVALIDATE_SECONDS", 0.001)
    viewer, checks = Caller("ada", Role.VIEWER, "0" * 64), list[int]()

    def revalidate() -> Caller:
        checks.append(1)
        return viewer

    async with playing(revalidate) as played:
        assert await played.closed() == (4003, "ada is a viewer now: viewers may spectate only")
    checks.clear()
    async with playing(revalidate, Role.VIEWER) as played:
        await eventually_async(lambda: len(checks) > 2)
        played.game.responses.put_nowait(play_pb2.JoinResponse(frame=b"a"))
        assert await played.browser.recv() == b"a", "a viewer no longer spectates"


def order(**values: Any) -> dict[str, Any]:
    return {"type": "order", "n": 7, "kind": "move", **values}


@pytest.mark.parametrize("message", [
    order(n=0), order(n=9007199254740991), order(kind="k" * 32), order(kind=""), order(hero=0), order(hero=9),
    order(target=[0, 65535]), order(at=[65535, 0]), order(slot=-1), order(slot=63), order(to=-1), order(to=63),
    order(item="i" * 64), order(queue=True), {"type": "ping", "at": [1, 2]}, {"type": "hand", "held": False},
    {"type": "hand", "held": True, "hero": 9}, {"type": "leave"}])
def test_messages_at_the_limits_are_read(message: dict[str, Any]) -> None:
    request = parse_message(json.dumps(message))
    assert (request is None) is (message["type"] == "leave")


@pytest.mark.parametrize("message", [
    order(n=-1), order(n=9007199254740992), order(kind="k" * 33), order(hero=-1), order(hero=10),
    order(target=[0, 65536]), order(target=[-1, 0]), order(target=[1]), order(at=[65536, 0]), order(at=[0, -1]),
    order(slot=-2), order(slot=64), order(to=-2), order(to=64), order(item="i" * 65), order(speed=1),
    {"type": "order", "kind": "move"}, {"type": "order", "n": 1}, {"type": "ping"}, {"type": "ping", "at": [1, 70000]},
    {"type": "hand"}, {"type": "hand", "held": True, "hero": 10}, {"type": "hand", "held": True, "hero": -1},
    {"type": "leave", "now": 1}, {"type": "join"}, {}, []])
def test_messages_beyond_the_limits_are_unreadable(message: Any) -> None:
    with pytest.raises(ValueError):
        parse_message(json.dumps(message))


def test_a_message_has_at_most_4096_characters() -> None:
    text = json.dumps(order(item="a"))
    assert parse_message(text + " " * (4096 - len(text))) is not None
    with pytest.raises(ValueError, match="4097 characters"):
        parse_message(text + " " * (4097 - len(text)))


def test_a_command_keeps_every_value() -> None:
    request = parse_message(json.dumps(order(hero=2, target=[300, 4], at=[5, 6], slot=3, to=4, item="tango",
                                             queue=True)))
    assert request is not None
    assert request == play_pb2.JoinRequest(order=play_pb2.Order(
        n=7, kind="move", hero=2, target=play_pb2.Target(slot=300, generation=4), at=play_pb2.MapPoint(x=5, y=6),
        slot=3, to=4, item="tango", queue=True))
    bare = parse_message(json.dumps(order()))
    assert bare == play_pb2.JoinRequest(order=play_pb2.Order(n=7, kind="move", slot=-1, to=-1))
    assert bare is not None and not bare.order.HasField("hero") and not bare.order.HasField("at")
    assert parse_message('{"type": "ping", "at": [1, 2]}') == play_pb2.JoinRequest(
        ping=play_pb2.MapPing(at=play_pb2.MapPoint(x=1, y=2)))
    hand = parse_message('{"type": "hand", "held": true, "hero": 3}')
    assert hand == play_pb2.JoinRequest(hand=play_pb2.HeroControl(hero=3, held=True))


def test_responses_become_json() -> None:
    seats = [play_pb2.Seat(hero=0, name="sniper", team=0, who="ada", held=True), play_pb2.Seat(hero=5, team=1)]
    state = play_pb2.GameState(game="g", opened_by="ada", opened_at=5.5, players=["a", "b"], time=61.456,
                               engine_frame=45, running=True, winner=2, version=-1, late=3, late_frames=4,
                               delay_ms=12.345, watching=6, seats=seats)
    assert response_json(play_pb2.JoinResponse(state=state)) == {
        "type": "state", "game": "g", "opened_by": "ada", "opened_at": 5.5, "players": ["a", "b"], "time": 61.46,
        "frame": 45, "running": True, "winner": 2, "version": -1, "late": 3, "late_frames": 4, "delay_ms": 12.3,
        "watching": 6, "seats": [{"hero": 0, "name": "sniper", "team": 0, "who": "ada", "held": True},
                                 {"hero": 5, "name": "", "team": 1, "who": None, "held": False}]}
    others: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"ping": play_pb2.Ping(who="ada", at=play_pb2.MapPoint(x=1, y=2))},
         {"type": "ping", "who": "ada", "at": [1, 2]}),
        ({"refused": play_pb2.Refused(reason="rate")}, {"type": "refused", "reason": "rate"}),
        ({"end": play_pb2.End(winner=3, reason="drained", recorded=True)},
         {"type": "end", "winner": 3, "reason": "drained", "rating": None, "recorded": True}),
        ({"end": play_pb2.End(winner=1, rating=play_pb2.Rating(mu=2.5, sigma=0.5))},
         {"type": "end", "winner": 1, "reason": "", "rating": {"mu": 2.5, "sigma": 0.5}, "recorded": False})]
    for response, expected in others:
        assert response_json(play_pb2.JoinResponse(**response)) == expected

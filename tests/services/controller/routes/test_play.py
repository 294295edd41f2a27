"""Routes of people's games on a play service of the test: requests, responses and the service's refusals."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import redis
from websockets.asyncio.client import connect

from five.clients.play import PlayClient
from five.protos.v1 import play_pb2, play_pb2_grpc
from rapid.rpc.errors import StatusCode
from rapid.rpc.server import serve
from tests.services.controller.routes.conftest import Api
from tests.services.inference_server import RPC
from tests.services.live_controller import OPERATOR, RUN, VIEWER, LiveController, bearer, live, problem

GAME, OTHER = "5e1f0c0d" * 4, "0" * 32


class PlayService(play_pb2_grpc.PlayServiceServicer):
    """Play service that records requests and answers with ``responses``, or fails with ``failure``."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.responses: dict[str, Any] = {}
        self.failure: StatusCode | None = None

    async def _answer(self, name: str, request: Any, context: Any) -> Any:
        self.requests.append(request)
        if self.failure is not None:
            await context.abort(self.failure, "refused by the test")
        return self.responses[name]

    async def Offer(self, request: Any, context: Any) -> Any:
        return await self._answer("Offer", request, context)

    async def Open(self, request: Any, context: Any) -> Any:
        return await self._answer("Open", request, context)

    async def List(self, request: Any, context: Any) -> Any:
        return await self._answer("List", request, context)

    async def Close(self, request: Any, context: Any) -> Any:
        return await self._answer("Close", request, context)

    async def Recordings(self, request: Any, context: Any) -> Any:
        return await self._answer("Recordings", request, context)

    async def Recording(self, request: Any, context: Any) -> Any:
        return await self._answer("Recording", request, context)

    async def Join(self, request_iterator: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        self.requests.append(await anext(request_iterator))
        yield play_pb2.JoinResponse(refused=play_pb2.Refused(reason="test"))


class Served:
    """The play service and a controller that uses it."""

    def __init__(self, service: PlayService, rest: LiveController) -> None:
        self.service = service
        self.rest = rest

    async def ask(self, method: str, path: str, token: str = OPERATOR, **given: Any) -> httpx.Response:
        return await asyncio.to_thread(self.rest.ask, method, path, token, **given)


@pytest.fixture
async def served(redis_client: redis.Redis, redis_url: str) -> AsyncIterator[Served]:
    service = PlayService()
    server = await serve("127.0.0.1:0", [(play_pb2_grpc.add_PlayServiceServicer_to_server, service)], RPC)
    found = live(redis_url, play=_once(lambda: PlayClient(f"127.0.0.1:{server.port}", RPC, RUN)))
    rest = await asyncio.to_thread(found.__enter__)
    try:
        yield Served(service, rest)
    finally:
        await asyncio.to_thread(found.__exit__, None, None, None)
        await server.stop(0)


def _once(make: Any) -> Any:
    made: list[PlayClient] = []

    def client() -> PlayClient:  # in the controller's own loop
        made[:] = made or [make()]
        return made[0]
    return client


def state(game: str, *owners: str) -> play_pb2.GameState:
    """Return a game with one seat for each owner; '' is the agent."""
    seats = [play_pb2.Seat(hero=hero, name="sniper", who=who) for hero, who in enumerate(owners)]
    return play_pb2.GameState(game=game, opened_by="ada", players=["a", "b"], version=120, seats=seats)


def test_a_run_without_a_play_service_says_so(api: Api) -> None:
    offer = api.ask("GET", "/v1/play", VIEWER).json()
    assert offer["server"] is False and "services.play.enabled" in offer["why"] and offer["games"] == []
    for method, path in (("GET", "/v1/play/games"), ("POST", "/v1/play/games"), ("GET", f"/v1/play/games/{GAME}"),
                         ("DELETE", f"/v1/play/games/{GAME}"), ("GET", "/v1/play/recordings"),
                         ("GET", f"/v1/play/recordings/{GAME}")):
        answer = api.ask(method, path, json={} if method == "POST" else None)
        assert "services.play.enabled" in problem(answer, 409, "conflict")["detail"], path


def test_people_are_listed_by_rating_then_name(api: Api) -> None:
    for name, mu in (("cleo", 20.0), ("bob", 27.5), ("ada", 20.0)):
        api.context.state.table("people").set(name, {
            "name": name, "mu": mu, "sigma": 7.0, "won": 1, "lost": 2, "drawn": 3, "abandoned": 4, "last_at": 5.0})
    found = api.ask("GET", "/v1/play/ratings", VIEWER).json()["ratings"]
    assert [(row["name"], row["mu"]) for row in found] == [("bob", 27.5), ("ada", 20.0), ("cleo", 20.0)]
    assert {name: found[0][name] for name in ("won", "lost", "drawn", "abandoned")} == {
        "won": 1, "lost": 2, "drawn": 3, "abandoned": 4}


async def test_failures_of_the_service_become_problems(served: Served) -> None:
    for failure, status, kind, retry in (
            (StatusCode.NOT_FOUND, 404, "not-found", None), (StatusCode.INVALID_ARGUMENT, 422, "invalid", None),
            (StatusCode.FAILED_PRECONDITION, 409, "conflict", None),
            (StatusCode.RESOURCE_EXHAUSTED, 429, "too-many-requests", "30"),
            (StatusCode.UNIMPLEMENTED, 503, "unavailable", "2")):
        served.service.failure = failure
        answer = await served.ask("DELETE", f"/v1/play/games/{GAME}")
        document = problem(answer, status, kind)
        assert "refused by the test" in document["detail"] and answer.headers.get("retry-after") == retry, failure
        assert document.get("errors") == ([{"where": "body", "what": "refused by the test"}] if status == 422 else None)
    offer = (await served.ask("GET", "/v1/play", VIEWER)).json()
    assert offer["server"] is False and "refused by the test" in offer["why"]


async def test_games_are_offered_opened_read_and_ended(served: Served) -> None:
    service = served.service
    service.responses = {
        "Offer": play_pb2.OfferResponse(hero_pool=["sniper"], heroes_per_team=5, mode="5v5", patch="7.21d",
                                        versions=[120, 100], bots=["random"], games=3, refused="full",
                                        spectator_delay_seconds=120.0),
        "List": play_pb2.ListGamesResponse(games=[state(OTHER, ""), state(GAME, "ada", "")]),
        "Open": play_pb2.OpenResponse(game=GAME, state=state(GAME, "", "ada", "bob", "ada")),
        "Close": play_pb2.CloseResponse()}
    offer = (await served.ask("GET", "/v1/play", VIEWER)).json()
    games = offer.pop("games")
    assert offer == {"server": True, "why": "full", "mode": "5v5", "patch": "7.21d", "heroes_per_team": 5,
                     "heroes": ["sniper"], "versions": [120, 100], "bots": ["random"], "games_at_once": 3,
                     "spectator_delay_seconds": 120.0}
    assert games == (await served.ask("GET", "/v1/play/games", VIEWER)).json()["games"]
    assert [game["game"] for game in games] == [OTHER, GAME]
    assert (await served.ask("GET", f"/v1/play/games/{GAME}", VIEWER)).json() == games[1]
    problem(await served.ask("GET", f"/v1/play/games/{'1' * 32}", VIEWER), 404, "not-found")

    wish = {"team": 1, "heroes": [0, 3], "lineup": [["axe"], ["lion"]], "with": "scripted", "against": "7", "seed": 5}
    answer = await served.ask("POST", "/v1/play/games", json=wish)
    assert answer.status_code == 201 and answer.headers["location"] == f"/v1/play/games/{GAME}"
    assert service.requests[-1] == play_pb2.OpenRequest(
        run=RUN, who="ada", team=1, heroes=[0, 3], mates="scripted", against="7", seed=5,
        lineup=[play_pb2.Team(heroes=["axe"]), play_pb2.Team(heroes=["lion"])])
    opened = answer.json()
    assert opened["game"] == GAME and [seat["hero"] for seat in opened["seats"]] == [1, 3]
    assert opened["seat"] == opened["seats"][0]

    assert (await served.ask("DELETE", f"/v1/play/games/{GAME}")).json() == {"game": GAME}
    assert service.requests[-1] == play_pb2.CloseRequest(run=RUN, game=GAME, who="ada")


async def test_recordings_are_listed_and_sent(served: Served) -> None:
    recorded = play_pb2.RecordedGame(game=GAME, size=9, players=["ada", "v"], people=["ada"], seconds=61.26, at=5.5,
                                     winner=2, kills=[1, 2])
    served.service.responses = {"Recordings": play_pb2.RecordingsResponse(recordings=[recorded]),
                                "Recording": play_pb2.RecordingResponse(data=b"recording", size=9)}
    assert (await served.ask("GET", "/v1/play/recordings", VIEWER)).json()["recordings"] == [{
        "game": GAME, "bytes": 9, "players": ["ada", "v"], "people": ["ada"], "seconds": 61.3, "at": 5.5, "winner": 2,
        "kills": [1, 2]}]
    answer = await served.ask("GET", f"/v1/play/recordings/{GAME}", VIEWER)
    assert answer.content == b"recording" and answer.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize(("token", "query", "join"), [
    (OPERATOR, "?hero=0&hero=9&hero=10&hero=-1", {"who": "ada", "heroes": [0, 9]}), (OPERATOR, "", {"who": "ada"}),
    (VIEWER, "?spectate=1", {"who": "vera", "spectate": True})])
async def test_socket_joins_with_the_requested_heroes(served: Served, token: str, query: str, join: dict[str, Any]
                                                      ) -> None:
    async with connect(f"ws://127.0.0.1:{served.rest.port}/v1/play/games/{GAME}/socket{query}", compression=None,
                       additional_headers=bearer(token)) as socket:
        assert json.loads(await asyncio.wait_for(socket.recv(), 10)) == {"type": "refused", "reason": "test"}
    assert served.service.requests == [play_pb2.JoinRequest(join=play_pb2.Join(run=RUN, game=GAME, **join))]

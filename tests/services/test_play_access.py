"""Permissions to open, join, watch and end people's games, with a token or a browser's session."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
import redis
from websockets.exceptions import ConnectionClosed, InvalidStatus

from dota.vec_game import Controller
from five.run.config.controller import LimitsConfig
from five.services.controller.games import play_socket
from five.services.controller.http.tokens import FixedTokens
from tests.services.live_controller import OPERATOR, RUN, VIEWER, problem
from tests.services.play_server import VERSION, Browser, Played, playing
from tests.waiting import eventually_async


def log_in(there: Played) -> str:
    """Return the cookie of a logged-in browser."""
    code = there.rest.ask("POST", "/v1/session/links", json={}).json()["code"]
    own = {"Origin": there.rest.url, "Sec-Fetch-Site": "same-origin", "X-Five-Console": "test"}
    with httpx.Client(base_url=there.rest.url) as client:
        assert client.post("/v1/session", json={"code": code}, headers=own).status_code == 200
        return f"five-{RUN}={client.cookies[f'five-{RUN}']}"


async def test_unauthorized_player_gets_no_socket(redis_client: redis.Redis, redis_url: str) -> None:
    async with playing(redis_url, limits=LimitsConfig(players=1)) as there:
        game = await there.open(team=0, heroes=[0])

        async def refused(token: str, query: str = "", **headers: str) -> None:
            with pytest.raises(InvalidStatus) as answer:
                async with there.socket(game, token, query, **headers):
                    pass
            assert answer.value.response.status_code == 403

        await refused(VIEWER)
        await refused("")
        await refused("forged", "?spectate=1")
        cookie = await asyncio.to_thread(log_in, there)
        own = f"http://127.0.0.1:{there.rest.port}"
        await refused("", Cookie=cookie, Origin="https://elsewhere.example")
        await refused("", Cookie=cookie)  # a page always names its origin
        async with there.socket(game, "", Cookie=cookie, Origin=own) as socket:
            assert (await Browser(socket).word("state"))["seats"][0]["held"]
            await refused(OPERATOR)  # the limit of players is reached
        assert there.service.matches[game].winner == 0


async def test_spectators_leave_places_to_players(redis_client: redis.Redis, redis_url: str) -> None:
    async with playing(redis_url, limits=LimitsConfig(players=2, spectators=8)) as there, AsyncExitStack() as held:
        game = await there.open(team=0, heroes=[0])
        watching = 0
        for _ in range(5):
            try:
                await held.enter_async_context(there.socket(game, VIEWER, "?spectate=1"))
                watching += 1
            except InvalidStatus as refusal:
                assert refusal.response.status_code == 403
        assert watching == 2, "a quarter of the spectators"
        for query in ("?spectate=1", ""):
            async with there.socket(game, OPERATOR, query) as socket:
                await Browser(socket).word("state")


async def test_full_game_still_admits_its_player(redis_client: redis.Redis, redis_url: str) -> None:
    async with playing(redis_url, max_connections=2) as there, AsyncExitStack() as held:
        game = await there.open(team=0, heroes=[0])
        for _ in range(3):
            await held.enter_async_context(there.socket(game, VIEWER, "?spectate=1"))
        async with there.socket(game) as socket:
            assert (await Browser(socket).word("state"))["seats"][0]["held"]


async def test_a_demoted_player_is_disconnected(redis_client: redis.Redis, redis_url: str,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play_socket, "REVALIDATE_SECONDS", 0.1)
    async with playing(redis_url) as there:
        game = await there.open(team=0, heroes=[0])
        cookie = await asyncio.to_thread(log_in, there)
        own = {"Cookie": cookie, "Origin": there.rest.url}
        async with there.socket(game) as playing_by_token, there.socket(game, query="?spectate=1") as watching:
            await Browser(playing_by_token).word("state")
            there.rest.context.authenticator._tokens = FixedTokens.of(ada=("viewer", OPERATOR))
            with pytest.raises(ConnectionClosed) as closed:
                while True:
                    await playing_by_token.recv()
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 4003
            assert closed.value.rcvd.reason == "ada is a viewer now: viewers may spectate only"
            assert not (await Browser(watching).word("state", watching=1))["seats"][0]["held"]
            with pytest.raises(InvalidStatus):
                async with there.socket(game, "", **own):
                    pass
            there.rest.context.authenticator._tokens = FixedTokens.of(ada=("operator", OPERATOR))
            async with there.socket(game, "", **own) as playing_by_cookie:
                await Browser(playing_by_cookie).word("state")
                there.rest.context.authenticator._tokens = FixedTokens.of(ada=("viewer", OPERATOR))
                with pytest.raises(ConnectionClosed) as closed:
                    while True:
                        await playing_by_cookie.recv()
                assert closed.value.rcvd is not None and closed.value.rcvd.code == 4003


async def test_rest_opens_lists_and_ends_games_by_role(redis_client: redis.Redis, redis_url: str) -> None:
    async with playing(redis_url) as there:
        offer = (await there.ask("GET", "/v1/play", VIEWER)).json()
        assert offer["server"] and offer["why"] == "" and offer["heroes"] == ["nevermore"]
        assert offer["versions"] == [VERSION] and "scripted-hard" in offer["bots"] and offer["games"] == []
        wish: dict[str, Any] = {"team": 1, "heroes": [0], "against": "scripted"}
        problem(await there.ask("POST", "/v1/play/games", VIEWER, json=wish), 403, "forbidden")
        cookie = await asyncio.to_thread(log_in, there)
        forged = {"Cookie": cookie, "Origin": "https://elsewhere.example", "X-Five-Console": "1"}
        problem(await there.ask("POST", "/v1/play/games", "", json=wish, headers=forged), 403, "cross-origin")
        unmarked = {"Cookie": cookie, "Origin": there.rest.url}
        problem(await there.ask("POST", "/v1/play/games", "", json=wish, headers=unmarked), 403, "cross-origin")
        for wrong in ({"heroes": [1]}, {"heroes": []}, {"lineup": [["axe"], ["nobody"]]}, {"against": "ada"}):
            problem(await there.ask("POST", "/v1/play/games", json={**wish, **wrong}), 422, "invalid")
        game = await there.open(**wish)
        found = (await there.ask("GET", f"/v1/play/games/{game}", VIEWER)).json()
        assert found["seats"][1] == {"hero": 5, "name": "nevermore", "team": 1, "who": "ada", "held": False}
        assert found["players"] == ["scripted", f"version-{VERSION}"]
        assert there.service.matches[game].game.controllers.tolist() == [int(Controller.SCRIPTED), 0]
        problem(await there.ask("POST", "/v1/play/games", json=wish), 429, "too-many-requests")
        assert [g["game"] for g in (await there.ask("GET", "/v1/play/games", VIEWER)).json()["games"]] == [game]
        problem(await there.ask("DELETE", f"/v1/play/games/{game}", VIEWER), 403, "forbidden")
        assert (await there.ask("DELETE", f"/v1/play/games/{game}")).status_code == 200
        await eventually_async(lambda: game not in there.service.matches)
        problem(await there.ask("DELETE", f"/v1/play/games/{game}"), 404, "not-found")

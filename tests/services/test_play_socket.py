"""A person in a game over the controller's WebSocket: orders, responses, and hidden information."""

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis
from websockets.exceptions import ConnectionClosed

from dota.spectator.recording import Recording
from five.services.play import hosted_game
from five.services.play.clock import FRAME_SECONDS
from five.services.play.orders import RateLimit
from five.services.play.ratings import FinishedGame, Person
from five.services.play.views import View
from tests.services.live_controller import RUN, VIEWER, problem
from tests.services.play_server import SHORT, VERSION, Browser, playing
from tests.waiting import eventually_async

ENEMY, SEEN, ALIVE = 1 << 4, 1 << 7, 1 << 6  # bits of a unit's look: Dire's, seen by Radiant


def mine(browser: Browser) -> dict[str, int]:
    """Return the person's hero in its own view."""
    assert browser.schema is not None
    slot = int(browser.frame["hero"][0, browser.schema.table("hero").column("unit")]) - 1
    return next(unit for unit in browser.units("x", "y", "generation") if unit["slot"] == slot)


async def test_orders_are_acknowledged_with_their_frames(redis_client: redis.Redis,
                                                         redis_url: str) -> None:
    async with playing(redis_url) as there:
        game = await there.open(team=0, heroes=[0])
        async with there.socket(game) as socket:
            browser = Browser(socket)
            state = await browser.word("state")
            assert state["seats"][0] == {"hero": 0, "name": "nevermore", "team": 0, "who": "ada", "held": True}
            assert state["version"] == VERSION and state["running"]
            await browser.play(2)
            assert (browser.header["team"], browser.header["hero"]) == (0, 0) and "seed" not in browser.header["about"]
            before = mine(browser)
            await browser.order("move", at=[min(before["x"] + 3000, 65535), min(before["y"] + 3000, 65535)])
            given_at = browser.engine_frame
            ack = await browser.word("ack", n=1)
            assert ack["ok"] and ack["reason"] == "" and ack["frame"] > given_at
            # The acknowledgement precedes the frame in which the order took effect.
            assert ack["frame"] >= browser.engine_frame
            await browser.play(30)
            after = mine(browser)
            assert after["x"] - before["x"] > 300 and after["y"] - before["y"] > 300
            await browser.order("attack", target=[before["slot"], before["generation"] + 1])
            refused = await browser.word("ack", n=2)
            assert not refused["ok"] and refused["reason"]
            orders: list[tuple[dict[str, Any], str]] = [
                ({"kind": "dance"}, "unknown"), ({"kind": "move"}, ""), ({"kind": "stop", "hero": 5}, "hero")]
            for order, word in orders:
                n = await browser.order(**order)
                ack = await browser.word("ack", n=n)
                assert not ack["ok"] and (not word or ack["reason"] == word), ack
            await socket.send(json.dumps({"type": "order", "n": 3, "kind": "stop"}))
            assert (await browser.word("ack", n=3))["reason"] == "number"
            assert browser.keyframes == 1


async def test_disconnect_gives_the_hero_to_the_agent(redis_client: redis.Redis, redis_url: str) -> None:
    async with playing(redis_url) as there:
        game = await there.open(team=0, heroes=[0])
        match = there.service.matches[game]
        assert match.seats.held() == set()  # until she joins
        async with there.socket(game) as socket:
            await Browser(socket).word("state")
            assert match.seats.held() == {0}
            socket.transport.abort()
        await eventually_async(lambda: match.seats.held() == set())
        asked, at = match.agents._steps, match.game.engine_frame
        # The agent plays on.
        await eventually_async(lambda: match.game.engine_frame > at and match.agents._steps > asked)
        async with there.socket(game) as socket:
            browser = Browser(socket)
            assert (await browser.word("state"))["seats"][0]["held"]
            await browser.play(3)
            assert browser.engine_frame > at
            await browser.say("hand", held=False)
            assert not (await browser.word("state"))["seats"][0]["held"]
            n = await browser.order("stop")
            assert (await browser.word("ack", n=n))["reason"] == "agent"
            await browser.say("hand", held=True)
            assert (await browser.word("state"))["seats"][0]["held"]
            # A person's newest connection replaces the older one.
            async with there.socket(game) as second:
                await Browser(second).word("state")
                assert (await browser.word("refused"))["reason"] == "elsewhere"
                assert match.seats.held() == {0}
        # One state covers the whole game, also while people hold the hero: the policy acts once a timestep.
        assert match.agents._steps >= match._timestep - match.agents.late - 1


async def test_players_never_receive_unseen_enemies(redis_client: redis.Redis, redis_url: str
                                                                      ) -> None:
    async with playing(redis_url) as there:
        game = await there.open(team=0, heroes=[0], **{"with": "scripted", "against": "scripted-hard"})
        match = there.service.matches[game]
        truth = View(None)
        look = truth.schema.table("unit").column("look")
        hidden = compared = 0
        async with there.socket(game) as socket:
            browser = Browser(socket)
            await browser.word("state")
            await browser.play(1)
            while browser.frames < 60 or (browser.frames < 600 and (compared <= 10 or hidden <= 50)):
                await browser.play(1)
                for unit in browser.units("look"):
                    assert not unit["look"] & ENEMY or unit["look"] & SEEN, unit
                if match.game.engine_frame == browser.engine_frame:
                    compared += 1
                    match.game.write_seen(None, truth.frame)
                    there_are = truth.frame["unit"][:, look]
                    enemies = there_are & (3 << 4) == ENEMY
                    unseen = np.flatnonzero(enemies & (there_are & SEEN == 0))
                    hidden += len(unseen)
                    assert not browser.frame["unit"][unseen].any()
        assert compared > 10 and hidden > 50, "there was nothing to hide"


async def test_spectators_see_the_delayed_game_and_cannot_order(redis_client: redis.Redis, redis_url: str,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    async with playing(redis_url, spectator_delay_seconds=1.0) as there:
        game = await there.open(team=0, heroes=[0])
        match = there.service.matches[game]
        add, added = match.broadcast.add, dict[int, float]()  # times of the timesteps by their engine frames

        def note_time(view: View, now: float) -> None:
            added[view.engine_frame] = now
            add(view, now)

        monkeypatch.setattr(match.broadcast, "add", note_time)
        async with there.socket(game) as playing_socket, there.socket(game, VIEWER, "?spectate=1") as socket:
            player = Browser(playing_socket)
            await player.word("state")
            reading = asyncio.create_task(player.play(500))
            browser = Browser(socket)
            state = await browser.word("state")
            assert (state["time"], state["frame"]) == (0.0, 0)  # not the present score
            await browser.play(6)
            while browser.engine_frame not in added:  # begun before the times were noted
                await browser.play(1)
            assert time.monotonic() - added[browser.engine_frame] >= 1.0
            assert browser.header["team"] is None
            assert any(unit["look"] & ENEMY and not unit["look"] & SEEN for unit in browser.units("look"))
            n = await browser.order("stop")
            assert (await browser.word("ack", n=n))["reason"] == "spectator"
            reading.cancel()


async def test_finished_game_rates_its_person_once(redis_client: redis.Redis, redis_url: str
                                                                      ) -> None:
    async with playing(redis_url, SHORT) as there:
        game = await there.open(team=0, heroes=[0])
        async with there.socket(game) as socket:
            browser = Browser(socket)
            end = await browser.word("end")
            assert end["winner"] == 3 and end["reason"] == "" and end["rating"]["sigma"] < 25 / 3
            with pytest.raises(ConnectionClosed):
                await browser.read()
        answer = (await there.ask("GET", "/v1/play/ratings", VIEWER)).json()["ratings"]
        assert [(row["name"], row["drawn"], row["abandoned"]) for row in answer] == [("ada", 1, 0)]
        assert answer[0]["mu"] == end["rating"]["mu"]
        problem(await there.ask("GET", f"/v1/play/games/{game}"), 404, "not-found")
        assert redis_client.exists(f"five:{RUN}:table:ratings") == 0  # no version's rating was touched
        async with there.socket(game) as socket:  # over: the page need not try again
            assert (await Browser(socket).word("refused"))["reason"] == "over"
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 4004


async def test_closing_a_finished_game_keeps_its_result(redis_client: redis.Redis, redis_url: str) -> None:
    """The store that rates it is slow."""
    async with playing(redis_url, SHORT) as there:
        rating, goes_on = threading.Event(), threading.Event()

        def rate_slowly(played: FinishedGame) -> dict[str, Person]:
            rating.set()
            goes_on.wait(30)
            return there.people.rate(played)

        there.service.rate = rate_slowly
        game = await there.open(team=0, heroes=[0])
        async with there.socket(game) as socket:
            await eventually_async(rating.is_set)
            there.service.matches[game].end("closed")
            goes_on.set()
            end = await Browser(socket).word("end")
        assert (end["winner"], end["reason"]) == (3, "") and end["rating"] is not None


async def test_viewers_can_replay_played_games(redis_client: redis.Redis, redis_url: str
                                                                        ) -> None:
    async with playing(redis_url, SHORT) as there:
        problem(await there.ask("GET", f"/v1/play/recordings/{'0' * 32}"), 404, "not-found")
        game = await there.open(team=0, heroes=[0])
        assert (await there.ask("GET", "/v1/play/recordings", VIEWER)).json() == {"recordings": []}
        async with there.socket(game) as socket, there.socket(game, VIEWER, "?spectate=1"):
            browser, acks = Browser(socket), list[int]()
            await browser.word("state")
            for slot in range(3):
                n = await browser.order("sell", slot=slot)
                await browser.word("ack", n=n)
            for _ in range(6):
                n = await browser.order("buy", item="item_branches")
                ack = await browser.word("ack", n=n)
                acks += [ack["frame"]] if ack["ok"] else []
            assert len({frame % 4 for frame in acks}) > 1  # in any frame of a timestep
            assert (await browser.word("end"))["recorded"]
        (entry,) = (await there.ask("GET", "/v1/play/recordings", VIEWER)).json()["recordings"]
        assert entry["game"] == game and entry["people"] == ["ada"]
        assert entry["players"] == ["ada", f"version-{VERSION}"]
        assert entry["winner"] == 3 and entry["seconds"] == pytest.approx(3.0, abs=0.2)
        answer = await there.ask("GET", f"/v1/play/recordings/{game}", VIEWER)
        assert answer.headers["x-content-type-options"] == "nosniff" and len(answer.content) == entry["bytes"]
        found = Recording(answer.content)
        steps = list(found.steps())
        clock = found.schema.table("clock")
        frames = [int(step.frame["clock"][0, clock.column("frame")]) for step in steps]
        # Every timestep from the first on, and all that happened in any of its frames.
        assert frames[:-1] == list(range(0, 4 * len(frames) - 4, 4)) and frames[-1] >= frames[-2]
        assert frames[-1] * FRAME_SECONDS == pytest.approx(3.0, abs=0.2)
        events = found.index()["events"]
        bought = [event for event in events if event["kind"] == "item" and event["item"] == "item_branches"
                  and event["hero"] == 0 and event["time"] > events[0]["time"]]
        assert len(bought) == len(acks)
        assert events[-1]["kind"] == "end"
        problem(await there.ask("GET", f"/v1/play/recordings/{'0' * 32}"), 404, "not-found")
        assert (await there.ask("GET", f"/v1/play/recordings/{game}", "")).status_code == 401


async def test_game_ended_by_a_restart_has_a_recording(
        redis_client: redis.Redis, redis_url: str, tmp_path: Path) -> None:
    async with playing(redis_url, folder=tmp_path / "played") as there:
        game = await there.open(team=0, heroes=[0])
        async with there.socket(game) as socket:
            browser = Browser(socket)
            await browser.play(30)
            draining = asyncio.create_task(there.service.drain())
            end = await browser.word("end")
            assert (end["reason"], end["recorded"]) == ("drained", True)
            await draining
    async with playing(redis_url, folder=tmp_path / "played") as there:
        (entry,) = (await there.ask("GET", "/v1/play/recordings", VIEWER)).json()["recordings"]
        assert (entry["game"], entry["people"], entry["winner"]) == (game, ["ada"], 0)
        answer = await there.ask("GET", f"/v1/play/recordings/{game}", VIEWER)
        assert len(answer.content) == entry["bytes"] and len(list(Recording(answer.content).steps())) > 7


async def test_empty_and_unrecorded_games_have_no_recording(
        redis_client: redis.Redis, redis_url: str) -> None:
    async with playing(redis_url, SHORT, abandon_seconds=0.3) as there:
        game = await there.open(team=0, heroes=[0])
        await there.service.matches[game].ended.wait()
        assert there.service.recordings.all() == []
    async with playing(redis_url, SHORT.model_copy(update={"max_game_seconds": 0.5}), recordings=0) as there:
        game = await there.open(team=0, heroes=[0])
        async with there.socket(game) as socket:
            assert not (await Browser(socket).word("end"))["recorded"]
        assert there.service.recordings.all() == []


async def test_abandoned_game_ends_without_a_rating(redis_client: redis.Redis, redis_url: str) -> None:
    async with playing(redis_url, abandon_seconds=0.3) as there:
        game = await there.open(team=1, heroes=[0])
        await there.service.matches[game].ended.wait()
        answer = (await there.ask("GET", "/v1/play/ratings")).json()["ratings"]
        assert [(row["name"], row["abandoned"], row["mu"]) for row in answer] == [("ada", 1, 25.0)]


async def test_order_rate_and_message_size_are_limited(redis_client: redis.Redis, redis_url: str,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(hosted_game, "RateLimit", lambda rate: RateLimit(rate, lambda: now[0]))
    async with playing(redis_url, orders_per_second=10) as there:
        game = await there.open(team=0, heroes=[0])
        async with there.socket(game) as socket:
            browser = Browser(socket)
            await browser.word("state")
            for _ in range(40):
                await browser.order("stop")
            acks: dict[int, str] = {}  # refusals arrive at once, before acknowledgements that wait for a frame
            while len(acks) < 40:
                said = await browser.read()
                if said is not None and said["type"] == "ack":
                    acks[said["n"]] = said["reason"]
            assert [acks[n] for n in range(1, 11)] == [""] * 10
            assert sum(reason == "rate" for reason in acks.values()) >= 25
            for nonsense in ("{", "[]", '{"type": "order"}', '{"type": "order", "n": -1, "kind": "stop"}',
                             json.dumps({"type": "order", "n": 99, "kind": "move", "at": [float("nan"), 1]}),
                             json.dumps({"type": "order", "n": 99, "kind": "move", "at": [70000, 1]})):
                now[0] += 100.0
                await socket.send(nonsense)
                assert (await browser.word("refused"))["reason"] == "unreadable"
            await browser.play(2)  # the game goes on
            await socket.send("x" * 100_000)
            with pytest.raises(ConnectionClosed):
                while True:
                    await browser.read()


def test_play_service_has_no_optimizer_address() -> None:
    """People's games are never trained on: the service has no client for it."""
    import ast
    import pathlib

    imported: set[str] = set()
    for path in pathlib.Path("services/play").glob("*.py"):
        text = path.read_text()
        assert "ExperienceClient" not in text and "services.optimizer" not in text, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module)
    assert "five.clients.inference" in imported
    assert not {m for m in imported if "experience" in m or "optimizer" in m or "rollout" in m}

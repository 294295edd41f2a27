"""The page on which one plays against the real play service, its agents at a real inference server."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue

import pytest
import redis
from playwright.sync_api import expect

from five.services.controller.console.pages import Site
from tests.console.browser import Watched, chromium
from tests.console.test_play import FIELD, data, until
from tests.services.conftest import redis_client, redis_url
from tests.services.live_controller import OPERATOR, VIEWER, LiveController
from tests.services.play_server import Played, playing

__all__ = ["redis_client", "redis_url"]
pytestmark = [pytest.mark.browser, pytest.mark.timeout(300),
              pytest.mark.skipif(not Site().build, reason="the console is not built: make console")]


@contextmanager
def served(url: str) -> Iterator[LiveController]:
    """Everything that people play by, in a loop of its own."""
    found: Queue[Played | BaseException] = Queue()
    loop, over = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        try:
            async with playing(url) as played:
                found.put(played)
                await over.wait()
        except BaseException as error:
            found.put(error)
            raise

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    played = found.get(timeout=60)
    if isinstance(played, BaseException):
        raise played
    try:
        yield played.rest
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(30)
        assert not thread.is_alive()


def test_a_game_with_agents_is_opened_played_left_by_reload_and_gone_on_with(
        redis_client: redis.Redis, redis_url: str) -> None:
    with served(redis_url) as rest, chromium() as browser:
        watched = Watched(browser, rest.url, viewport={"width": 1280, "height": 800})
        page = watched.log_in(rest, OPERATOR)
        watched.visit("/play")
        page.get_by_role("button", name="Play", exact=True).click()
        page.wait_for_function(f"() => Number(document.querySelector('{FIELD}')?.dataset.frames) > 5")
        address = page.url
        was, first, began = data(page, "hero"), int(data(page, "newest")), time.monotonic()
        map_ = page.get_by_role("img", name="Mini map")
        map_.click(position={"x": 75, "y": 75}, button="right")
        until(page, lambda: data(page, "acks") == "1")
        until(page, lambda: data(page, "hero") != was, 20)
        page.keyboard.press("m")
        shop = page.get_by_role("region", name="Shop")
        shop.get_by_label("Search").fill("butterfly")
        shop.get_by_role("button", name="Buy butterfly").click()
        expect(shop.get_by_role("status")).to_contain_text("gold")
        page.keyboard.press("Escape")
        frames, seconds = int(data(page, "newest")) - first, time.monotonic() - began
        assert frames > 0.5 * 30 * seconds  # it goes on in real time, as far as this machine does
        page.get_by_role("button", name="Give my hero to the agent").click()
        expect(page.get_by_role("button", name="Take my hero back")).to_be_visible()
        page.get_by_role("button", name="Take my hero back").click()
        expect(page.get_by_role("button", name="Give my hero to the agent")).to_be_visible()

        page.reload()  # as somebody does whose browser was lost
        page.wait_for_function(f"() => Number(document.querySelector('{FIELD}')?.dataset.frames) > 5")
        assert page.url == address and int(data(page, "newest")) > first
        page.keyboard.press("s")
        until(page, lambda: data(page, "acks") == "1")

        viewer = Watched(browser, rest.url)
        viewer.log_in(rest, VIEWER)
        viewer.visit("/play")
        expect(viewer.page.get_by_role("region", name="Games")).to_contain_text("ada")
        expect(viewer.page.get_by_role("link", name="Watch")).to_be_visible()
        viewer.close()

        page.get_by_role("button", name="Leave the game").click()
        expect(page.get_by_role("heading", name="Play", exact=True)).to_be_visible()
        watched.close()

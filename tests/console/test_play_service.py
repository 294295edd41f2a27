"""The play page against the real play service, whose agents are on a real inference server."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
import redis
from playwright.sync_api import expect

from five.services.controller.console.static_files import ConsoleSite
from tests.console.browser import Watched, chromium, until
from tests.console.test_play import FIELD, data
from tests.services.conftest import redis_client
from tests.services.live_controller import OPERATOR, VIEWER, LiveController
from tests.services.play_server import Played, playing

__all__ = ["redis_client"]
pytestmark = [pytest.mark.browser, pytest.mark.timeout(300),
              pytest.mark.skipif(not ConsoleSite().build, reason="the console is not built: make console")]


@contextmanager
def served(url: str, **settings: Any) -> Iterator[LiveController]:
    """Serve controller, play service and inference in an event loop on another thread."""
    found: Queue[Played | BaseException] = Queue()
    loop, over = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        try:
            async with playing(url, **settings) as played:
                found.put(played)
                await over.wait()
        except BaseException as error:
            found.put(error)
            raise

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    played = found.get(timeout=120)
    if isinstance(played, BaseException):
        raise played
    try:
        yield played.rest
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(30)
        assert not thread.is_alive()


def test_game_survives_a_page_reload(
        redis_client: redis.Redis, redis_url: str) -> None:
    with served(redis_url) as rest, chromium() as browser:
        watched = Watched(browser, rest.url, viewport={"width": 1280, "height": 800})
        page = watched.log_in(rest, OPERATOR)
        watched.visit("/play")
        page.get_by_role("button", name="Play", exact=True).click()
        page.wait_for_function(f"() => Number(document.querySelector('{FIELD}')?.dataset.frames) > 5")
        address = page.url
        was, first = data(page, "hero"), int(data(page, "newest"))
        map_ = page.get_by_role("img", name="Mini map")
        map_.click(position={"x": 75, "y": 75}, button="right")
        until(page, lambda: data(page, "acks") == "1")
        until(page, lambda: data(page, "hero") != was)
        page.keyboard.press("m")
        shop = page.get_by_role("region", name="Shop")
        shop.get_by_label("Search").fill("butterfly")
        shop.get_by_role("button", name="Buy butterfly").click()
        expect(shop.get_by_role("status")).to_contain_text("gold")
        page.keyboard.press("Escape")
        bought = int(data(page, "newest"))
        until(page, lambda: int(data(page, "newest")) > bought)  # and it goes on
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


def test_late_spectator_sees_the_whole_game(
        redis_client: redis.Redis, redis_url: str, tmp_path: Path) -> None:
    with served(redis_url, spectator_delay_seconds=2.0) as rest, chromium() as browser:
        watched = Watched(browser, rest.url)
        page = watched.log_in(rest, OPERATOR)
        watched.visit("/play")
        page.get_by_role("button", name="Play", exact=True).click()
        page.wait_for_function(f"() => Number(document.querySelector('{FIELD}')?.dataset.frames) > 5")
        game = page.url.rsplit("/", 1)[1]

        spectator = Watched(browser, rest.url)
        looks = spectator.log_in(rest, VIEWER)
        spectator.visit("/play")
        expect(looks.get_by_role("region", name="Games")).to_contain_text("Who watches sees it 2 s later")
        looks.get_by_role("link", name="Watch", exact=True).click()
        looks.wait_for_function(f"() => Number(document.querySelector('{FIELD}')?.dataset.frames) > 5")
        assert looks.url == f"{rest.url}/play/{game}?spectate=1"
        # Two seconds behind the player are 60 frames on an idle machine. Without a delay it is level.
        until(looks, lambda: int(data(page, "newest")) >= int(data(looks, "newest")) + 10)
        first = int(data(looks, "newest"))
        until(looks, lambda: int(data(looks, "newest")) > first)  # and it goes on
        # A spectator's keys give no orders.
        assert looks.get_by_role("group", name="Abilities").count() == 0
        looks.locator("[data-field]").focus()
        looks.keyboard.press("s")
        box = looks.locator(FIELD).bounding_box()
        assert box is not None
        looks.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, button="right")
        looks.wait_for_timeout(500)
        assert data(looks, "acks") == "0"
        assert spectator.faults() == []

        assert rest.ask("DELETE", f"/v1/play/games/{game}", OPERATOR).status_code == 200
        expect(page.get_by_text("It was closed.")).to_be_visible()
        page.get_by_role("link", name="Watch it again").click()
        film = "() => Number(document.querySelector('canvas.moving')?.dataset.step) > 2"
        page.wait_for_function(film)
        assert page.url == f"{rest.url}/games/played/{game}"
        expect(page.locator("main")).to_contain_text("ada")
        assert watched.faults() == []
        # Also who watched it, who sees its end as late as all before it.
        expect(looks.get_by_role("link", name="Watch it again")).to_be_visible()
        spectator.close()

        # It is saved as a file, which the page Games opens; another file is refused with a reason.
        watched.visit("/play")
        played = page.get_by_role("region", name="Recordings")
        expect(played).to_contain_text("ada")
        with page.expect_download() as saving:
            played.get_by_role("link", name="Save it").click()
        kept = tmp_path / saving.value.suggested_filename
        saving.value.save_as(kept)
        assert kept.name == f"{game}.view"
        watched.visit("/games")
        page.get_by_label("Open a recording from a file").set_input_files(kept)
        page.wait_for_function(film)
        page.get_by_role("button", name="All games").click()
        other = tmp_path / "other.view"
        other.write_bytes(b"<script>alert(1)</script>" * 40)
        page.get_by_label("Open a recording from a file").set_input_files(other)
        expect(page.get_by_role("alert")).to_contain_text("no recording")
        watched.close()

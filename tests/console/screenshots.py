"""``python -m tests.console.screenshots [--run NAME | --url URL] [--folder FOLDER]``: pictures of the console of a run
that trains, light and dark, 1280 and 1920 wide, and a short film of a game that is played. `make console-pictures
[RUN=NAME]` runs it.

``--seeded`` takes them of a run of made-up numbers (tests/console/seeded.py) in its place. The page Draft is of that
one in any case: a run of one hero has nothing to draft.
"""

import argparse
import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page

from dota.config import GameConfig
from five.cli.console import link
from five.cli.remote import Controller, add_address, controller_of
from tests.console.browser import Watched, chromium
from tests.console.played import GAME, POOL, PlayedHere
from tests.console.seeded import seeded
from tests.services.live_controller import OPERATOR

FOLDER = Path(__file__).parents[2] / "docs/images/console"
SCHEMES, WIDTHS = ("light", "dark"), (1280, 1920)
PAGES = {"run": "/", "steering": "/steering", "league": "/league", "events": "/events", "api": "/docs"}
DRAFT = {"draft": "/draft?dire=sniper&radiant=lion,sven&side=R"}
COLOURS, MAP_COLOURS = 48, 128  # of a picture's palette: small files, and text stays sharp
PLAY_SECONDS = 40  # of a game before its pictures: the first creeps have met
FILM_FRAMES, FILM_WIDTH = 40, 800
STEPS = 7.5  # of a recording, a second


def save(picture: bytes, path: Path, colours: int = COLOURS) -> None:
    """Writes a picture with a small palette."""
    with Image.open(BytesIO(picture)) as image:
        image.convert("RGB").quantize(colours, dither=Image.Dither.NONE).save(path, optimize=True)


@contextmanager
def logged_in(browser: Browser, controller: Controller, scheme: str, width: int) -> Iterator[Watched]:
    """The console in a window of that width."""
    watched = Watched(browser, controller.url, color_scheme=scheme, viewport={"width": width, "height": width * 5 // 8})
    watched.page.goto(link(controller))
    watched.page.get_by_role("navigation", name="Pages").wait_for()
    yield watched
    watched.close()


def each(page: Page, name: str, folder: Path, colours: int) -> None:
    """The page as it is, in each scheme and width."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": width * 5 // 8})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.evaluate("scrollTo(0, 0)")
            page.wait_for_timeout(1500)
            save(page.screenshot(), folder / f"{name}-{scheme}-{width}.png", colours)


def pages(browser: Browser, controller: Controller, addresses: dict[str, str], folder: Path) -> None:
    """Pages that only have to be looked at."""
    for scheme in SCHEMES:
        for width in WIDTHS:
            with logged_in(browser, controller, scheme, width) as watched:
                for name, address in addresses.items():
                    watched.visit(address)
                    watched.page.wait_for_timeout(2500)
                    save(watched.page.screenshot(), folder / f"{name}-{scheme}-{width}.png")


def games(browser: Browser, controller: Controller, folder: Path) -> None:
    """The wall of games in progress, and the longest of the newest recordings, three minutes after the horn."""
    with logged_in(browser, controller, "light", 1280) as watched:
        page = watched.page
        watched.visit("/games")
        page.locator(".wall li").first.wait_for(timeout=30_000)
        each(page, "games", folder, COLOURS)
        newest = controller.get("replays")["replays"][:8]
        name = max(newest, key=lambda replay: replay["facts"].get("seconds", 0))["name"]
        watched.visit(f"/games/replay/{name}")
        page.wait_for_function("() => Number(document.querySelector('canvas.moving')?.dataset.step) > 2")
        page.get_by_role("button", name="Pause").click()
        page.locator("input.scrub").evaluate(
            "(input, step) => { input.value = Math.min(step, input.max);"
            " input.dispatchEvent(new Event('input', {bubbles: true})); }",
            round(270 * STEPS))
        page.wait_for_timeout(1000)
        each(page, "game", folder, MAP_COLOURS)


def play(browser: Browser, controller: Controller, folder: Path) -> None:
    """A game against the newest version: a person goes to his tower in the middle and fights there."""
    with logged_in(browser, controller, "light", 1280) as watched:
        page = watched.page
        watched.visit("/play")
        page.get_by_role("button", name="Play", exact=True).click()
        page.wait_for_function("() => Number(document.querySelector('canvas.moving')?.dataset.frames) > 10",
                               timeout=60_000)
        game = page.url.rsplit("/", 1)[1]
        small = page.get_by_role("img", name="Mini map").bounding_box()
        assert small is not None
        page.mouse.click(small["x"] + 0.45 * small["width"], small["y"] + 0.55 * small["height"], button="right")
        page.wait_for_timeout(1000 * PLAY_SECONDS)
        page.locator("[data-field]").focus()
        page.keyboard.press("Space")
        page.keyboard.press("a")
        page.mouse.move(*_near_the_hero(page, 120, -60))
        each(page, "play", folder, MAP_COLOURS)
        page.keyboard.press("Escape")
        page.set_viewport_size({"width": 1280, "height": 800})
        page.emulate_media(color_scheme="light")
        page.wait_for_timeout(500)
        film(page, folder / "play.webp")
        page.get_by_role("button", name="Leave the game").click()
        page.get_by_role("heading", name="Play", exact=True).wait_for()
        controller.delete(f"play/games/{game}")


def film(page: Page, path: Path) -> None:
    """Some seconds of play, as fast as they were: orders by mouse, a picture after each moment."""
    pictures: list[Image.Image] = []
    times: list[float] = []
    for k in range(FILM_FRAMES):
        if k % 4 == 0:
            away = 90 if k % 8 else -90
            page.keyboard.press("a")
            page.mouse.click(*_near_the_hero(page, away, -away // 2))
        times.append(time.monotonic())
        with Image.open(BytesIO(page.screenshot())) as image:
            pictures.append(image.convert("RGB").resize((FILM_WIDTH, FILM_WIDTH * image.height // image.width)))
    shown = [round(1000 * (after - before)) for before, after in itertools.pairwise(times)]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=[*shown, 1000], loop=0, quality=55,
                     method=4)


def _near_the_hero(page: Page, x: float, y: float) -> tuple[float, float]:
    field = page.locator("canvas.moving")
    box = field.bounding_box()
    assert box is not None
    hero = [float(v) for v in str(field.get_attribute("data-pixel")).split(",")]
    return box["x"] + hero[0] + x, box["y"] + hero[1] + y


def made_up(browser: Browser, folder: Path, everything: bool) -> None:
    """Pages of the seeded run."""
    with seeded() as rest:
        controller = Controller(rest.url, OPERATOR)
        pages(browser, controller, {**PAGES, **DRAFT} if everything else DRAFT, folder)
        if not everything:
            return
        routes: list[Any] = list(rest.app.router.routes)
        PlayedHere(GameConfig(hero_pool=POOL, start_seconds=0.0), seconds=300).serve_at(rest)
        with logged_in(browser, controller, "light", 1280) as watched:
            watched.page.goto(f"{rest.url}/play/{GAME}")
            watched.page.wait_for_function("() => Number(document.querySelector('canvas.moving')?.dataset.frames) > 40")
            watched.page.keyboard.press("a")
            watched.page.mouse.move(*_near_the_hero(watched.page, 120, -60))
            each(watched.page, "play", folder, MAP_COLOURS)
        rest.app.router.routes[:] = routes


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.console.screenshots", description=__doc__)
    add_address(parser)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--only", choices=("pages", "games", "play", "draft"), help="some of them")
    parser.add_argument("--seeded", action="store_true", help="of a run of made-up numbers")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        if not arguments.seeded:
            controller = controller_of(arguments)
            if arguments.only in (None, "pages"):
                pages(browser, controller, PAGES, arguments.folder)
            if arguments.only in (None, "games"):
                games(browser, controller, arguments.folder)
            if arguments.only in (None, "play"):
                play(browser, controller, arguments.folder)
        if arguments.only in (None, "draft"):
            made_up(browser, arguments.folder, everything=arguments.seeded)


if __name__ == "__main__":
    main()

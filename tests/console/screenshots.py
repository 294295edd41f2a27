"""``python -m tests.console.screenshots [--run NAME | --url URL] [--folder FOLDER]``: pictures of the console of a run
that trains, light and dark, 1280 and 1920 wide, and a short film of a game that is played. `make console-pictures
[RUN=NAME]` runs it.

``--ended RUNFOLDER`` takes those that need no training of a run that has ended; ``--seeded`` takes them of a run of
made-up numbers (tests/console/seeded.py). ``--only`` names some. The page Draft of a run of one hero is of the made-up
one: there is nothing to draft. What shows no numbers of a run, the login and where games are opened, is as well.
"""

import argparse
import itertools
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page

from dota.config import GameConfig
from five.cli.console import link
from five.cli.run_selection import add_address, controller_of
from five.local.rest_client import ControllerClient
from five.local.run_folder import find_run
from five.reports.run_report import collect, newest_film
from five.reports.run_report import write as write_report
from tests.console.browser import PATIENCE, Watched, chromium
from tests.console.ended import ended
from tests.console.played import GAME, POOL, PlayedHere
from tests.console.seeded import seeded
from tests.services.live_controller import OPERATOR

FOLDER = Path(__file__).parents[2] / "docs/images/console"
SCHEMES, WIDTHS = ("light", "dark"), (1280, 1920)
PAGES = {"run": "/", "steering": "/steering", "league": "/league", "events": "/events", "api": "/docs"}
KINDS = ("pages", "games", "game", "report", "play", "draft", "entrances")
OF_ENDED = ("pages", "game", "report", "draft")  # data that remain visible after the run has ended
COLOURS, MAP_COLOURS = 48, 128  # of a picture's palette: small files, and text stays sharp
PLAY_SECONDS = 40  # of a game before its pictures: the first creeps have met
FILM_FRAMES, FILM_WIDTH = 40, 800


def save(picture: bytes, path: Path, colours: int = COLOURS) -> None:
    """Write a picture with a small palette."""
    with Image.open(BytesIO(picture)) as image:
        image.convert("RGB").quantize(colours, dither=Image.Dither.NONE).save(path, optimize=True)


@contextmanager
def logged_in(browser: Browser, controller: ControllerClient, scheme: str, width: int) -> Iterator[Watched]:
    """Open the console in a window of that width."""
    watched = Watched(browser, controller.url, color_scheme=scheme, viewport={"width": width, "height": width * 5 // 8})
    watched.page.goto(link(controller))
    watched.page.get_by_role("navigation", name="Pages").wait_for()
    yield watched
    watched.close()


def each(page: Page, name: str, folder: Path, colours: int) -> None:
    """Take pictures of the current page in each scheme and width."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": width * 5 // 8})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.evaluate("scrollTo(0, 0)")
            page.wait_for_timeout(1500 * PATIENCE)
            save(page.screenshot(), folder / f"{name}-{scheme}-{width}.png", colours)


def pages(browser: Browser, controller: ControllerClient, addresses: dict[str, str], folder: Path) -> None:
    """Take pictures of pages that need no input."""
    for scheme in SCHEMES:
        for width in WIDTHS:
            with logged_in(browser, controller, scheme, width) as watched:
                for name, address in addresses.items():
                    watched.visit(address)
                    watched.page.wait_for_timeout(2500 * PATIENCE)
                    save(watched.page.screenshot(), folder / f"{name}-{scheme}-{width}.png")


def games(browser: Browser, controller: ControllerClient, folder: Path) -> None:
    """Take pictures of the list of games in progress."""
    with logged_in(browser, controller, "light", 1280) as watched:
        watched.visit("/games")
        watched.page.locator(".wall li").first.wait_for(timeout=30_000)
        each(watched.page, "games", folder, COLOURS)


def game(browser: Browser, controller: ControllerClient, folder: Path) -> None:
    """Take pictures of the longest of the newest recordings, at three fifths of its length."""
    with logged_in(browser, controller, "light", 1280) as watched:
        page = watched.page
        newest = controller.get("replays")["replays"][:8]
        name = max(newest, key=lambda replay: replay["facts"].get("seconds", 0))["name"]
        watched.visit(f"/games/replay/{name}")
        page.wait_for_function("() => Number(document.querySelector('canvas.moving')?.dataset.step) > 2")
        page.get_by_role("button", name="Pause").click()
        page.locator("input.scrub").evaluate(
            "input => { input.value = Math.round(0.6 * input.max);"
            " input.dispatchEvent(new Event('input', {bubbles: true})); }")
        page.wait_for_timeout(1000)
        each(page, "game", folder, MAP_COLOURS)


def play(browser: Browser, controller: ControllerClient, folder: Path) -> None:
    """Take pictures of a game against the newest version: a person fights at the tower in the middle."""
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


def draft(browser: Browser, controller: ControllerClient, folder: Path) -> bool:
    """Take pictures of a draft with the run's own table after three picks. Return False if there is no table, or it has
    one hero."""
    tables = controller.get("draft/tables")["tables"]
    if not tables or len(tables[0]["heroes"]) < 2:
        return False
    picks: dict[str, list[str]] = {"R": [], "D": []}
    for _ in range(3):
        now = controller.get("draft", radiant=",".join(picks["R"]), dire=",".join(picks["D"]))
        picks[now["to_move"]].append(now["choices"][0]["hero"])
    address = f"/draft?radiant={','.join(picks['R'])}&dire={','.join(picks['D'])}&side=R"
    pages(browser, controller, {"draft": address}, folder)
    return True


def report(browser: Browser, file: Path, folder: Path) -> None:
    """Take pictures of a run's report, opened from its file."""
    watched = Watched(browser, file.as_uri())
    watched.page.goto(file.as_uri())
    watched.page.locator(".chart canvas").nth(10).wait_for()
    each(watched.page, "report", folder, COLOURS)
    watched.close()


def entrances(browser: Browser, controller: ControllerClient, folder: Path) -> None:
    """Take the pictures of the login and of opening a game, while the controller plays a game."""
    watched = Watched(browser, controller.url)
    watched.page.goto(controller.url)
    watched.page.get_by_label("Token").wait_for()
    each(watched.page, "login", folder, COLOURS)
    watched.close()
    with logged_in(browser, controller, "light", 1280) as watched:
        watched.visit("/play")
        watched.page.get_by_role("form", name="A new game").wait_for()
        each(watched.page, "lobby", folder, COLOURS)


def film(page: Page, path: Path) -> None:
    """Record some seconds of a game with orders by mouse, at their real speed."""
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


def made_up(browser: Browser, folder: Path, wanted: Collection[str]) -> None:
    """Take pictures of the seeded run."""
    with seeded() as rest:
        controller = ControllerClient(rest.url, OPERATOR)
        if "pages" in wanted:
            pages(browser, controller, PAGES, folder)
        if "draft" in wanted:
            draft(browser, controller, folder)
        routes: list[Any] = list(rest.app.router.routes)
        PlayedHere(GameConfig(hero_pool=POOL, start_seconds=0.0), seconds=300, name="ada").serve_at(rest)
        if "entrances" in wanted:
            entrances(browser, controller, folder)
        if "play" in wanted:
            with logged_in(browser, controller, "light", 1280) as watched:
                page = watched.page
                page.goto(f"{rest.url}/play/{GAME}")
                page.wait_for_function("() => Number(document.querySelector('canvas.moving')?.dataset.frames) > 40")
                page.keyboard.press("a")
                page.mouse.move(*_near_the_hero(page, 120, -60))
                each(page, "play", folder, MAP_COLOURS)
        rest.app.router.routes[:] = routes


def trained(browser: Browser, controller: ControllerClient, written: Path | None, folder: Path, wanted: Collection[str]
            ) -> set[str]:
    """Take pictures of a run and of its report ``written``. Return the kinds in ``wanted`` for which the run has no
    data."""
    if "pages" in wanted:
        pages(browser, controller, PAGES, folder)
    if "games" in wanted:
        games(browser, controller, folder)
    if "game" in wanted:
        game(browser, controller, folder)
    if "report" in wanted and written is not None:
        report(browser, written.resolve(), folder)
    if "play" in wanted:
        play(browser, controller, folder)
    left = set(wanted) & {"entrances"}
    if "draft" in wanted and not draft(browser, controller, folder):
        left.add("draft")
    return left


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.console.screenshots", description=__doc__)
    add_address(parser)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--only", choices=KINDS, nargs="+", help="some of them")
    parser.add_argument("--ended", type=Path, metavar="RUNFOLDER", help="of a run that has ended, by its folder")
    parser.add_argument("--seeded", action="store_true", help="of a run of made-up numbers")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    wanted: Collection[str] = set(arguments.only or KINDS)
    with chromium() as browser:
        if arguments.ended is not None:
            with ended(arguments.ended) as rest, TemporaryDirectory() as place:
                written = Path(place) / "report.html"
                write_report(collect(rest.state, rest.context.series), written, newest_film(rest.context.recordings))
                trained(browser, ControllerClient(rest.url, OPERATOR), written, arguments.folder,
                        set(arguments.only or OF_ENDED))
            return
        if not arguments.seeded:
            controller = controller_of(arguments)
            written = None if arguments.url else find_run(arguments.run).report
            wanted = trained(browser, controller, written, arguments.folder, wanted)
        made_up(browser, arguments.folder, wanted)


if __name__ == "__main__":
    main()

"""``python -m tests.console.screenshots [FOLDER]``: pictures of every page, light and dark, 1280 and 1920 wide, of a
run that was left on for days (tests/console/seeded.py). `make console-pictures` runs it."""

import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

from dota.config import GameConfig
from tests.console.browser import Watched, chromium
from tests.console.played import GAME, POOL, PlayedHere
from tests.console.seeded import seeded
from tests.services.live_controller import OPERATOR, LiveController

FOLDER = Path(__file__).parents[2] / "docs/images/console"
PAGES = {"run": "/", "steering": "/steering", "league": "/league", "events": "/events",
         "draft": "/draft?dire=sniper&radiant=lion,sven&side=R"}
COLOURS, MAP_COLOURS = 48, 128  # of a picture's palette: small files, and text stays sharp


def save(picture: bytes, path: Path, colours: int = COLOURS) -> None:
    """Writes a picture with a small palette."""
    with Image.open(BytesIO(picture)) as image:
        image.convert("RGB").quantize(colours, dither=Image.Dither.NONE).save(path, optimize=True)


def _played(rest: LiveController, watched: Watched, page: Page, path: Path) -> None:
    """A game after five minutes, with something aimed."""
    before = list(rest.app.router.routes)
    PlayedHere(GameConfig(hero_pool=POOL, start_seconds=0.0), seconds=300).serve_at(rest)
    page.goto(f"{rest.url}/play/{GAME}")
    page.wait_for_function("() => Number(document.querySelector('canvas.moving')?.dataset.frames) > 40")
    page.keyboard.press("a")
    page.mouse.move(*_near_the_hero(page))
    page.wait_for_timeout(700)
    save(page.screenshot(), path, MAP_COLOURS)
    rest.app.router.routes[:] = before


def _near_the_hero(page: Page) -> tuple[float, float]:
    box = page.locator("canvas.moving").bounding_box()
    assert box is not None
    x, y = (float(v) for v in str(page.locator("canvas.moving").get_attribute("data-pixel")).split(","))
    return box["x"] + x + 120, box["y"] + y - 60


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with seeded() as rest, chromium() as browser:
        for scheme in ("light", "dark"):
            for width in (1280, 1920):
                watched = Watched(
                    browser, rest.url, color_scheme=scheme, viewport={"width": width, "height": width * 5 // 8}
                )
                page = watched.log_in(rest, OPERATOR)
                for name, address in PAGES.items():
                    watched.visit(address)
                    page.wait_for_timeout(2500)
                    save(page.screenshot(), folder / f"{name}-{scheme}-{width}.png")
                _played(rest, watched, page, folder / f"play-{scheme}-{width}.png")
                watched.close()


if __name__ == "__main__":
    main()

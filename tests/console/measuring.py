"""``python -m tests.console.measuring [--seconds N] [--json]``: the page's cost of showing a game of five against five,
watched and played, in headless Chromium.

Script is measured in CPU time of the page's thread, which excludes other load; frames a second are not meaningful,
because headless Chromium renders in software. `five bench spectate` and `five bench play` measure the services' cost.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, CDPSession, Page

from dota.config import GameConfig
from dota.spectator.recording import RecordingWriter
from dota.vec_game import Controller as Player
from dota.vec_game import VecGame
from five.benchmarks.results import BenchmarkRow, as_json, as_text, machine, row
from tests.console.browser import Watched, chromium
from tests.console.played import GAME, POOL, PlayedHere
from tests.console.seeded import seeded
from tests.services.live_controller import OPERATOR, RUN, LiveController

VIEWPORT = {"width": 1600, "height": 1000}
FROM_SECONDS = 240.0  # of the game, when it is shown
STEPS = 7.5  # of a recording, a second
WARM_SECONDS = 6.0  # before anything is counted: the browser compiles what runs often
CLICK_MS = 220  # between two orders
FIELD = "canvas.moving"


class Counted:
    """Page with counters of its frames and its thread's time."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._session: CDPSession = page.context.new_cdp_session(page)
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.evaluate("""() => { window.counted = 0;
            const one = () => { counted++; requestAnimationFrame(one); }; one(); }""")
        self._at = time.monotonic()
        self._began = self._read()

    def _read(self) -> tuple[float, float, int]:
        metrics = {m["name"]: m["value"] for m in self._session.send("Performance.getMetrics")["metrics"]}
        return float(metrics["ScriptDuration"]), float(metrics["TaskDuration"]), int(self._page.evaluate("counted"))

    def rows(self, name: str) -> list[BenchmarkRow]:
        """Return milliseconds of script a frame, and of all work of the page's thread (script, style, layout, painting)
        a second. Raises ValueError when no frame was rendered."""
        lasted = time.monotonic() - self._at
        script, task, frames = (now - then for now, then in zip(self._read(), self._began, strict=True))
        if not frames:
            raise ValueError("no frame was drawn")
        conditions = machine(frames=int(frames), seconds=round(lasted, 1))
        return [row(name, 1000 * script / frames, "ms of script a frame", None, conditions),
                row(f"{name}.thread", 1000 * task / lasted, "ms of the page's thread a second", None, conditions)]


def record(path: Path, seconds: float) -> None:
    """Record a game between the strongest bots from FROM_SECONDS on."""
    game = VecGame(GameConfig(start_seconds=0.0), 1, seed=1, observations=False)
    game.controllers[:] = Player.HARD
    for _ in range(round(FROM_SECONDS * STEPS)):
        game.step()
    writer = RecordingWriter(path, game.config, {"players": ["scripted-hard", "scripted-hard"]})
    for _ in range(round(seconds * STEPS)):
        writer.camera.record(game, 0)
        game.step()
    writer.close()


@contextmanager
def open_page(browser: Browser, rest: LiveController, address: str) -> Iterator[Page]:
    """Open a page of the console that shows a game."""
    watched = Watched(browser, rest.url, viewport=VIEWPORT)
    page = watched.log_in(rest, OPERATOR)
    page.goto(rest.url + address)
    page.wait_for_function(f"() => Number(document.querySelector('{FIELD}')?.dataset.ms) > 0", timeout=120_000)
    page.wait_for_timeout(1000 * WARM_SECONDS)
    yield page
    watched.close()


def watched_rows(browser: Browser, rest: LiveController, seconds: float) -> list[BenchmarkRow]:
    """Return script time a frame of a watched recording, without fog and with."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "measured.view"
        record(path, 3 * seconds + 2 * WARM_SECONDS)
        assert rest.context.blobs is not None
        rest.context.blobs.put(path, f"{RUN}/replays/measured.view")
    found: list[BenchmarkRow] = []
    with open_page(browser, rest, "/games/replay/measured") as page:
        for fog in ("none", "radiant"):
            page.get_by_label("Fog of").select_option(fog)
            counted = Counted(page)
            page.wait_for_timeout(1000 * seconds)
            found += counted.rows(f"page.watched.{'fog' if fog != 'none' else 'all'}")
    return found


def played_rows(browser: Browser, rest: LiveController, seconds: float) -> list[BenchmarkRow]:
    """Return script time a frame of a played game, its bytes, and the latency of mouse orders, with bots only."""
    played = PlayedHere(GameConfig(hero_pool=POOL, start_seconds=0.0), seconds=FROM_SECONDS)
    played.serve_at(rest)
    with open_page(browser, rest, f"/play/{GAME}") as page:
        field = page.locator(FIELD)
        box = field.bounding_box()
        assert box is not None
        def data(name: str) -> float:
            return float(str(field.get_attribute(f"data-{name}")))

        counted, before, began, side = Counted(page), data("bytes"), time.monotonic(), 1
        while time.monotonic() - began < seconds:
            x, y = (float(v) for v in str(field.get_attribute("data-pixel")).split(","))
            page.mouse.click(box["x"] + x + 150 * side, box["y"] + y - 90 * side, button="right")
            side = -side
            page.wait_for_timeout(CLICK_MS)
        lasted = time.monotonic() - began
        found = counted.rows("page.played")
        came, delays = data("bytes") - before, {n: data(n) for n in ("answered50", "answered99", "shown50", "shown99")}
        played.break_off = True
    conditions = found[0].conditions
    return [*found, row("page.played.bytes", came / lasted, "bytes/s", None, conditions),
            *(row(f"page.played.{name[:-2]}.p{name[-2:]}", value, "ms from the click", None, conditions)
              for name, value in delays.items())]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.console.measuring", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with chromium() as browser, seeded() as rest:
        rows = [*watched_rows(browser, rest, arguments.seconds), *played_rows(browser, rest, arguments.seconds)]
    print(as_json(rows) if arguments.json else as_text(rows))


if __name__ == "__main__":
    main()

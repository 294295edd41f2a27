"""The console of a real `five train`, opened by the printed link, from the first version to a surgery."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, TimeoutError, expect

from tests.console.browser import Watched, chromium
from tests.console.test_steering import act
from tests.e2e.running import Run, eventually

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(600)]
# Bounds that a policy after a minute meets: it is close to uniform.
LOOSE = "bounds:\n  mean_kl: 0.5\n  mean_value_change: 5.0\n"


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path)
    yield run
    run.destroy()


def printed_link(run: Run) -> str:
    """Return the link that `five train` has printed, '' before."""
    found = re.search(r"http://\S+/#login=\S+", (run.place / "train.log").read_text())
    return found[0] if found else ""


def plays_half_a_minute(browser: Browser, run: Run, address: str) -> None:
    """Play against the newest version with mouse and keys for thirty seconds."""
    eventually(lambda: run.rest("GET", "play").json()["versions"], 120, "a version that can be played")
    watched = Watched(browser, address, viewport={"width": 1600, "height": 1000})
    page = watched.page
    page.goto(run.command("console", "--run", run.folder.name).stdout.strip())
    page.get_by_role("navigation", name="Pages").wait_for()
    watched.visit("/play")
    page.get_by_role("button", name="Play", exact=True).click()
    field = page.locator("canvas.moving")

    def data(name: str) -> str:
        return field.get_attribute(f"data-{name}") or ""

    page.wait_for_function("() => Number(document.querySelector('canvas.moving')?.dataset.frames) > 10", timeout=60_000)
    box = field.bounding_box()
    assert box is not None
    began, first, given = time.monotonic(), int(data("newest")), 0
    places: set[str] = set()
    while time.monotonic() - began < 30:
        page.locator("[data-field]").focus()
        page.keyboard.press("Space")
        page.wait_for_timeout(120)
        x, y = (float(v) for v in data("pixel").split(","))
        # Towards the middle of the map and back, as wide as the screen allows.
        away = 180 if given % 10 < 5 else -180
        page.mouse.click(box["x"] + x + away, box["y"] + y - away, button="right")
        page.keyboard.press("Control+q" if given % 3 else "a")
        if given % 3 == 0:
            page.mouse.click(box["x"] + x + away, box["y"] + y - away)
        given += 2
        page.wait_for_timeout(700)
        places.add(data("hero"))
    assert int(data("acks")) >= given - 2 > 10, (data("acks"), given)
    assert len(places) > 5, places  # it went where it was sent
    assert int(data("newest")) - first > 5 * 30, "the game went on"
    expect(page.locator(".delay")).to_contain_text("ms")
    page.get_by_role("button", name="Leave the game").click()
    expect(page.get_by_role("heading", name="Play", exact=True)).to_be_visible()
    for game in run.rest("GET", "play/games").json()["games"]:  # unless its time was up
        run.rest("DELETE", f"play/games/{game['game']}")
    page.get_by_role("region", name="Recordings").get_by_role("link", name="Watch it again").click()
    page.wait_for_function("() => Number(document.querySelector('canvas.moving')?.dataset.step) > 2")
    watched.close()


def watches_and_scrubs(browser: Browser, run: Run, address: str) -> None:
    """Watch a game in progress, then seek in a recording to its end and back."""
    watched = Watched(browser, address)
    page = watched.page
    page.goto(run.command("console", "--run", run.folder.name).stdout.strip())
    page.get_by_role("navigation", name="Pages").wait_for()

    def beyond(step: int, seconds: float = 60) -> int:
        page.wait_for_function("(step) => Number(document.querySelector('canvas.moving')?.dataset.step) > step",
                               arg=step, timeout=1000 * seconds)
        return int(page.locator("canvas.moving").get_attribute("data-step") or 0)

    for tries in range(5, 0, -1):  # the game that is picked may be over by then
        watched.visit("/games")
        page.locator(".wall a").first.click(timeout=60_000)
        try:
            beyond(3, 15)
            break
        except TimeoutError:
            assert tries > 1, page.locator("main").inner_text()
    watched.visit("/games")
    page.locator(".replays a").first.click(timeout=60_000)
    beyond(2)
    page.locator("input.scrub").focus()
    page.keyboard.press("End")
    last = beyond(int(page.locator("input.scrub").get_attribute("max") or 0) - 2)
    page.keyboard.press("Home")
    page.wait_for_function("(last) => Number(document.querySelector('canvas.moving')?.dataset.step) < last / 2",
                           arg=last)
    watched.close()


def test_a_run_is_watched_and_steered(run: Run) -> None:
    run.start_new("game.max_game_seconds=75")  # long enough to be picked while they go on
    link = eventually(lambda: printed_link(run), 180, "five train prints a link")
    token = run.folder.operator_token()
    assert token not in (run.place / "train.log").read_text()
    address = link.partition("/#")[0]
    with chromium() as browser:
        watched = Watched(browser, address)
        page = watched.page
        page.goto(link)
        expect(page.get_by_role("banner").get_by_role("status")).to_contain_text("running", timeout=60_000)
        assert page.url == address + "/"

        # A version arrives by itself.
        version = page.locator(".facts div", has_text=re.compile("^version")).locator("dd")
        before = run.head()
        end = time.monotonic() + 120
        while int(version.inner_text()) <= before and time.monotonic() < end:
            page.wait_for_timeout(200)
        assert int(version.inner_text()) > before

        watched.visit("/steering")
        status = page.get_by_role("banner").get_by_role("status")
        act(page, "Pause", Reason="a look")
        expect(status).to_contain_text("paused", timeout=120_000)
        act(page, "Resume")
        expect(status).to_contain_text("running", timeout=60_000)

        # A plan is derived, edited, measured, tried dry and applied.
        run.wait_version(4)
        page.get_by_label("What the agent is to become").fill("model.lstm=32")
        page.get_by_role("button", name="Derive plan").click()
        expect(page.get_by_role("region", name="Changes", exact=True)).to_contain_text("grow_lstm")
        plan = page.get_by_label("Plan", exact=True)
        text = re.sub(r"warm_up_versions: \d+\n", "", plan.input_value())
        plan.fill(f"{text}warm_up_versions: 2\n{LOOSE}")
        act(page, "Check plan")
        expect(page.get_by_text("Within its bounds")).to_be_visible(timeout=120_000)
        page.get_by_role("button", name="Apply plan").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("Steps: pause, check, checkpoint, transform, hold, publish")
        assert run.rest("GET", "status").json()["epoch"] == 1
        dialog.get_by_label("Hold before publishing").uncheck()
        dialog.get_by_role("button", name="Apply plan").click()
        expect(dialog).to_be_hidden()

        # The controller renews itself meanwhile; the page comes back, and shows the operation's end.
        def over() -> bool:
            run.check()
            return bool(run.rest("GET", "status").json()["epoch"] == 2)

        eventually(over, 180, "the run is cut over")
        expect(page.locator("details", has_text="surgery").first).to_contain_text("done", timeout=180_000)
        expect(status).to_contain_text("running", timeout=120_000)  # after the versions of its warm-up
        page.goto(address + "/")
        lane = page.get_by_role("region", name="Time line")
        expect(lane.get_by_role("button", name=re.compile("wider"))).to_be_visible()
        watched.close()

        # The evaluator makes a draft's table of a version that it has rated: of one hero, a single line-up.
        eventually(lambda: run.rest("GET", "draft/tables").json()["tables"], 180, "a rated version's table")
        watched = Watched(browser, address)
        printed = run.command("console", "--run", run.folder.name)
        watched.page.goto(printed.stdout.strip())
        watched.page.get_by_role("navigation", name="Pages").wait_for()
        watched.visit("/draft")
        expect(watched.page.get_by_role("region", name="Open picks")).to_contain_text("nevermore")
        watched.page.get_by_role("button", name="Pick nevermore").click()
        expect(watched.page.get_by_role("heading", name="Radiant picks")).to_be_visible()
        watched.close()

        watches_and_scrubs(browser, run, address)
        plays_half_a_minute(browser, run, address)

        # The report is one file: charts, and the game that the rated version left.
        written = run.command("report", "--run", run.folder.name)
        assert written.returncode == 0, written.stderr
        kept = Watched(browser, run.folder.report.as_uri())
        kept.page.goto(run.folder.report.as_uri())
        kept.page.locator(".chart canvas").nth(10).wait_for()
        expect(kept.page.get_by_role("region", name="The newest film")).to_contain_text("version-")
        kept.page.get_by_role("button", name="Play", exact=True).click()
        kept.page.wait_for_function("() => Number(document.querySelector('.moving').dataset.step) > 3")
        kept.close()

        viewer = Watched(browser, address)
        printed = run.command("console", "--run", run.folder.name, "--role", "viewer")
        assert printed.returncode == 0, printed.stderr
        viewer.page.goto(printed.stdout.strip())
        expect(viewer.page.get_by_text("viewer")).to_be_visible()
        viewer.visit("/steering")
        stop = viewer.page.get_by_role("button", name="Stop", exact=True)
        expect(stop).to_have_attribute("aria-disabled", "true")
        for what in ("stop", "pause", "resume", "surgery/apply", "surgery/rehearse", "anneal", "revert", "matches",
                     "play/games"):
            refused = viewer.page.evaluate(
                "async (what) => (await fetch(`/v1/${what}`, "
                "{method: 'POST', headers: {'X-Five-Console': 'x'}})).status", what)
            assert refused == 403, what
        assert run.status() == "running"
        viewer.close()

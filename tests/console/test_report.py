"""A run's report, opened from a file as a person does: charts, the film, and nothing that its policy would refuse."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from dota.spectator.recording import RecordingWriter
from dota.vec_game import Controller, VecGame
from five.reports import run_report
from five.reports.html_page import Film
from tests.console.browser import Watched
from tests.console.seeded import HOSTILE, seeded
from tests.console.test_pages import expect_drawn_charts
from tests.services.controller.games.test_live_hub import RULES

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run of days, with a recorded game of some seconds."""
    folder = tmp_path_factory.mktemp("report")
    games = VecGame(RULES, 1, 7, observations=False)
    games.controllers[:] = Controller.SCRIPTED
    path = folder / "game.view"
    film = RecordingWriter(path, RULES, {"players": ["version-3", HOSTILE]})
    film.camera.record(games, 0)
    for _ in range(120):
        games.step()
        film.camera.record(games, 0)
    film.close()
    with seeded() as rest:
        records = run_report.collect(rest.state, rest.context.series)
    run_report.write(records, folder / "run_report.html", Film("version-3", path.read_bytes()))
    return folder / "run_report.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_shows_charts_marks_and_the_film_from_a_file(browser: Browser, written: Path, scheme: str) -> None:
    watched = Watched(browser, written.as_uri(), color_scheme=scheme)
    page = watched.page
    page.goto(written.as_uri())
    expect(page.get_by_role("heading", name="trial")).to_be_visible()
    page.locator(".chart canvas").nth(12).wait_for()
    expect_drawn_charts(page, 12)
    lane = page.get_by_role("region", name="Time line")
    expect(lane.get_by_role("button", name=re.compile("wider"))).to_be_visible()
    expect(lane).to_contain_text("versions 610 to 660, back to 609 by ada")  # its lines are shown faded
    lane.get_by_role("button", name="1 d", exact=True).click()
    expect(lane.locator("b")).to_have_text("24 h 0 min")
    expect(page.get_by_text("<img src=x onerror=").first).to_be_attached()

    film = page.get_by_role("region", name="Game of version-3")
    expect(film).to_contain_text("version-3")
    before = int(page.locator(".moving").get_attribute("data-step") or 0)
    film.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function("before => Number(document.querySelector('.moving').dataset.step) > before + 5", arg=before)
    film.get_by_role("button", name="Pause", exact=True).click()
    # Other content injected into the file is refused.
    page.evaluate("""() => { const script = document.createElement('script');
        script.textContent = "document.title = 'hacked'"; document.body.append(script); }""")
    assert "hacked" not in page.title() and watched.wrong and "Content Security Policy" in watched.wrong[-1]
    watched.wrong.clear()
    assert watched.faults() == []
    watched.close()

"""The draft page in a real browser."""

import re
from urllib.parse import unquote

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.console.browser import Watched, until
from tests.console.seeded import DRAFTED, seeded
from tests.services.live_controller import OPERATOR, VIEWER, LiveController

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def heroes(page: Page) -> Locator:
    """Return the cells with the open picks' heroes, the best first."""
    return page.get_by_role("region", name="Open picks").locator("tbody td:first-child")


def test_each_open_pick_shows_probability_and_evidence(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/draft")
    expect(page.get_by_role("heading", name="Dire picks")).to_be_visible()
    asked = rest.ask("GET", "/v1/draft").json()
    assert asked["choices"][0]["hero"] == DRAFTED[0]
    expect(heroes(page)).to_have_text([choice["hero"] for choice in asked["choices"]])
    first = page.get_by_role("region", name="Open picks").locator("tbody tr").first
    expect(first).to_contain_text(f"{100 * asked['choices'][0]['own']:.1f} %")
    expect(page.get_by_text("400 training games are counted")).to_be_visible()
    expect(page.get_by_role("heading", name="How right the win head was")).to_be_visible()
    expect(page.get_by_role("region", name="Calibration").locator("tbody tr")).to_have_count(4)


def test_one_drafts_against_the_model_to_the_end(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/draft?side=R")
    dire = page.get_by_role("region", name="Dire", exact=True)
    expect(dire).to_contain_text(DRAFTED[0])  # the model began by itself, with the best
    expect(page.get_by_role("heading", name="Radiant picks")).to_be_visible()
    page.get_by_role("button", name="Pick earthshaker").click()
    expect(page.get_by_role("region", name="Radiant", exact=True)).to_contain_text("earthshaker")
    expect(page.get_by_text("earthshaker against sniper was played least")).to_be_visible()
    page.get_by_role("button", name="Take back").click()
    expect(page.get_by_role("region", name="Radiant", exact=True)).not_to_contain_text("earthshaker")
    picked = page.get_by_role("region", name="Radiant", exact=True).locator("li:not(.quiet)")
    for made in range(5):
        expect(page.get_by_role("heading", name="Radiant picks")).to_be_visible()
        page.get_by_role("region", name="Open picks").get_by_role("button", name=re.compile("^Pick")).first.click()
        expect(picked).to_have_count(made + 1)
    expect(page.get_by_role("heading", name="The draft is over")).to_be_visible()
    assert unquote(page.url).count(",") == 8  # five picks of each team: the address can be sent
    href = str(page.get_by_role("link", name="Play these line-ups").get_attribute("href"))
    assert href.startswith("/play?radiant=") and href.count(",") == 8 and href.endswith("&side=R")
    final = page.get_by_role("status").filter(has_text="Radiant wins").inner_text()
    page.reload()
    expect(page.get_by_role("status").filter(has_text="Radiant wins")).to_have_text(final)


def test_a_double_click_picks_once(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/draft")
    pick = page.get_by_role("button", name="Pick sniper")
    expect(pick).to_be_visible()
    held: list[Route] = []
    page.route("**/v1/draft?*", lambda route: held.append(route))
    pick.dblclick(force=True)
    until(page, lambda: held)
    assert page.url == f"{rest.url}/draft?dire=sniper"
    for route in held:
        route.continue_()
    expect(page.get_by_role("heading", name="Radiant picks")).to_be_visible()


def test_a_draft_is_shown_once_the_controller_can(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    busy = {"detail": "too many drafts are being analysed"}
    page.route("**/v1/draft?*", lambda route: route.fulfill(status=429, json=busy))
    watched.visit("/draft")
    expect(page.get_by_role("alert")).to_contain_text(busy["detail"])
    page.unroute("**/v1/draft?*")
    expect(page.get_by_role("heading", name="Dire picks")).to_be_visible()
    expect(page.get_by_role("alert")).to_be_hidden()


def test_impossible_drafts_are_reported_and_bans_undone(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    watched.visit("/draft")
    page.get_by_role("button", name="Ban sniper").click()
    expect(page.get_by_role("alert")).to_contain_text("bans leave too few heroes")
    page.goto(f"{rest.url}/draft?radiant=<script>")
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_role("button", name="New draft").click()
    expect(page.get_by_role("heading", name="Dire picks")).to_be_visible()


def test_a_viewer_drafts_as_well(browser: Browser, rest: LiveController) -> None:
    watched = Watched(browser, rest.url)
    page = watched.log_in(rest, VIEWER)
    watched.visit("/draft?dire=sniper")
    expect(page.get_by_role("heading", name="Radiant picks")).to_be_visible()
    expect(heroes(page)).to_have_count(9)
    watched.close()


def test_without_a_table_the_page_says_how_one_is_made(browser: Browser) -> None:
    with seeded() as rest:
        assert rest.context.blobs is not None
        for name in rest.context.blobs.refs("trial/draft/"):
            rest.context.blobs.remove_ref(name)
        watched = Watched(browser, rest.url)
        page = watched.log_in(rest, OPERATOR)
        watched.visit("/draft")
        expect(page.get_by_role("alert")).to_contain_text("five draft --make")
        watched.close()

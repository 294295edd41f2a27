"""The console's connection to the controller: silence, restarts behind a reverse proxy, upgrades, and the end of a
session."""

import pytest
from playwright.sync_api import Browser, Route, expect

from five.cli.console import link
from five.local.rest_client import ControllerClient
from tests.console.browser import PATIENCE, Watched
from tests.console.seeded import seeded
from tests.services.live_controller import OPERATOR, LiveController

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
STREAM, SESSION = "**/v1/console/stream", "**/v1/session"


def test_silent_stream_is_opened_again(watched: Watched, rest: LiveController) -> None:
    watched.page.clock.install()
    page = watched.log_in(rest, OPERATOR)
    expect(page.get_by_role("banner").get_by_role("status")).to_contain_text("running")
    with page.expect_request(STREAM):
        page.clock.fast_forward(60_000)
    expect(page.get_by_text("connection lost")).to_be_hidden()


def test_bad_gateway_does_not_end_the_session(watched: Watched, rest: LiveController) -> None:
    page = watched.page
    page.route(STREAM, lambda route: route.fulfill(status=502))
    watched.log_in(rest, OPERATOR)
    page.route(SESSION, lambda route: route.fulfill(status=502))
    lost = page.get_by_text("connection lost")
    expect(lost).to_be_visible()
    with page.expect_response(SESSION):  # of the first attempt to reconnect
        pass
    page.wait_for_timeout(500 * PATIENCE)
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    expect(lost).to_be_visible()
    page.unroute(SESSION)
    page.unroute(STREAM)
    expect(lost).to_be_hidden()


def test_page_opened_without_the_store_waits_for_it(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    page.route(SESSION, lambda route: route.fulfill(status=503, json={"detail": "the store does not answer"}))
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("the store does not answer; trying again")
    expect(page.get_by_label("Token")).to_be_hidden()
    page.unroute(SESSION)
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()


def test_link_opened_without_the_store_is_used_later(watched: Watched, rest: LiveController) -> None:
    page = watched.page
    page.route(SESSION, lambda route: route.fulfill(status=503, json={"detail": "the store does not answer"}))
    page.goto(link(ControllerClient(rest.url, OPERATOR)))
    expect(page.get_by_role("alert")).to_contain_text("the store does not answer; trying again")
    page.unroute(SESSION)
    expect(page.get_by_text("ada, operator")).to_be_visible()


def test_page_that_cannot_be_loaded_offers_a_reload(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    page.locator(".facts").wait_for()
    page.route("**/assets/**", lambda route: route.abort())  # as after an upgrade, whose files have other names
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="League").click()
    expect(page.get_by_role("alert")).to_contain_text("could not be loaded")
    page.unroute("**/assets/**")
    page.get_by_role("button", name="Reload the console").click()
    expect(page.get_by_role("heading", name="League")).to_be_visible()


def test_login_link_works_in_an_open_tab(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    watched.log_in(rest, OPERATOR)  # the same page with another hash
    assert page.url == rest.url + "/"


def test_failed_log_out_is_reported(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    page.route(SESSION, lambda route: route.abort())
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("alert")).to_contain_text("Not logged out: the controller does not answer")
    page.unroute(SESSION)
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Token")).to_be_visible()


def test_refused_description_of_the_api_is_reported(watched: Watched, rest: LiveController) -> None:
    page = watched.log_in(rest, OPERATOR)
    page.route("**/openapi.json", lambda route: route.fulfill(status=429, json={"status": 429}))
    watched.visit("/docs")
    expect(page.get_by_role("alert")).to_contain_text("429")
    expect(page.get_by_role("heading", name="REST API")).to_be_visible()


def test_text_that_is_not_sent_survives_a_new_build(browser: Browser) -> None:
    with seeded() as rest:
        watched = Watched(browser, rest.url)
        page = watched.log_in(rest, OPERATOR)
        watched.visit("/steering")
        page.get_by_label("Plan", exact=True).fill("name: wider")
        page.get_by_role("heading", name="Steering").click()  # the plan has no focus
        rest.context.site.build = "another"
        expect(page.get_by_text("A new console is there: reload")).to_be_visible()
        page.wait_for_timeout(2000)  # longer than the page waits before it reloads
        expect(page.get_by_label("Plan", exact=True)).to_have_value("name: wider")
        watched.close()


def test_page_of_an_ended_session_sends_no_more_requests(watched: Watched, rest: LiveController) -> None:
    page = watched.page
    opened: list[str] = []

    def refuse(route: Route) -> None:
        opened.append(route.request.url)
        route.fulfill(status=401)

    page.route(STREAM, refuse)
    watched.log_in(rest, OPERATOR)
    page.route(SESSION, lambda route: route.fulfill(status=401))
    expect(page.get_by_label("Token")).to_be_visible()
    before = len(opened)
    page.wait_for_timeout(5000)  # longer than the interval of attempts to reconnect
    assert len(opened) == before

"""The console's connection to the controller: silence, restarts behind a reverse proxy, and the end of a session."""

import pytest
from playwright.sync_api import Route, expect

from tests.console.browser import PATIENCE, Watched
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
    expect(lost).to_be_hidden(timeout=15_000 * PATIENCE)


def test_page_of_an_ended_session_sends_no_more_requests(watched: Watched, rest: LiveController) -> None:
    page = watched.page
    opened: list[str] = []

    def refuse(route: Route) -> None:
        opened.append(route.request.url)
        route.fulfill(status=401)

    page.route(STREAM, refuse)
    watched.log_in(rest, OPERATOR)
    page.route(SESSION, lambda route: route.fulfill(status=401))
    expect(page.get_by_label("Token")).to_be_visible(timeout=15_000 * PATIENCE)
    before = len(opened)
    page.wait_for_timeout(5000)  # longer than the interval of attempts to reconnect
    assert len(opened) == before
